"""Each representation against its formula, written out with dense matrices in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from kryograph.basis import (
    REPRESENTATIONS,
    Basis,
    degree_features,
    spread_of,
    to_dense,
    unit_rows,
)
from kryograph.data import toy
from kryograph.graph import Graph
from kryograph.operators import operator

Array = npt.NDArray[np.float64]

PIECES = toy.disjoint(toy.two_cliques(4), toy.star(5), toy.path(4), toy.isolated(2))
"""Nineteen nodes: two cliques with a bridge, a star, a path and two nodes without neighbours."""


def bag(n: int, columns: int = 80, seed: int = 0) -> sp.csr_array:
    """Counts of words, most of them zero; no row is empty."""
    counts = np.random.default_rng(seed).poisson(0.2, (n, columns)).astype(float)
    counts[np.arange(n), np.arange(n) % columns] += 1
    return sp.csr_array(counts)


def signed(n: int, columns: int = 80, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(1.0, 2.0, (n, columns))


def weighted_ring(n: int) -> sp.csr_array:
    """A ring with a chord and with weights, so that no eigenvalue is there twice."""
    rng = np.random.default_rng(1)
    ends = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    ends = np.concatenate([ends, [[0], [n // 2]]], axis=1)
    return Graph.from_edges(ends, n, weights=rng.uniform(0.5, 2, n + 1)).adjacency


GRAPHS = {
    "bag": Graph(PIECES.adjacency, bag(19)),
    "signed": Graph(PIECES.adjacency, signed(19)),
    "few": Graph(PIECES.adjacency, signed(19, 5)),
    "weighted": Graph(weighted_ring(20), bag(20)),
    "identity": Graph(weighted_ring(20), sp.eye_array(20, format="csr")),
}
every_graph = pytest.mark.parametrize("kind", GRAPHS)


# The formulas


def S(graph: Graph) -> Array:
    loops = graph.adjacency.toarray() + np.eye(graph.n)
    root = 1 / np.sqrt(loops.sum(axis=1))
    return np.asarray(root[:, None] * loops * root)


def P(graph: Graph) -> Array:
    adjacency = graph.adjacency.toarray()
    degree = adjacency.sum(axis=1, keepdims=True)
    return np.asarray(adjacency / np.where(degree > 0, degree, 1))


def power_sum(matrix: Array, x: Array, damping: float, hops: int) -> Array:
    terms = [damping**k * np.linalg.matrix_power(matrix, k) @ x for k in range(hops + 1)]
    return np.asarray(np.sum(terms, axis=0))


def unit(x: Array) -> Array:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1))


def standardised(x: Array) -> Array:
    spread = x.std(axis=0)
    return np.asarray((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1) / x.shape[1] ** 0.5)


def features(graph: Graph) -> Array:
    x = np.asarray(to_dense(graph.features), dtype=float)
    return standardised(x) if x.shape[1] <= 64 else unit(x)


def weighted(graph: Graph) -> Array:
    x = np.asarray(to_dense(graph.features), dtype=float)
    if (x < 0).any():
        return unit(standardised(x))
    return unit(x * (np.log((1 + graph.n) / (1 + (x != 0).sum(axis=0))) + 1))


def Z(graph: Graph) -> Array:
    """Z, or for many features another matrix with the same inner products of rows."""
    width = graph.features.shape[1]
    if np.array_equal(to_dense(graph.features), np.eye(graph.n)):
        values, vectors = np.linalg.eigh(S(graph))
        largest = np.argsort(-abs(values))[: min(64, graph.n - 2)]
        return np.asarray(np.sqrt(graph.n) * vectors[:, largest])
    return features(graph) if width <= 64 else weighted(graph)


def side_by_side(graph: Graph, *blocks: Array) -> Array:
    few = graph.features.shape[1] <= 64 and REPRESENTED[id(graph)] != "identity"
    scaled = [standardised(block) if few else unit(block) for block in blocks]
    return np.hstack(scaled) / len(blocks) ** 0.5


def centred(graph: Graph) -> Array:
    z = Z(graph)
    lazy = (np.eye(graph.n) + P(graph)) / 2
    return side_by_side(graph, power_sum(lazy, z - z.mean(axis=0), 0.9, 10))


def hops(graph: Graph) -> Array:
    z, p = Z(graph), P(graph)
    return side_by_side(graph, z, p @ z, p @ p @ z)


def contrast(graph: Graph) -> Array:
    z, p = Z(graph), P(graph)
    return side_by_side(graph, z, z - p @ z, p @ z - p @ p @ z)


REPRESENTED = {id(graph): kind for kind, graph in GRAPHS.items()}
FORMULAS: dict[str, Callable[[Graph], Array]] = {
    "features": features,
    "weighted": weighted,
    "diffused": lambda graph: side_by_side(graph, power_sum(S(graph), Z(graph), 0.9, 10)),
    "centred": centred,
    "hops": hops,
    "contrast": contrast,
    "sum": lambda graph: side_by_side(graph, power_sum(S(graph), Z(graph), 1.0, 16)),
    "neighbours": lambda graph: unit(P(graph) @ graph.adjacency.toarray()),
}
"""All but "tree", whose parts are tested one by one."""


def inner_products(rows: object) -> Array:
    """Inner products of rows; they do not depend on the directions of the columns."""
    x = np.asarray(to_dense(rows), dtype=float)  # type: ignore[arg-type]
    return np.asarray(x @ x.T)


def test_every_representation_is_tested() -> None:
    assert REPRESENTATIONS.keys() == {*FORMULAS, "tree"}


@every_graph
@pytest.mark.parametrize("name", FORMULAS)
def test_representation_is_its_formula(kind: str, name: str) -> None:
    graph = GRAPHS[kind]
    basis = Basis(graph)
    if not basis.usable(name):
        pytest.skip("this graph does not have the representation")
    rows, expected = basis.rows(name), FORMULAS[name](graph)
    np.testing.assert_allclose(inner_products(rows), inner_products(expected), atol=2e-5)
    if kind == "few" or name in ("features", "weighted", "neighbours"):
        np.testing.assert_allclose(to_dense(rows), expected, atol=1e-5)


@every_graph
def test_tree_has_four_blocks_degrees_and_eigenvectors(kind: str) -> None:
    graph = GRAPHS[kind]
    rows = np.asarray(Basis(graph).rows("tree"), dtype=float)
    z, p, s = Z(graph), P(graph), S(graph)
    width = (rows.shape[1] - 5 - 32) // 4
    assert width == Basis(graph).Z.shape[1] <= 64
    for k, block in enumerate((z, p @ z, p @ p @ z, s @ s @ z)):
        part = rows[:, k * width : (k + 1) * width]
        np.testing.assert_allclose(inner_products(part), inner_products(block), atol=2e-4)
    np.testing.assert_allclose(rows[:, -37:-32], degree_features(graph), atol=1e-6)
    for matrix, vectors in ((s, rows[:, -32:-16]), (graph.adjacency.toarray(), rows[:, -16:])):
        values = np.einsum("ij,ij->j", vectors, matrix @ vectors)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(16), atol=1e-5)
        largest = np.sort(abs(np.linalg.eigvalsh(matrix)))[::-1][:16]
        np.testing.assert_allclose(abs(values), largest, atol=1e-5)


def test_degree_features_of_a_star_by_hand() -> None:
    # The centre has 3 neighbours of degree 1, a leaf one neighbour of degree 3.
    centre, leaf = degree_features(toy.star(4))[:2]
    one, three = np.log(2), np.log(4)
    np.testing.assert_allclose(centre, [three, one, three, three - one, three], rtol=1e-6)
    np.testing.assert_allclose(leaf, [one, three, one, one - three, one], rtol=1e-6)


def test_neighbours_are_those_of_one_hop_in_a_graph_with_large_hubs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kryograph.basis.MAX_TWO_HOP_ENTRIES", 0)
    rows = Basis(PIECES).rows("neighbours")
    np.testing.assert_allclose(to_dense(rows), unit(PIECES.adjacency.toarray()), atol=1e-6)


# Z


def test_projection_keeps_nearly_as_much_as_the_best_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kryograph.basis.RANK", 40)
    graph = Graph(weighted_ring(150), bag(150, 90))
    basis = Basis(graph)
    assert basis.Z.shape == (150, 40)
    singular = np.linalg.svd(weighted(graph), compute_uv=False)
    assert (basis.Z**2).sum() > 0.97 * (singular[:40] ** 2).sum()


def test_large_graph_gets_fewer_dimensions_but_not_less_than_32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = Graph(weighted_ring(150), bag(150, 90))
    for entries, expected in ((150 * 50, 50), (150 * 10, 32)):
        monkeypatch.setattr("kryograph.basis.MAX_ENTRIES", entries)
        assert Basis(graph).Z.shape == (150, expected)


# The representations that a graph has


@pytest.mark.parametrize(
    ("graph", "missing"),
    [
        (GRAPHS["bag"], set()),
        (GRAPHS["signed"], set()),
        (GRAPHS["few"], {"weighted", "centred"}),
        (GRAPHS["identity"], {"features", "weighted", "centred"}),
        (Graph(PIECES.adjacency, np.empty((19, 0))), {"features", "weighted", "centred"}),
        (Graph(PIECES.adjacency, np.ones((19, 3))), {"features", "weighted", "centred"}),
        (Graph(PIECES.adjacency, np.ones((19, 70))), {"features", "weighted", "centred"}),
        (Graph(toy.isolated(9).adjacency, bag(9)), {"neighbours"}),
        (toy.isolated(9), {"features", "weighted", "centred", "neighbours"}),
    ],
    ids=["bag", "signed", "few", "identity", "none", "constant", "many constant", "edgeless", "-"],
)
def test_a_graph_lacks_representations(graph: Graph, missing: set[str]) -> None:
    for x in (graph.features, sp.csr_array(graph.features)):
        basis = Basis(Graph(graph.adjacency, x))
        assert {name for name in REPRESENTATIONS if not basis.usable(name)} == missing


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("family", [toy.path, toy.isolated], ids=["path", "isolated"])
@pytest.mark.parametrize("columns", [None, 2, 80])
def test_rows_of_a_tiny_graph_are_finite(
    n: int, family: Callable[[int], Graph], columns: int | None
) -> None:
    graph = family(n)
    if columns is not None:
        graph = Graph(graph.adjacency, signed(n, columns))
    basis = Basis(graph)
    for name in filter(basis.usable, REPRESENTATIONS):
        rows = to_dense(basis.rows(name))
        assert rows.shape[0] == n
        assert np.isfinite(rows).all()


def test_rows_are_computed_once() -> None:
    basis = Basis(GRAPHS["bag"])
    assert basis.rows("hops") is basis.rows("hops")


# Order of the nodes, other graphs


@every_graph
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_permuted_nodes_have_permuted_rows(kind: str, name: str) -> None:
    if kind not in ("weighted", "identity") and name == "tree":
        pytest.skip("several components: eigenvectors with equal eigenvalues are arbitrary")
    graph = GRAPHS[kind]
    order = np.random.default_rng(4).permutation(graph.n)
    adjacency = sp.csr_array(graph.adjacency[order][:, order])
    identity = kind == "identity"
    x = graph.features if identity else graph.features[order]
    plain, moved = Basis(graph), Basis(Graph(adjacency, x))
    if not plain.usable(name):
        pytest.skip("this graph does not have the representation")
    rows = to_dense(plain.rows(name))[order]
    if name == "neighbours":
        rows = rows[:, order]  # a column stands for a node
    np.testing.assert_allclose(to_dense(moved.rows(name)), rows, atol=1e-4)


@pytest.mark.parametrize("kind", ["bag", "signed", "few"])
@pytest.mark.parametrize("name", [name for name, r in REPRESENTATIONS.items() if r.inductive])
def test_nodes_keep_their_rows_in_a_larger_graph(kind: str, name: str) -> None:
    graph = GRAPHS[kind]
    first = Basis(graph)
    if not first.usable(name):
        pytest.skip("this graph does not have the representation")
    rows = to_dense(first.rows(name))
    both = toy.disjoint(PIECES, toy.cycle(6))
    width = graph.features.shape[1]
    x = np.vstack([to_dense(graph.features), signed(6, width, seed=9)])
    larger = Basis(Graph(both.adjacency, x), first.state)
    np.testing.assert_allclose(to_dense(larger.rows(name))[: graph.n], rows, atol=1e-5)


def test_weights_of_words_stay_those_of_the_first_graph_if_no_value_is_negative_in_another() -> (
    None
):
    graph = GRAPHS["signed"]
    first = Basis(graph)
    rows = to_dense(first.rows("weighted"))
    x = np.vstack([graph.features[:1], abs(graph.features[1:])])
    positive = abs(graph.features)
    low, high = (
        to_dense(Basis(Graph(PIECES.adjacency, y), first.state).rows("weighted"))
        for y in (x, positive)
    )
    np.testing.assert_allclose(low[0], rows[0], atol=1e-6)
    np.testing.assert_allclose(low[1:], high[1:], atol=1e-6)


# Eigenvectors


@pytest.mark.parametrize("name", ["sym", "adjacency"])
@pytest.mark.parametrize(
    "graph",
    [toy.cycle(12), toy.isolated(12), toy.complete(12), toy.star(12), PIECES],
    ids=["cycle", "isolated", "complete", "star", "pieces"],
)
def test_eigenvectors_are_the_same_at_every_call(graph: Graph, name: str) -> None:
    first, second = (Basis(graph).eigenvectors(name, 16) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_missing_eigenvectors_are_zero() -> None:
    vectors = Basis(toy.path(5)).eigenvectors("sym", 8)
    assert vectors.shape == (5, 8)
    np.testing.assert_allclose((vectors**2).sum(axis=0), [1, 1, 1, 0, 0, 0, 0, 0], atol=1e-6)
    assert not Basis(toy.isolated(5)).eigenvectors("adjacency", 8).any()


# Parts


def test_unit_rows_leave_rows_of_zeros() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    expected = [[0.6, 0.8], [0.0, 0.0]]
    np.testing.assert_allclose(unit_rows(x), expected, rtol=1e-6)
    np.testing.assert_allclose(unit_rows(sp.csr_array(x)).toarray(), expected, rtol=1e-6)


def test_spread_of_a_constant_column_is_one() -> None:
    x = np.array([[0.1, 0.0, 1.0], [0.1, 0.0, 3.0], [0.1, 0.0, 5.0]])
    np.testing.assert_allclose(spread_of(x), [1.0, 1.0, np.sqrt(8 / 3)])


def test_eigenvectors_of_a_forest_of_stars() -> None:
    """A star with d leaves has the eigenvalues ±√d; ARPACK may fail where so few differ."""
    graph = toy.disjoint(*[toy.star(4 + k % 4) for k in range(20)])
    vectors = Basis(graph).eigenvectors("adjacency", 16)
    images = graph.adjacency @ vectors
    values = (vectors * images).sum(axis=0)
    np.testing.assert_allclose(images, vectors * values, atol=1e-4)
    largest = np.sqrt(np.diff(graph.adjacency.indptr).max())
    np.testing.assert_allclose(abs(values[:10]), largest, rtol=1e-4)  # five such stars, two each


def test_eigenvectors_not_found_in_time_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eigenvalues of a long cycle are close to each other; one restart finds few or none."""
    monkeypatch.setattr("kryograph.basis.EIGENVECTOR_WORK", 0)
    monkeypatch.setattr("kryograph.basis.LEAST_RESTARTS", 1)
    graph = toy.cycle(2000)
    vectors = Basis(graph).eigenvectors("sym", 16)
    present = vectors[:, np.abs(vectors).sum(axis=0) > 0]
    assert present.shape[1] < 16
    images = operator(graph, "sym").matrix @ present
    values = (images * present).sum(axis=0)
    np.testing.assert_allclose(images, values * present, atol=1e-5)


def test_constant_features_of_another_graph_have_columns_of_the_same_meaning() -> None:
    graph = toy.two_cliques(4)
    fitted = Basis(Graph(graph.adjacency, np.arange(16.0).reshape(8, 2)))
    fitted.rows("hops")
    other = Basis(Graph(graph.adjacency, np.full((8, 2), 3.0)), fitted.state)
    assert other.rows("hops").shape == (8, 6)


def test_eigenvectors_of_equal_components_are_eigenvectors() -> None:
    """Twenty stars of four sizes: few different eigenvalues, so that ARPACK may give up."""
    graph = toy.disjoint(*[toy.star(4 + k % 4) for k in range(20)])
    vectors = Basis(graph).eigenvectors("sym", 16).astype(np.float64)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(16), atol=1e-5)
    images = operator(graph, "sym").matrix @ vectors
    values = (images * vectors).sum(axis=0)
    np.testing.assert_allclose(images, values * vectors, atol=1e-5)
