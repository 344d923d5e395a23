from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.explain.walks import arrivals, through_edges
from kryograph.operators import operator


def test_arrivals_are_rows_of_powers() -> None:
    L = operator(toy.star(5), "rw").matrix
    dense = L.toarray()
    powers = [np.linalg.matrix_power(dense, k)[2] for k in range(4)]
    np.testing.assert_allclose(arrivals(2, [L] * 3, 5), powers, atol=1e-15)


def test_arrivals_without_steps_are_the_node_itself() -> None:
    assert arrivals(1, [], 3).tolist() == [[0.0, 1.0, 0.0]]


def test_on_a_path_everything_from_the_right_comes_through_the_right_edge() -> None:
    L = operator(toy.path(4), "affinity").matrix  # steps of a node to itself or a neighbour
    values = np.zeros((4, 4))
    values[:, 3] = 1.0  # only the last node has a value
    by_edge, own = through_edges(1, [L] * 3, values)
    assert by_edge.tolist() == [0.0, 0.0, (arrivals(1, [L] * 3, 4) * values).sum(), 0.0]
    assert own.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_walks_that_stay_first_count_for_the_edge_that_they_take_later() -> None:
    L = operator(toy.path(2), "rw").matrix  # every entry is one half
    values = np.array([[0.0, 0.0], [0.0, 0.0], [8.0, 8.0]])
    by_edge, own = through_edges(0, [L, L], values)
    # Of the four walks of two steps one stays, and three use the edge.
    assert by_edge.tolist() == [0.0, 6.0]
    assert own.tolist() == [1.0, 0.5, 0.25]


@pytest.mark.parametrize("node", [0, 3, 12])
def test_edges_and_own_part_add_up_to_what_arrives(node: int) -> None:
    graph = toy.disjoint(toy.two_cliques(4), toy.isolated(1), toy.star(4))
    steps = [operator(graph, name).matrix for name in ("sym", "neighbour-mean", "rw")]
    values = np.random.default_rng(0).normal(size=(4, graph.n))
    by_edge, own = through_edges(node, steps, values)
    received = (arrivals(node, steps, graph.n) * values).sum()
    assert by_edge.sum() + own @ values[:, node] == pytest.approx(received, abs=1e-12)
    neighbours = graph.adjacency[[node]].indices
    assert not np.delete(by_edge, neighbours).any()
