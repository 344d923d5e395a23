"""The classifiers keep scikit-learn's conventions; exceptions say why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kryograph.data import Dataset, synthetic_citations
from kryograph.estimator import KrylovClassifier, SnowballClassifier
from kryograph.systems import system

UNLABELLED = "-1 means that a label is not known, as in scikit-learn's own semi-supervised methods"


@pytest.mark.slow
@parametrize_with_checks(
    [
        KrylovClassifier(order=2, hidden=16, dropout=0.0, epochs=60, lr=0.02),
        SnowballClassifier(hidden=16, dropout=0.0, epochs=60, lr=0.02),
    ],
    expected_failed_checks=lambda estimator: {"check_classifiers_classes": UNLABELLED},
)
@pytest.mark.filterwarnings("ignore")  # scikit-learn's checks try what warns on purpose
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=240, classes=3, words=40, signal=0.7, homophily=0.85, seed=5)


@pytest.fixture(scope="module")
def given(data: Dataset) -> np.ndarray:
    return np.where(np.arange(240) < 60, data.labels, -1)


@pytest.mark.parametrize("kind", [KrylovClassifier, SnowballClassifier])
def test_a_graph_and_labels_of_some_of_its_nodes(
    kind: Any, data: Dataset, given: np.ndarray
) -> None:
    model = kind(epochs=100, random_state=0)
    model.fit(data.graph.features, given, adjacency=data.graph.adjacency)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.transduction_.shape == (240,)
    assert np.mean(model.transduction_[60:] == data.labels[60:]) > 0.7
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1)
    again = clone(model).fit(data.graph.features, given, adjacency=data.graph.adjacency)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)


def test_edges_matter(data: Dataset, given: np.ndarray) -> None:
    X = data.graph.features.toarray()
    scores = []
    for adjacency in (data.graph.adjacency, sp.csr_array((240, 240))):
        model = KrylovClassifier(epochs=100, random_state=0).fit(X, given, adjacency=adjacency)
        scores.append(np.mean(model.transduction_[60:] == data.labels[60:]))
    assert scores[0] > scores[1] + 0.05


def test_names_as_classes_and_none_for_unknown(data: Dataset) -> None:
    names = np.array(["a", "b", "c"], dtype=object)[data.labels]
    names[60:] = None
    model = KrylovClassifier(epochs=30, random_state=0)
    model.fit(data.graph.features, names, adjacency=data.graph.adjacency)
    assert set(model.transduction_) <= {"a", "b", "c"}


def test_the_same_graph_is_predicted_as_it_was_fitted(data: Dataset, given: np.ndarray) -> None:
    X, A = data.graph.features, data.graph.adjacency
    model = KrylovClassifier(epochs=30, random_state=0).fit(X, given, adjacency=A)
    found = model.predict_proba(X, adjacency=A)
    np.testing.assert_allclose(found, model.label_distributions_, atol=1e-6)


def test_a_grid_search_over_the_labelled_nodes(data: Dataset) -> None:
    nodes = np.arange(60)[:, None]
    search = GridSearchCV(
        KrylovClassifier(graph=data.graph, epochs=30, random_state=0),
        {"order": [1, 6]},
        cv=StratifiedKFold(3),
    ).fit(nodes, data.labels[:60])
    by_order = dict(
        zip(search.cv_results_["param_order"], search.cv_results_["mean_test_score"], strict=True)
    )
    assert by_order[6] > by_order[1]  # neighbours help on this graph
    rest = np.arange(60, 240)[:, None]
    assert search.score(rest, data.labels[60:]) > 0.7


def test_in_a_pipeline_without_edges() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 5)), rng.normal(4, 1, (40, 5))]) * 100
    y = np.full(80, -1)
    y[[0, 1, 40, 41]] = [0, 0, 1, 1]
    model = make_pipeline(StandardScaler(), KrylovClassifier(epochs=60, random_state=0)).fit(X, y)
    assert model.predict(X).tolist() == [0] * 40 + [1] * 40


def test_an_adjacency_of_another_size_is_refused(data: Dataset, given: np.ndarray) -> None:
    with pytest.raises(ValueError, match="adjacency must be 240 × 240"):
        KrylovClassifier().fit(data.graph.features, given, adjacency=np.eye(3))


def test_one_class_is_not_enough() -> None:
    with pytest.raises(ValueError, match="only one class"):
        KrylovClassifier().fit(np.eye(4), [0, 0, -1, -1])


COMMON = {"operator", "epochs", "graph", "n_neighbors", "random_state"}


@pytest.mark.parametrize(
    ("classifier", "name"),
    [
        (KrylovClassifier(), "truncated-krylov"),
        (SnowballClassifier(), "snowball"),
        (SnowballClassifier(linear=True), "linear-snowball"),
    ],
)
def test_classifier_has_every_setting_of_its_system_with_the_same_default(
    classifier: Any, name: str
) -> None:
    settings = system(name).settings.as_dict()
    parameters = classifier.get_params()
    assert {key: parameters[key] for key in settings} == settings
    assert parameters["operator"] == system(name).operator
    assert parameters.keys() - settings.keys() - COMMON <= {"linear"}
    assert classifier._build_system() == system(name)


def test_classifier_passes_changed_parameters_to_its_system() -> None:
    changed = KrylovClassifier(order=3, classifier=True, input_dropout=0.2, operator="rw")
    expected = {"order": 3, "classifier": True, "input_dropout": 0.2}
    assert changed._build_system() == system("truncated-krylov", expected, operator="rw")
