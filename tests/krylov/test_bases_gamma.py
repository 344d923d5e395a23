"""`kryograph.krylov.coefficients`: the paper's Γ, in the algebra it belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.krylov import (
    BlockInnerProduct,
    apply,
    gamma,
    grade,
    inverse,
    krylov_blocks,
    rational,
)
from kryograph.krylov.inner_products import INNER_PRODUCTS
from kryograph.operators import Operator, operator

GRAPHS = {
    "complete": toy.complete(6),
    "cycle": toy.cycle(12),
    "star": toy.star(9),
    "pieces": toy.disjoint(toy.complete(4), toy.cycle(7), toy.isolated(2)),
    "path": toy.path(30),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_product = pytest.mark.parametrize("product", INNER_PRODUCTS.values(), ids=INNER_PRODUCTS)


def noise(n: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, width))


def combined(L: Operator, x: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    powers = krylov_blocks(L, x, len(blocks))
    return sum((power @ c for power, c in zip(powers, blocks, strict=True)), np.zeros_like(x))


@every_graph
@every_product
@pytest.mark.parametrize("g", ["exp", inverse(1.3), np.cos], ids=["exp", "inverse", "cos"])
@pytest.mark.parametrize(("name", "accuracy"), [("sym", 1e-11), ("laplacian", 1e-6)])
def test_blocks_times_gamma_is_the_filter(
    graph: Graph, product: BlockInnerProduct, g: Any, name: str, accuracy: float
) -> None:
    L = operator(graph, name)
    for x in (noise(graph.n, 2), np.eye(graph.n, 1), np.ones((graph.n, 3))):
        found = gamma(g, L, x, product=product)
        assert found.shape == (grade(L, x, product=product), x.shape[1], x.shape[1])
        assert all(product.contains(c) for c in found)
        exact = apply(g, L, x, tolerance=1e-13)
        assert np.linalg.norm(combined(L, x, found) - exact) < accuracy * np.linalg.norm(exact)


def test_a_filter_by_hand() -> None:
    # L² = L on a complete graph, so that g(L) = g(0) I + (g(1) - g(0)) L.
    L, x = operator(toy.complete(4)), np.eye(4, 1)
    for g, at_0, at_1 in (("exp", 1.0, np.e), (inverse(1.0), 1.0, 0.5), (np.cos, 1.0, np.cos(1))):
        assert gamma(g, L, x).ravel() == pytest.approx([at_0, at_1 - at_0])


@every_product
def test_a_polynomial_of_low_degree_has_its_own_coefficients(product: BlockInnerProduct) -> None:
    L, x = operator(toy.path(12)), noise(12, 2)
    found = gamma(rational([3.0, -1.0, 0.5]), L, x, 3, product=product)
    for c, expected in zip(found, [3.0, -1.0, 0.5], strict=True):
        np.testing.assert_allclose(c, expected * np.eye(2), atol=1e-12)


@every_product
def test_fewer_blocks_come_as_near_as_they_can(product: BlockInnerProduct) -> None:
    L, x = operator(toy.path(25)), noise(25, 2)
    exact = apply("exp", L, x)
    errors = []
    for m in (1, 2, 4, 6):
        found = gamma("exp", L, x, m, product=product)
        left = combined(L, x, found) - exact
        errors.append(np.linalg.norm(left))
        for power in krylov_blocks(L, x, m):
            assert abs(product.inner(power, left)).max() < 1e-8  # least squares
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4 < 0.1 < errors[0]


def test_more_blocks_than_the_grade_do_no_harm() -> None:
    L, x = operator(toy.cycle(6)), np.eye(6, 1)
    found = gamma("exp", L, x, 9)
    assert len(found) == 9
    np.testing.assert_allclose(combined(L, x, found), apply("exp", L, x), atol=1e-12)


def test_dependent_columns_share_their_blocks() -> None:
    x = noise(12, 1) @ [[1.0, 2.0, 0.0]]
    L = operator(toy.path(12))
    found = gamma("exp", L, x)
    np.testing.assert_allclose(combined(L, x, found), apply("exp", L, x), atol=1e-11)


@every_product
def test_an_operator_that_is_not_symmetric(product: BlockInnerProduct) -> None:
    L, x = operator(toy.path(8), "rw"), noise(8, 2)
    found = gamma("exp", L, x, product=product)
    exact = apply("exp", L, x, method="arnoldi")
    np.testing.assert_allclose(combined(L, x, found), exact, atol=1e-11)


def test_nothing_needs_no_blocks() -> None:
    L = operator(toy.path(4))
    assert gamma("exp", L, np.zeros((4, 2))).shape == (0, 2, 2)
    assert not gamma("exp", L, np.zeros((4, 2)), 3).any()


def test_the_answer_is_of_the_kind_of_x() -> None:
    L = operator(toy.path(4))
    found = gamma("exp", L, torch.eye(4, 2))
    assert found.dtype == torch.float32
    assert found.shape == (3, 2, 2)  # two nodes, then one more, then the last


def test_bad_arguments() -> None:
    L = operator(toy.path(4))
    with pytest.raises(UsageError, match="at least 1 block; it is 0"):
        gamma("exp", L, np.eye(4, 1), 0)
    with pytest.raises(UsageError, match="not finite, or jumps, at an eigenvalue"):
        gamma("inverse", operator(toy.path(4), "laplacian"), np.eye(4, 1))
