from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations, toy
from kryograph.engine.forward import Nodes, WholeGraph, Workload
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.nn.gated import Gated, LinearMessage, MLPMessage
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.ggnn import GGNNSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SHORT = Conditions(rule=StopRule(max_epochs=10))


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(30), range(30, 60), range(60, 120)))


def probabilities(name: str, task: Task, **changes: object) -> np.ndarray:
    if name in ("ggnn", "gpnn"):
        changes = {"feature_dropout": 0.0} | changes
    changes = {"dropout": 0.0, "hidden": 8} | changes
    return system(name, changes).fit(task, seed=1, conditions=SHORT).probabilities


@pytest.mark.parametrize(("name", "kind"), [("linear", LinearMessage), ("mlp", MLPMessage)])
def test_ggnn_sends_what_it_is_told_to(name: str, kind: type) -> None:
    made = system("ggnn", {"message": name, "layers": 4})
    assert isinstance(made, GGNNSystem)
    network = made.network(5, 3)
    assert isinstance(network, Gated)
    assert isinstance(network.message, kind)
    assert network.steps == 4


def test_ggnn_sums_over_neighbours_or_takes_the_operator() -> None:
    ones = np.ones((4, 1))
    total = system("ggnn", {"aggregate": "sum"}).diffusion(toy.star(4)) @ ones
    assert total.ravel().tolist() == [3, 1, 1, 1]
    mean = system("ggnn", operator="rw").diffusion(toy.star(4)) @ ones
    np.testing.assert_allclose(mean, 1)


def test_the_variants_of_ggnn_differ(task: Task) -> None:
    plain = probabilities("ggnn", task)
    for changes in ({"message": "mlp"}, {"aggregate": "sum"}, {"layers": 3}):
        assert np.abs(probabilities("ggnn", task, **changes) - plain).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("ggnn", {}),
        ("ggnn", {"aggregate": "sum"}),
        ("mpnn", {"layers": 1}),
        ("gpnn", {"layers": 1, "clusters": 5}),
        ("gpnn", {"layers": 2, "clusters": 5}),
    ],
)
@pytest.mark.parametrize("operator", ["sym", "rw"])
def test_the_neighbourhood_of_the_nodes_is_enough(
    task: Task, name: str, changes: dict[str, object], operator: str
) -> None:
    made = system(name, {"dropout": 0.0, "feature_dropout": 0.0} | changes, operator=operator)
    x, L = SparseMatrix.from_scipy(task.graph.features), made.diffusion(task.graph)
    network = made.network(30, 3)
    nodes = Nodes(torch.tensor([5, 2, 40]), torch.tensor([7, 119]))
    load = Workload(network, x, L, nodes, Masks())
    near, whole = made.fast_forward(load), made.forward(load)
    assert type(whole) is WholeGraph
    torch.testing.assert_close(near.training(), whole.training())
    torch.testing.assert_close(near.scored(), whole.scored())
    few = near._neighbourhood(torch.tensor([5]))[0].shape[0]
    assert few < task.graph.n or (name, changes.get("layers")) == ("gpnn", 2)


def test_decay_is_the_first_layers_unless_it_is_everyones() -> None:
    for name in ("ggnn", "mpnn", "gpnn"):
        made = system(name)
        network = made.network(5, 3)
        [weight] = made.decayed(network)
        assert weight is network.inward.weight
        assert system(name, {"decay_all": True}).decayed(network) is None


def test_a_start_at_random_is_another_network(task: Task) -> None:
    for name in ("ggnn", "gpnn"):
        found = [probabilities(name, task, start=start) for start in ("random", "diffusion")]
        assert np.abs(found[0] - found[1]).max() > 1e-3
