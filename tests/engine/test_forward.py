"""What holds for every way to compute a network during a run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from kryograph.data import synthetic_citations, toy
from kryograph.engine.forward import Forward, InputDropped, Nodes, WholeGraph, Workload
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.graph import Graph, Split, Task
from kryograph.nn import Snowball, TruncatedKrylov
from kryograph.nn.functional import INPUT, Masks, NodeFeatures
from kryograph.nn.network import Layered
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions
from kryograph.training.stopping import exactly
from tests.layers import (
    OPERATORS,
    Case,
    FixedMasks,
    cases,
    check_run,
    check_same,
    evaluated,
    gradients_of,
    random,
    seeded,
    trained,
)

FEATURES, CLASSES = 5, 3
GRAPH = toy.disjoint(toy.path(12), toy.isolated(1), toy.star(5), toy.two_cliques(4))
"""Twenty-six nodes in four components."""
NODES = Nodes(torch.tensor([14, 3, 12]), torch.tensor([25, 9, 4]))
LABELS = torch.arange(GRAPH.n) % CLASSES

Make = tuple[type[Forward], Callable[[], nn.Module]]
KINDS: dict[str, Make] = {
    "krylov": (KrylovForward, lambda: TruncatedKrylov(FEATURES, 4, CLASSES, 3, dropout=0.5)),
    "deep krylov": (
        KrylovForward,
        lambda: TruncatedKrylov(FEATURES, 4, CLASSES, 3, layers=2, p=1, dropout=0.5),
    ),
    "snowball": (SnowballForward, lambda: Snowball(FEATURES, 4, CLASSES, 3, dropout=0.5)),
    "linear snowball": (
        SnowballForward,
        lambda: Snowball(FEATURES, 4, CLASSES, 3, dropout=0.5, activation="identity"),
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def features(n: int = GRAPH.n) -> Tensor:
    return torch.randn(n, FEATURES, dtype=torch.float64, generator=seeded(0))


def network(kind: str) -> nn.Module:
    net = KINDS[kind][1]().double()
    net.reset_parameters(seeded(1))
    return net


def both(
    kind: str, nodes: Nodes = NODES, L: Operator | None = None, x: NodeFeatures | None = None
) -> tuple[Forward, WholeGraph]:
    """By the engine and by the formula, each with a network of its own that starts alike."""
    L, net = L or operator(GRAPH), network(kind)
    rest: Any = (features(L.n) if x is None else x, L, nodes, FixedMasks(L.n))
    engine, literal = Workload(net, *rest), Workload(copy.deepcopy(net), *rest)
    return KINDS[kind][0](engine), WholeGraph(literal)


def check_both(engine: Forward, literal: Forward, labels: Tensor = LABELS) -> None:
    check_same(trained(engine, labels), trained(literal, labels))
    check_same(evaluated(engine), evaluated(literal))
    # And once more, from what was scored.
    check_same(trained(engine, labels), trained(literal, labels))


def move(*networks: nn.Module) -> None:
    """Change every weight, in the same way for all."""
    for net in networks:
        generator = seeded(2)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter += 0.1 * torch.rand(parameter.shape, generator=generator)


# The order of nodes


def test_scored_nodes_are_those_of_training_and_then_those_of_validation() -> None:
    assert NODES.scored.tolist() == [14, 3, 12, 25, 9, 4]
    assert Nodes(torch.tensor([2]), torch.tensor([], dtype=torch.int64)).scored.tolist() == [2]


@every_kind
def test_rows_come_in_the_order_asked_for(kind: str) -> None:
    engine, literal = both(kind)
    everything = literal.network.eval()(literal.x, literal.L)
    found = evaluated(engine)
    torch.testing.assert_close(found["scored"], everything[NODES.scored].detach())
    torch.testing.assert_close(found["everything"], everything.detach())
    assert not torch.allclose(everything[3], everything[14])


@every_kind
@pytest.mark.parametrize("name", OPERATORS)
def test_permuted_nodes_give_permuted_results(kind: str, name: str) -> None:
    old = torch.randperm(GRAPH.n, generator=seeded(3))  # new node i was node old[i]
    new = torch.argsort(old)
    moved = Graph(sp.csr_array(GRAPH.adjacency[old.numpy()][:, old.numpy()]), GRAPH.features)
    engine, _ = both(kind, L=operator(GRAPH, name))
    nodes = Nodes(new[NODES.training], new[NODES.validation])
    other, _ = both(kind, nodes, operator(moved, name), features()[old])
    for forward in (engine, other):
        forward.network.dropout = 0.0
    check_same(trained(other, LABELS[old]), trained(engine, LABELS))
    plain, permuted = evaluated(engine), evaluated(other)
    check_same({"scored": permuted["scored"]}, {"scored": plain["scored"]})
    check_same({"all": permuted["everything"]}, {"all": plain["everything"][old]})
    assert not torch.allclose(permuted["everything"], plain["everything"], atol=1e-3)


# Node sets at the edge


NONE = torch.tensor([], dtype=torch.int64)
EDGES = {
    "the whole graph": Nodes(torch.arange(GRAPH.n), NONE),
    "the whole graph, backwards": Nodes(torch.arange(GRAPH.n).flip(0), NONE),
    "the whole graph is scored": Nodes(torch.arange(1, 20), torch.tensor([0, *range(20, GRAPH.n)])),
    "one node": Nodes(torch.tensor([7]), NONE),
    "one node on its own": Nodes(torch.tensor([12]), NONE),
    "one node on its own, others scored": Nodes(torch.tensor([12]), torch.tensor([0, 20])),
    "one component": Nodes(torch.tensor([14, 13]), torch.tensor([16])),
    "training and validation apart": Nodes(torch.tensor([2, 0]), torch.tensor([24, 17])),
}


@every_kind
@pytest.mark.parametrize("nodes", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("sparse", [False, True])
def test_node_sets_at_the_edge(kind: str, nodes: Nodes, sparse: bool) -> None:
    x: NodeFeatures = features()
    if sparse:
        x = SparseMatrix.from_scipy(sp.csr_array(features().relu().numpy()), dtype=torch.float64)
    check_both(*both(kind, nodes, operator(GRAPH, "rw"), x))


@every_kind
@pytest.mark.parametrize("graph", [toy.isolated(1), toy.isolated(4), toy.complete(4)])
def test_graphs_at_the_edge(kind: str, graph: Graph) -> None:
    nodes = Nodes(torch.arange(graph.n)[-1:], torch.arange(graph.n)[:-1])
    check_both(*both(kind, nodes, operator(graph)))


# What scoring leaves for training


@every_kind
def test_a_step_after_scoring_is_the_step_of_a_new_run(kind: str) -> None:
    engine, _ = both(kind)
    trained(engine, LABELS)
    move(engine.network)
    evaluated(engine)
    again = trained(engine, LABELS)
    fresh = KINDS[kind][0](engine.load)
    check_same(again, trained(fresh, LABELS))


@every_kind
def test_scoring_is_used_where_it_can_be(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = both(kind)
    product = engine._training
    name = "forward" if isinstance(engine, KrylovForward) else "from_x"
    calls: list[int] = []
    original = getattr(product, name)

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return original(*arguments)

    monkeypatch.setattr(product, name, counted)
    trained(engine, LABELS)
    assert len(calls) == 1
    evaluated(engine)
    trained(engine, LABELS)
    # Collapsed scoring of a linear network has nothing to leave.
    assert len(calls) == (2 if kind == "linear snowball" else 1)


@every_kind
def test_a_step_after_a_step_starts_anew(kind: str) -> None:
    engine, literal = both(kind)
    evaluated(engine)
    before = trained(engine, LABELS)  # uses up what was scored
    move(engine.network, literal.network)
    after = trained(engine, LABELS)
    assert not torch.allclose(before["training logits"], after["training logits"], atol=1e-3)
    check_same(after, trained(literal, LABELS))


@every_kind
def test_scoring_twice_leaves_the_second(kind: str) -> None:
    engine, literal = both(kind)
    evaluated(engine)
    move(engine.network, literal.network)
    check_same(evaluated(engine), evaluated(literal))
    check_same(trained(engine, LABELS), trained(literal, LABELS))


@every_kind
def test_what_was_scored_is_not_changed_by_training(kind: str) -> None:
    engine, _ = both(kind)
    found = evaluated(engine)
    kept = {name: value.clone() for name, value in found.items()}
    trained(engine, LABELS)
    assert all(torch.equal(found[name], value) for name, value in kept.items())


@every_kind
def test_gradients_of_two_steps_add_up(kind: str) -> None:
    engine, _ = both(kind)
    once = trained(engine, LABELS)
    logits = engine.training()
    nn.functional.cross_entropy(logits, LABELS[NODES.training]).backward()
    twice = gradients_of(engine.network)
    check_same(twice, {name: 2 * once[name] for name in twice})


# The literal form


def test_the_literal_form_is_the_network_on_every_node() -> None:
    _, literal = both("snowball")
    assert isinstance(literal.masks, FixedMasks)
    logits = literal.training()
    assert literal.masks.asked == [(layer, (GRAPH.n, 4), None) for layer in range(3)]
    expected = literal.network(literal.x, literal.L, masks=literal.masks)
    assert torch.equal(logits, expected[NODES.training])
    plain = literal.network.eval()(literal.x, literal.L).detach()
    found = evaluated(literal)
    assert torch.equal(found["scored"], plain[NODES.scored])
    assert torch.equal(found["everything"], plain)
    assert literal.cost().seconds() > 0


NETWORKS: dict[str, tuple[type[Layered], type[Forward], dict[str, Any]]] = {
    "truncated Krylov": (TruncatedKrylov, KrylovForward, {"order": 4, "layers": 2}),
    "one Krylov layer": (TruncatedKrylov, KrylovForward, {"order": 3, "layers": 1}),
    "order 1": (TruncatedKrylov, KrylovForward, {"order": 1, "layers": 1}),
    "Snowball": (Snowball, SnowballForward, {"layers": 2}),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


@every_network
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_the_network_on_thinned_features(name: str, sparse: bool) -> None:
    kind, _, values = NETWORKS[name]
    L = operator(toy.star(8))
    x = random(8, 5).double()
    masks = FixedMasks(8, seed=3)
    given = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64) if sparse else x
    thinned: Any
    if sparse:
        keep = masks.keep(given.values, 0.4, INPUT, None)
        thinned = given.with_values(given.values * keep / 0.6)
    else:
        thinned = x * masks.keep(x, 0.4, INPUT, None) / 0.6
    network = kind(5, 3, 2, **values, input_dropout=0.4).double()
    network.reset_parameters(seeded(1))  # type: ignore[operator]
    dropped = network(given, L, masks=masks)
    network.eval()
    torch.testing.assert_close(dropped, network(thinned, L), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(dropped, network(given, L))


@every_network
@settings(max_examples=10)
@given(case=cases(), optimizer=st.sampled_from(["adam", "rmsprop"]))
def test_ten_steps_are_those_of_the_literal_form(name: str, case: Case, optimizer: str) -> None:
    kind, form, values = NETWORKS[name]
    literal = kind(case.x.shape[1], 4, case.classes, **values, dropout=0.5, input_dropout=0.5)
    literal = literal.double()
    literal.reset_parameters(seeded(case.masks.seed))  # type: ignore[operator]
    rest = (case.x, case.L, case.nodes, case.masks)
    engine = InputDropped(form(Workload(copy.deepcopy(literal), *rest)))
    check_run(engine, WholeGraph(Workload(literal, *rest)), case, optimizer)


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_prepare_uses_it_if_features_are_dropped(name: str) -> None:
    task = Task.labelled(toy.star(4), [0, 1, -1, -1], ("a", "b"))
    for rate in (0.0, 0.5):
        form = system(name, {"input_dropout": rate}).prepare(task, DEFAULT_CONDITIONS, Masks())
        assert isinstance(form, InputDropped) == (rate > 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_its_cost_is_that_of_every_block_on_every_node(sparse: bool) -> None:
    graph = synthetic_citations(n=400, classes=2, words=40, seed=0).graph
    L = operator(graph)
    features = graph.features if sparse else graph.features.toarray()
    x = SparseMatrix.from_scipy(features) if sparse else torch.from_numpy(features).float()
    nodes = Nodes(torch.arange(5), torch.arange(5, 10))
    flops = {}
    for order in (4, 8):
        network = TruncatedKrylov(40, 6, 2, order, input_dropout=0.5)
        form = InputDropped(KrylovForward(Workload(network, x, L, nodes, FixedMasks(400))))
        own = sum(kernel.flops for kernel in form.scoring.cost().kernels)
        flops[order] = sum(kernel.flops for kernel in form.cost().kernels) - own
    entries = features.nnz if sparse else features.size
    # Forwards and backwards, two operations for each entry of X and of L and each column of W.
    assert flops[8] == 2 * 2 * (entries + L.matrix.nnz) * 8 * 6
    assert flops[4] == flops[8] / 2


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_a_system_learns_with_it(name: str) -> None:
    data = synthetic_citations(n=400, classes=2, words=40, signal=0.6, seed=0)
    task = data.task(Split("by hand", train=range(60), validation=range(60, 100), test=[]))
    method = system(name, {"input_dropout": 0.5, "hidden": 8, "dropout": 0.2})
    fits = [method.fit(task, seed=s, conditions=Conditions(exactly(60))) for s in (0, 0)]
    assert (fits[0].predict_proba() == fits[1].predict_proba()).all()
    right = fits[0].predict_proba()[100:].argmax(axis=1) == data.labels[100:]
    assert right.mean() > 0.7
    estimate = method.estimate(task)
    assert estimate is not None
