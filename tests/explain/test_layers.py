"""The four sums equal the log-odds of the network itself, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.explain.contributions import Contributions
from kryograph.explain.layers import LayeredForm, PolynomialLayer
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.systems import NetworkSystem, system
from kryograph.systems.base import Weights
from kryograph.systems.network import draw_weights

pytestmark = pytest.mark.usefixtures("double")

FEATURES, CLASSES = 4, 3

NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("truncated-krylov", {"order": 1}),
    ("truncated-krylov", {"order": 5}),
    ("truncated-krylov", {"order": 3, "layers": 3}),
    ("truncated-krylov", {"order": 3, "layers": 2, "classifier": True}),
    ("snowball", {"layers": 1}),
    ("snowball", {"layers": 3}),
    ("linear-snowball", {"layers": 2}),
]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to twelve nodes with weighted edges, some isolated; dense or sparse features."""
    n = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = rng.normal(size=(n, FEATURES)) * (rng.random((n, FEATURES)) < 0.6)
    return Graph.from_edges(
        np.array(pairs, dtype=np.int64).reshape(-1, 2).T,
        n,
        weights=rng.uniform(0.2, 3, len(pairs)),
        features=sp.csr_array(x) if draw(st.booleans()) else x,
    )


def network(name: str, changes: dict[str, Any], L: str, seed: int) -> tuple[Any, Weights]:
    """A system with random weights that are large enough for tanh to bend."""
    method = system(name, {"hidden": 5} | changes, operator=L)
    assert isinstance(method, NetworkSystem)
    with torch.device("meta"):
        module = method.network(FEATURES, CLASSES)
    draw_weights(module, torch.Generator().manual_seed(seed))
    return method, {key: 2 * value for key, value in module.state_dict().items()}


def sums(parts: Contributions) -> list[float]:
    divided = (parts.hops, parts.nodes, parts.neighbours, parts.features)
    return [parts.intercept + float(part.sum()) for part in divided]


@settings(max_examples=60)
@given(graphs(), st.sampled_from(NETWORKS), st.sampled_from(["sym", "rw"]), st.integers(0, 99))
def test_the_four_sums_are_the_log_odds(
    graph: Graph, kind: tuple[str, dict[str, Any]], L: str, seed: int
) -> None:
    method, weights = network(*kind, L, seed)
    probabilities = method.apply(weights, graph, CLASSES)
    node = seed % graph.n
    form = method.additive(weights, graph, CLASSES)
    log_odds = np.log(probabilities[node, 0] / probabilities[node, 2])
    np.testing.assert_allclose(sums(form.contributions(node, 0, 2)), log_odds, atol=1e-10)
    np.testing.assert_allclose(
        form.log_probabilities(node), np.log(probabilities[node]), atol=1e-10
    )


@pytest.mark.parametrize("name", ["truncated-krylov", "linear-snowball"])
def test_contributions_of_the_opposite_pair_are_opposite(name: str) -> None:
    method, weights = network(name, {"layers": 2}, "sym", 0)
    graph = attributed(toy.two_cliques(4))
    form = method.additive(weights, graph, CLASSES)
    one, other = form.contributions(1, 0, 2), form.contributions(1, 2, 0)
    np.testing.assert_allclose(one.nodes, -other.nodes, atol=1e-12)


def attributed(graph: Graph, seed: int = 0) -> Graph:
    features = np.random.default_rng(seed).normal(size=(graph.n, FEATURES))
    return Graph(graph.adjacency, features)


