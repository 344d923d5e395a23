"""Snowball and linear Snowball as systems: their settings, networks and forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine.forward import InputDropped, WholeGraph
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.graph import Split, Task
from kryograph.nn import Snowball
from kryograph.nn.functional import ACTIVATIONS, Masks
from kryograph.systems import system
from kryograph.systems.multi_scale import LinearSnowballSystem, SnowballSystem
from kryograph.systems.network import NetworkSystem, draw_weights
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions
from kryograph.training.stopping import exactly

BOTH = pytest.mark.parametrize(
    ("name", "activation"), [("snowball", "tanh"), ("linear-snowball", "identity")]
)


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=60, classes=3, words=20, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(15), range(15, 30), range(30, 60)))


def method(name: str, **changes: object) -> NetworkSystem:
    found = system(name, changes)
    assert isinstance(found, NetworkSystem)
    return found


@BOTH
def test_snowball_network_follows_the_settings(name: str, activation: str) -> None:
    settings = {"hidden": 5, "layers": 3, "dropout": 0.25, "input_dropout": 0.5}
    network = method(name, **settings).network(7, 2)
    assert isinstance(network, Snowball)
    assert [tuple(conv.weight.shape) for conv in network.convs] == [(7, 5), (12, 5), (17, 5)]
    assert tuple(network.output.weight.shape) == (22, 2)
    assert (network.dropout, network.input_dropout) == (0.25, 0.5)
    assert network.activation is ACTIVATIONS[activation]
    # The networks of the tables: C = [X, H_1, …, H_n] and p = 1.
    assert network.classifier is None
    assert network.output.p == 1


@BOTH
def test_snowball_form_is_the_engines_unless_features_are_dropped(
    name: str, activation: str, task: Task
) -> None:
    plain = method(name).prepare(task, DEFAULT_CONDITIONS, Masks())
    assert type(plain) is SnowballForward
    dropped = method(name, input_dropout=0.5).prepare(task, DEFAULT_CONDITIONS, Masks())
    assert isinstance(dropped, InputDropped)
    assert type(dropped.scoring) is SnowballForward
    literal = method(name).prepare(task, DEFAULT_CONDITIONS, Masks(), literal=True)
    assert type(literal) is WholeGraph


@pytest.mark.usefixtures("double")
@BOTH
def test_snowball_hidden_layer_is_the_last_block(name: str, activation: str, task: Task) -> None:
    one = method(name, hidden=4, layers=1)
    forward = one.prepare(task, DEFAULT_CONDITIONS, Masks())
    draw_weights(forward.network, torch.Generator().manual_seed(0))
    weights = forward.network.state_dict()
    weight, bias = weights["convs.0.weight"], weights["convs.0.bias"]
    expected = ACTIVATIONS[activation](forward.L @ (forward.x @ weight) + bias)
    embedding = torch.from_numpy(one.embed(weights, task.graph, 3))
    torch.testing.assert_close(embedding, expected, rtol=1e-10, atol=1e-12)


def test_snowball_input_dropout_of_zero_is_not_part_of_the_identity() -> None:
    assert "input_dropout" not in system("snowball").settings.identity()
    assert system("snowball", {"input_dropout": 0.5}).settings.identity()["input_dropout"] == 0.5


def test_the_two_snowballs_differ_in_the_activation_only(task: Task) -> None:
    assert SnowballSystem.activation == "tanh"
    assert LinearSnowballSystem.activation == "identity"
    fits = [
        method(name, layers=2, hidden=8).fit(task, conditions=Conditions(exactly(15)))
        for name in ("snowball", "linear-snowball")
    ]
    assert np.abs(fits[0].predict_proba() - fits[1].predict_proba()).max() > 1e-3
