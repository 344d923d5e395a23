from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph

FAMILIES: dict[str, Callable[[int], Graph]] = {
    "isolated": toy.isolated,
    "path": toy.path,
    "cycle": toy.cycle,
    "complete": toy.complete,
    "star": toy.star,
    "two_cliques": toy.two_cliques,
}


def eigenvalues(graph: Graph) -> npt.NDArray[np.float64]:
    adjacency = graph.adjacency.toarray()
    return np.linalg.eigvalsh(np.diag(adjacency.sum(axis=1)) - adjacency)


@pytest.mark.parametrize("n", [3, 4, 5, 8, 13])
@pytest.mark.parametrize("family", FAMILIES)
def test_known_spectra(family: str, n: int) -> None:
    expected = toy.laplacian_spectrum(family, n)
    np.testing.assert_allclose(eigenvalues(FAMILIES[family](n)), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("graph", "nodes", "edges"),
    [
        (toy.isolated(4), 4, 0),
        (toy.path(5), 5, 4),
        (toy.path(1), 1, 0),
        (toy.cycle(5), 5, 5),
        (toy.complete(5), 5, 10),
        (toy.star(5), 5, 4),
        (toy.two_cliques(4), 8, 13),
    ],
)
def test_sizes(graph: Graph, nodes: int, edges: int) -> None:
    assert (graph.n, graph.edges) == (nodes, edges)
    assert not str(graph.cleaning).count("loop")


def test_a_disjoint_union_has_the_eigenvalues_and_features_of_its_parts() -> None:
    parts = [toy.path(4), toy.isolated(2), toy.complete(3)]
    union = toy.disjoint(*parts)
    expected = np.sort(np.concatenate([eigenvalues(part) for part in parts]))
    np.testing.assert_allclose(eigenvalues(union), expected, atol=1e-12)
    assert connected_components(union.adjacency)[0] == 4
    np.testing.assert_array_equal(sp.csr_array(union.features).toarray(), np.eye(9))


def test_a_bridge_joins_the_cliques() -> None:
    graph = toy.two_cliques(3)
    assert graph.adjacency[2, 3] == 1
    assert graph.adjacency[0, 3] == 0
    assert graph.adjacency.sum(axis=1).tolist() == [2, 2, 3, 3, 2, 2]


def test_impossible_toys() -> None:
    with pytest.raises(UsageError, match="'cycle' needs 3 nodes or more; got 2"):
        toy.cycle(2)
    with pytest.raises(UsageError, match="at least one graph"):
        toy.disjoint()
    with pytest.raises(UsageError, match="did you mean 'cycle'"):
        toy.laplacian_spectrum("cycel", 3)
