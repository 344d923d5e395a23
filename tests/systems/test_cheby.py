from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.cheby import ChebySystem, largest_eigenvalue


def filtered(graph: Graph, laplacian: str, which: str = "sym") -> np.ndarray:
    """M, dense."""
    chosen = system("cheby", {"laplacian": laplacian}, operator=which)
    assert isinstance(chosen, ChebySystem)
    return chosen.diffusion(graph).matrix.toarray()


def spectrum(matrix: np.ndarray) -> np.ndarray:
    return np.sort(np.linalg.eigvals(matrix).real)


@pytest.mark.parametrize("which", ["sym", "rw"])
def test_the_triangle_under_every_laplacian(which: str) -> None:
    # The Laplacian of a triangle has eigenvalues 0, 3/2, 3/2.
    graph = toy.cycle(3)
    expected = {"unscaled": [0, 1.5, 1.5], "scaled": [-1, 1, 1], "two": [-1, 0.5, 0.5]}
    for laplacian, eigenvalues in expected.items():
        found = spectrum(filtered(graph, laplacian, which))
        np.testing.assert_allclose(found, eigenvalues, atol=1e-12)


def test_a_graph_without_edges_can_be_scaled() -> None:
    np.testing.assert_array_equal(filtered(toy.isolated(3), "scaled"), -np.eye(3))


@pytest.mark.parametrize("n", [5, 40, 41])
def test_the_largest_eigenvalue_of_a_cycle(n: int) -> None:
    # 1 - cos(2 π k / n): 2 for even n, where a ring can be coloured with two colours.
    expected = 1 - np.cos(2 * np.pi * (n // 2) / n)
    found = largest_eigenvalue(operator(toy.cycle(n), "normalised-laplacian"))
    assert found == pytest.approx(expected, abs=1e-8)


def test_a_star_walks_back_and_forth() -> None:
    star = toy.disjoint(toy.star(4), toy.isolated(1))
    expected = np.zeros((5, 5))
    expected[0, 1:4] = 1 / 3
    expected[1:4, 0] = 1
    np.testing.assert_allclose(operator(star, "neighbour-mean").matrix.toarray(), expected)
    there = np.diag([1, 1, 1, 1, 0])
    np.testing.assert_allclose(operator(star, "walk-laplacian").matrix.toarray(), there - expected)
    assert operator(star, "neighbour-mean").matrix.nnz == 6


def test_decay_is_the_first_layers_alone_or_everyones() -> None:
    chosen = system("cheby")
    assert isinstance(chosen, ChebySystem)
    network = chosen.network(4, 2)
    assert [p is network.convs[0].weight for p in chosen.decayed(network) or ()] == [True]
    everyone = system("cheby", {"decay_all": True})
    assert isinstance(everyone, ChebySystem)
    assert everyone.decayed(network) is None
