"""A basis of the same nodes with other edges or features."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import toy
from kryograph.graph import Graph


def test_what_was_learned_stays_and_rows_are_those_of_the_other_graph() -> None:
    graph = toy.two_cliques(4)
    x = np.random.default_rng(0).normal(size=(graph.n, 3))
    basis = Basis(Graph(graph.adjacency, x))
    basis.rows("hops")
    other = basis.changed(Graph(toy.cycle(graph.n).adjacency, x))
    assert other.state.keys() == basis.state.keys()
    width = x.shape[1]
    own, changed = np.asarray(basis.rows("hops")), np.asarray(other.rows("hops"))
    np.testing.assert_array_equal(own[:, :width], changed[:, :width])  # no step
    assert np.abs(own[:, width:] - changed[:, width:]).max() > 0.01


@pytest.mark.parametrize("name", ["hops", "sum"])
def test_without_features_nodes_keep_their_positions(name: str) -> None:
    graph = toy.two_cliques(4)
    basis = Basis(graph)
    same = basis.changed(graph)
    np.testing.assert_array_equal(np.asarray(basis.rows(name)), np.asarray(same.rows(name)))
    other = basis.changed(Graph(toy.path(graph.n).adjacency, graph.features))
    np.testing.assert_array_equal(other.Z, basis.Z)
