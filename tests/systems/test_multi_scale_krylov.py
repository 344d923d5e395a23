"""Truncated Krylov as a system: its settings, network and forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine.forward import InputDropped, WholeGraph
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.errors import UsageError
from kryograph.graph import Split, Task
from kryograph.nn import TruncatedKrylov
from kryograph.nn.functional import Masks
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem, draw_weights
from kryograph.testing import quick_settings
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions
from kryograph.training.stopping import exactly


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=60, classes=3, words=20, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(15), range(15, 30), range(30, 60)))


def method(**changes: object) -> NetworkSystem:
    found = system("truncated-krylov", changes)
    assert isinstance(found, NetworkSystem)
    return found


@pytest.mark.parametrize("classifier", [False, True])
def test_truncated_krylov_network_follows_the_settings(classifier: bool) -> None:
    settings = {"hidden": 5, "layers": 2, "order": 3, "dropout": 0.25, "input_dropout": 0.5}
    network = method(classifier=classifier, **settings).network(7, 2)
    assert isinstance(network, TruncatedKrylov)
    assert tuple(network.first.weight.shape) == (21, 5)
    assert [tuple(conv.weight.shape) for conv in network.further] == [(15, 5)]
    assert (network.dropout, network.input_dropout) == (0.25, 0.5)
    assert network.activation is torch.tanh
    assert (network.classifier is not None) == classifier
    assert network.output.p == 0


def test_truncated_krylov_form_is_the_engines_unless_features_are_dropped(task: Task) -> None:
    assert type(method().prepare(task, DEFAULT_CONDITIONS, Masks())) is KrylovForward
    dropped = method(input_dropout=0.5).prepare(task, DEFAULT_CONDITIONS, Masks())
    assert isinstance(dropped, InputDropped)
    assert type(dropped.scoring) is KrylovForward
    literal = method().prepare(task, DEFAULT_CONDITIONS, Masks(), literal=True)
    assert type(literal) is WholeGraph


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("classifier", [False, True])
def test_truncated_krylov_hidden_layer_is_the_input_of_the_output(
    classifier: bool, task: Task
) -> None:
    one = method(hidden=4, order=3, classifier=classifier)
    forward = one.prepare(task, DEFAULT_CONDITIONS, Masks())
    draw_weights(forward.network, torch.Generator().manual_seed(0))
    weights, L, x = forward.network.state_dict(), forward.L, forward.x.to_dense()
    blocks = torch.cat([x, L @ x, L @ (L @ x)], dim=1)
    expected = torch.tanh(blocks @ weights["first.weight"] + weights["first.bias"])
    if classifier:
        expected = torch.tanh(expected @ weights["classifier.weight"] + weights["classifier.bias"])
    embedding = torch.from_numpy(one.embed(weights, task.graph, 3))
    torch.testing.assert_close(embedding, expected, rtol=1e-10, atol=1e-12)


def test_truncated_krylov_refuses_an_order_of_zero() -> None:
    with pytest.raises(UsageError, match="'order' must be at least 1"):
        method(order=0)


@pytest.mark.parametrize("changes", [{"classifier": True}, {"layers": 2}, {"order": 1}])
def test_truncated_krylov_settings_change_the_fit(task: Task, changes: dict[str, object]) -> None:
    conditions = Conditions(exactly(30))
    plain, changed = (
        system("truncated-krylov", quick_settings("truncated-krylov", **some)).fit(
            task, conditions=conditions
        )
        for some in ({}, changes)
    )
    assert np.abs(plain.predict_proba() - changed.predict_proba()).max() > 1e-3
    train = task.split.train
    right = changed.predict_proba()[train].argmax(axis=1) == task.labels[train]
    assert right.mean() > 0.8
