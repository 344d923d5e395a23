"""`kryograph.figures.theorems` on graphs with known answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.figures.theorems import (
    Convergence,
    component_vectors,
    convergence,
    deep_ranks,
    rank_changes,
    snowball_residual,
    span,
)
from kryograph.graph import Graph
from kryograph.operators import operator


def from_corner(graph: Graph) -> Graph:
    """The graph with one feature, which is 1 on node 0."""
    corner = sp.csr_array(np.eye(graph.n, 1))
    return Graph(adjacency=graph.adjacency, features=corner)


def test_component_vectors_are_orthonormal_and_stay_where_they_are() -> None:
    graph = toy.disjoint(toy.star(4), toy.cycle(5), toy.isolated(2))
    v = component_vectors(graph).toarray()
    assert v.shape == (11, 4)
    assert v.T @ v == pytest.approx(np.eye(4))
    assert operator(graph) @ v == pytest.approx(v)


def test_on_a_complete_graph_one_step_is_enough() -> None:
    found = convergence(toy.complete(5), 3)
    assert found.components == 1
    assert found.second == pytest.approx(0, abs=1e-14)
    assert found.distances == pytest.approx([1, 0, 0, 0], abs=1e-14)
    assert found.rate == 0.0


@pytest.mark.parametrize("n", [7, 101])  # dense, and by Lanczos
def test_on_a_cycle_the_rate_is_its_second_eigenvalue(n: int) -> None:
    found = convergence(toy.cycle(n), 6_000 if n == 101 else 120)
    second = (1 + 2 * np.cos(2 * np.pi / n)) / 3
    assert found.second == pytest.approx(second, abs=1e-10)
    assert found.rate == pytest.approx(second, abs=1e-6)
    assert (np.diff(found.distances) < 0).all()


def test_components_without_edges_are_at_their_limit_from_the_start() -> None:
    found = convergence(toy.isolated(3), 2)
    assert (found.components, found.second) == (3, 0.0)
    assert found.distances.tolist() == [0, 0, 0]


def test_a_rate_is_read_where_distances_are_not_rounding() -> None:
    distances = np.concatenate([0.5 ** np.arange(40), np.full(50, 1e-15)])
    assert Convergence(1, 0.5, distances).rate == pytest.approx(0.5)


@pytest.mark.parametrize("components", [1, 2, 4])
def test_a_deep_gcn_has_at_most_as_many_columns_as_components(components: int) -> None:
    found = deep_ranks(components, nodes=120, degree=12, width=24, layers=100)
    assert found[0] == 24
    assert max(found[-10:]) <= components


def test_components_need_room_for_a_triangle() -> None:
    with pytest.raises(UsageError, match="needs 3 nodes for a triangle; it would have 2"):
        deep_ranks(5, nodes=10, degree=2, width=4, layers=2)


def test_tanh_never_lowers_a_rank_and_relu_does() -> None:
    found = {(f.function, f.columns, f.rows): f for f in rank_changes(rows=(2, 6), draws=3000)}
    for rows in (2, 6):
        assert found["tanh", "independent", rows].kept == 1
        assert found["tanh", "dependent", rows].raised == 1
    # x₁⁺y₂⁺ and x₂⁺y₁⁺ both vanish for 9 of 16 pairs.
    assert found["relu", "independent", 2].lowered == pytest.approx(9 / 16, abs=0.03)
    # With c < 0, in half of the draws, x⁺ and (c x)⁺ are independent.
    assert found["relu", "dependent", 6].raised == pytest.approx(0.5, abs=0.05)
    for fate in found.values():
        assert fate.lowered + fate.kept + fate.raised == pytest.approx(1)


def test_linear_snowball_is_a_krylov_network_up_to_rounding() -> None:
    graph = toy.two_cliques(5)
    x = np.random.default_rng(1).standard_normal((10, 3))
    for layers in (1, 2, 5):
        assert snowball_residual(operator(graph), x, layers, width=4) < 1e-14
    # The identity is not the operator: the powers matter.
    assert snowball_residual(operator(toy.isolated(10)), x, 3, width=4) < 1e-14


def test_the_span_of_a_corner_grows_until_the_far_side_is_reached() -> None:
    found = span(from_corner(toy.cycle(6)), 10)
    assert found.dimensions == (1, 2, 3, 4)
    assert found.grade == 4
    assert (found.nodes, found.features) == (6, 1)
    assert span(from_corner(toy.complete(6)), 10).dimensions == (1, 2)


def test_a_span_that_may_still_grow_has_no_grade() -> None:
    found = span(from_corner(toy.cycle(6)), 2)
    assert (found.dimensions, found.grade) == ((1, 2), None)
    assert span(from_corner(toy.cycle(6)), 4).grade == 4


def test_features_that_span_everything_need_no_second_block() -> None:
    assert span(toy.path(5), 5).dimensions == (5,)


def test_the_growth_of_a_span_is_told() -> None:
    told: list[int] = []
    span(from_corner(toy.cycle(6)), 10, told.append)
    assert told == [1, 2, 3, 4]