@pytest.mark.parametrize("L", ["sym", "rw"])
def test_one_hidden_layer_gives_integrated_gradients(L: str) -> None:
    method, weights = network("truncated-krylov", {"order": 4}, L, 3)
    graph, node, steps = attributed(toy.star(6)), 0, 200
    form = method.additive(weights, graph, CLASSES)
    parts = form.contributions(node, 0, 1)
    module = method.network(FEATURES, CLASSES)
    module.load_state_dict(weights)
    module.eval()
    x = torch.from_numpy(graph.features.copy())
    gradient = torch.zeros_like(x)
    for step in range(steps):  # the midpoint rule on the straight path from 0 to X
        at = (x * ((step + 0.5) / steps)).requires_grad_()
        logits = module(at, operator(graph, L))[node]
        (logits[0] - logits[1]).backward()
        assert at.grad is not None
        gradient += at.grad / steps
    integrated = (x * gradient).numpy()
    np.testing.assert_allclose(parts.nodes, integrated.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(parts.features, integrated.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize(("name", "changes"), NETWORKS)
def test_a_feature_without_weights_or_without_values_gives_nothing(
    name: str, changes: dict[str, Any]
) -> None:
    method, weights = network(name, changes, "rw", 1)
    features = np.random.default_rng(0).normal(size=(6, FEATURES))
    features[:, 1] = 0.0
    graph = Graph(toy.cycle(6).adjacency, features)
    form = method.additive(weights, graph, CLASSES)
    assert isinstance(form, LayeredForm)
    for layer in form.layers:
        for matrix in layer.weights.get(0, {}).values():
            matrix[2] = 0.0
    parts = form.contributions(0, 0, 1)
    assert parts.features[[1, 2]].tolist() == [0.0, 0.0]
    assert parts.features[[0, 3]].all()


@pytest.mark.parametrize(("name", "changes"), NETWORKS)
def test_equal_nodes_have_equal_shares(name: str, changes: dict[str, Any]) -> None:
    method, weights = network(name, changes, "sym", 2)
    features = np.random.default_rng(1).normal(size=(5, FEATURES))
    features[3] = features[2]  # two leaves of a star with the same features
    graph = Graph(toy.star(5).adjacency, features)
    parts = method.additive(weights, graph, CLASSES).contributions(0, 0, 1)
    assert parts.nodes[2] == pytest.approx(parts.nodes[3], abs=1e-12)
    assert parts.neighbours[2] == pytest.approx(parts.neighbours[3], abs=1e-12)


@pytest.mark.parametrize(("name", "changes"), NETWORKS)
def test_an_isolated_node_has_its_own_part_only(name: str, changes: dict[str, Any]) -> None:
    method, weights = network(name, changes, "sym", 4)
    graph = attributed(toy.disjoint(toy.cycle(3), toy.isolated(1)))
    parts = method.additive(weights, graph, CLASSES).contributions(3, 0, 1)
    assert not parts.nodes[:3].any()
    assert not parts.neighbours[:3].any()
    assert parts.neighbours[3] == pytest.approx(parts.nodes[3], abs=1e-12)


def test_hops_of_a_linear_layer_are_the_terms_of_its_polynomial() -> None:
    # x = (1, 2, 4) on a path, logits (L x, 3 x): hop 1 gives (L x)_v, hop 0 gives -3 x_v.
    L = operator(toy.path(3), "affinity").matrix
    weights = {0: {0: np.array([[0.0, 3.0]]), 1: np.array([[1.0, 0.0]])}}
    form = LayeredForm(
        L, np.array([[1.0], [2.0], [4.0]]), [PolynomialLayer(weights, np.array([0.5, 0.0]))]
    )
    parts = form.contributions(0, 0, 1)
    assert parts.intercept == 0.5
    assert parts.hops.tolist() == [-3.0, 3.0]
    assert parts.nodes.tolist() == [-2.0, 2.0, 0.0]
    assert parts.neighbours.tolist() == [-2.0, 2.0, 0.0]
    assert parts.features.tolist() == [0.0]


def test_similarity_is_the_cosine_of_the_hidden_layer() -> None:
    method, weights = network("truncated-krylov", {}, "rw", 5)
    graph = attributed(toy.two_cliques(4))
    hidden = method.embed(weights, graph, CLASSES)
    form = method.additive(weights, graph, CLASSES)
    expected = [
        hidden[0] @ hidden[v] / np.linalg.norm(hidden[0]) / np.linalg.norm(hidden[v])
        for v in (0, 5)
    ]
    np.testing.assert_allclose(form.similarity(0, np.array([0, 5])), expected, atol=1e-6)
