from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.synthetic import synthetic_citations
from kryograph.graph import UNKNOWN
from kryograph.session.fast_model import FastModel
from tests.session.sessions import K, cliques


def test_classes_count_alike_before_two_of_them_have_a_label() -> None:
    subject = cliques()
    model = FastModel(subject.features_graph, subject.labels, 2)
    labels = subject.labels.copy()
    for _ in range(2):
        prediction = model.predict(labels, 3)
        np.testing.assert_allclose(prediction.probabilities, 1 / 3)
        assert prediction.pool is None
        assert model.additive(prediction) is None
        labels[0] = 1


def test_one_label_of_each_clique_labels_all() -> None:
    subject = cliques(known=True)
    model = FastModel(subject.features_graph, subject.labels, 2)
    prediction = model.predict(subject.labels, 2)
    np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1)
    assert prediction.probabilities.argmax(axis=1).tolist() == [0] * K + [1] * K


def test_a_class_without_labels_is_hardly_ever_predicted() -> None:
    subject = cliques(known=True)
    model = FastModel(subject.features_graph, subject.labels, 3)
    assert model.predict(subject.labels, 3).probabilities[:, 2].max() < 0.01


def test_the_explanation_adds_up_to_the_prediction() -> None:
    data = synthetic_citations(80, 3, 40)
    labels = np.where(np.arange(80) < 12, data.labels, UNKNOWN)
    model = FastModel(data.graph, labels, 3)
    prediction = model.predict(labels, 3)
    form = model.additive(prediction)
    assert form is not None
    logs = np.log(prediction.probabilities[40])
    assert form.contributions(40, 0, 2).total == pytest.approx(logs[0] - logs[2], abs=1e-4)


def test_heads_that_predict_new_labels_well_get_weight() -> None:
    data = synthetic_citations(200, 3, 80, homophily=0.9, signal=0.05, seed=1)
    labels = np.full(200, UNKNOWN)
    model = FastModel(data.graph, labels, 3)
    before = dict(zip([str(h.settings.as_dict()) for h in model.heads], model.weights, strict=True))
    assert sum(before.values()) == pytest.approx(1)
    for node in range(60):
        model.observe(model.predict(labels, 3), node, int(data.labels[node]))
        labels[node] = data.labels[node]
    after = dict(zip(before, model.weights, strict=True))
    own = [name for name in after if "'weighted'" in name or "'features'" in name]
    assert sum(after[name] for name in own) < sum(before[name] for name in own)
    accuracy = (model.predict(labels, 3).probabilities.argmax(axis=1) == data.labels)[60:].mean()
    assert accuracy > 0.7


def test_random_nodes_say_how_bold_the_model_may_be() -> None:
    data = synthetic_citations(200, 3, 80, signal=0.05, homophily=0.4, seed=2)
    labels = np.full(200, UNKNOWN)
    model = FastModel(data.graph, labels, 3)
    assert model.temperature == 1.0
    for node in range(60):
        prediction = model.predict(labels, 3)
        model.observe(prediction, node, int(data.labels[node]), random=True)
        labels[node] = data.labels[node]
    prediction = model.predict(labels, 3)
    right = (prediction.probabilities.argmax(axis=1) == data.labels)[60:].mean()
    boldness = prediction.probabilities.max(axis=1)[60:].mean()
    assert abs(boldness - right) < 0.15
    assert model.predict(labels, 4).probabilities.shape == (200, 4)  # a class was added
    form = model.additive(prediction)
    assert form is not None
    logs = np.log(prediction.probabilities[100])
    assert form.contributions(100, 0, 1).total == pytest.approx(logs[0] - logs[1], abs=1e-4)


def test_labels_that_are_known_at_the_start_are_evidence() -> None:
    data = synthetic_citations(200, 3, 80, homophily=0.9, signal=0.05, seed=1)
    labels = np.where(np.arange(200) < 40, data.labels, UNKNOWN)
    with_labels = FastModel(data.graph, labels, 3).weights
    without = FastModel(data.graph, np.full(200, UNKNOWN), 3).weights
    assert abs(with_labels - without).max() > 0.01
