"""Bases of Krylov spaces: identities, grades by hand, every ending."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.krylov import (
    CLASSICAL,
    GLOBAL,
    LOOP_INTERCHANGE,
    BlockBasis,
    BlockInnerProduct,
    End,
    arnoldi,
    block_lanczos,
    grade,
)
from kryograph.krylov.inner_products import INNER_PRODUCTS
from kryograph.operators import Operator, operator

EPS = np.finfo(np.float64).eps
PIECES = toy.disjoint(toy.complete(4), toy.cycle(7), toy.isolated(2), toy.star(5))
GRAPHS = {
    "cycle": toy.cycle(12),
    "star": toy.star(9),
    "cliques": toy.two_cliques(5),
    "pieces": PIECES,
    "path": toy.path(15),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_product = pytest.mark.parametrize("product", INNER_PRODUCTS.values(), ids=INNER_PRODUCTS)
both = pytest.mark.parametrize("process", [arnoldi, block_lanczos])


def corner(n: int) -> np.ndarray:
    return np.eye(n, 1)


def noise(n: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, width))


# Identities


def check(
    found: BlockBasis[np.ndarray],
    L: Operator,
    x: np.ndarray,
    product: BlockInnerProduct,
    given_up: float = 0.0,
) -> None:
    """L V = V H but for the last block, X = V_1 B, and V is orthonormal to n · eps, n at least 10.

    Where directions may be short but not zero, what is given up of them is missing in H.
    """
    v, h, blocks = found.basis, found.projected, found.blocks
    n, tolerance = len(x), 20 * len(x) * EPS
    if not blocks:
        assert not x.any()
        return
    np.testing.assert_allclose(blocks[0] @ found.start, x, atol=tolerance * abs(x).max())
    left, right = L.matrix @ v, v @ h
    # A space that ended because it has n directions may have lost a remainder in its last block.
    complete = found.end is End.INVARIANT and len(blocks) < n
    inside = v.shape[1] if complete else v.shape[1] - blocks[-1].shape[1]
    np.testing.assert_allclose(left[:, :inside], right[:, :inside], atol=tolerance + given_up)
    for i, one in enumerate(blocks):
        for j, other in enumerate(blocks):
            if product is CLASSICAL:
                expected = np.eye(one.shape[1]) if i == j else np.zeros((1, 1))
                assert abs(one.T @ other - expected).max() <= max(n, 10) * EPS * 4
                continue
            inner = product.inner(one, other)
            if i != j:
                assert abs(inner).max() <= max(n, 10) * EPS * 4
            else:
                # A column that has ended is zero, and so is its length.
                diagonal = np.diag(inner)
                assert min(abs(diagonal - 1).max(), abs(diagonal * (diagonal - 1)).max()) < 1e-13


@every_graph
@every_product
@both
@pytest.mark.parametrize("steps", [1, 3, 50])
def test_the_defining_identities(
    graph: Graph, product: BlockInnerProduct, process, steps: int
) -> None:
    L = operator(graph)
    for x in (noise(graph.n, 3), corner(graph.n), np.ones((graph.n, 2)), np.eye(graph.n)):
        check(process(L, x, steps, product=product), L, x, product)


@settings(max_examples=40)
@given(
    n=st.integers(1, 20),
    width=st.integers(1, 6),
    density=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    product=st.sampled_from(list(INNER_PRODUCTS.values())),
    process=st.sampled_from([arnoldi, block_lanczos]),
    seed=st.integers(0, 2**32 - 1),
)
def test_identities_on_random_graphs(n, width, density, product, process, seed) -> None:
    rng = np.random.default_rng(seed)
    ends = np.stack(np.nonzero(np.triu(rng.random((n, n)) < density, 1)))
    L = operator(Graph.from_edges(ends, n))
    x = rng.integers(-1, 2, (n, width)).astype(np.float64)  # often dependent, sometimes zero
    found = process(L, x, 2 * n, product=product)
    check(found, L, x, product, given_up=2 * EPS**0.5)
    assert found.end in (End.INVARIANT, End.ZERO)


def test_global_space_ends_after_n_directions_although_rounding_leaves_a_remainder() -> None:
    rng = np.random.default_rng(184)
    ends = np.stack(np.nonzero(np.triu(rng.random((15, 15)) < 0.3, 1)))
    L = operator(Graph.from_edges(ends, 15))
    x = rng.integers(-1, 2, (15, 3)).astype(np.float64)
    basis = arnoldi(L, x, 30, product=INNER_PRODUCTS["global"])
    assert basis.end is End.INVARIANT
    assert len(basis.blocks) == 15


@every_graph
@every_product
def test_both_processes_find_the_same_space(graph: Graph, product: BlockInnerProduct) -> None:
    L, x = operator(graph), noise(graph.n, 2)
    one, other = (process(L, x, 4, product=product) for process in (arnoldi, block_lanczos))
    assert one.ranks == other.ranks
    np.testing.assert_allclose(
        one.basis @ np.linalg.pinv(one.basis), other.basis @ np.linalg.pinv(other.basis), atol=1e-9
    )


@every_graph
@every_product
def test_the_blocks_of_h_lie_in_the_algebra(graph: Graph, product: BlockInnerProduct) -> None:
    found = block_lanczos(operator(graph), noise(graph.n, 2), 2, product=product)
    h = found.projected
    for i in (0, 2):
        for j in (0, 2):
            assert product.contains(h[i : i + 2, j : j + 2])
    assert product.contains(found.start)
    assert (h == h.T).all()


def test_h_by_hand() -> None:
    # On a long path under A + I, each step leads one node further.
    L = operator(toy.path(9), "affinity")
    found = arnoldi(L, corner(9), 4)
    np.testing.assert_allclose(abs(found.basis), np.eye(9, 4), atol=1e-14)
    expected = np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1)
    np.testing.assert_allclose(abs(found.projected), expected, atol=1e-14)


def test_arnoldi_takes_an_asymmetric_operator() -> None:
    L = operator(toy.path(7), "rw")
    assert not L.symmetric
    for product in INNER_PRODUCTS.values():
        x = noise(7, 2)
        check(arnoldi(L, x, 3, product=product), L, x, product)
        check(arnoldi(L, x, 20, product=product), L, x, product)


def test_a_basis_stays_orthonormal_when_ritz_values_have_converged() -> None:
    # Without re-orthogonalisation the inner products come to 1 here.
    diagonal = np.r_[np.linspace(0, 0.5, 198), 1.0, 1.5]
    S = sp.diags_array(diagonal)
    for process in (arnoldi, block_lanczos):
        v = process(S, noise(200, 2), 60).basis
        assert abs(v.T @ v - np.eye(120)).max() <= 200 * EPS


def test_short_directions_are_orthogonal_too() -> None:
    # The columns of X, and those of L V, are alike but for a millionth.
    x = np.ones((40, 3)) + 1e-6 * noise(40, 3)
    L = operator(toy.path(40))
    for process in (arnoldi, block_lanczos):
        found = process(L, x, 8)
        v = found.basis
        assert found.ranks == (3,) * 8
        assert abs(v.T @ v - np.eye(24)).max() <= 40 * EPS


# Grades, by hand


@every_product
@pytest.mark.parametrize("name", ["sym", "rw", "laplacian", "affinity"])
def test_grades_of_a_complete_graph(product: BlockInnerProduct, name: str) -> None:
    L = operator(toy.complete(6), name)
    assert grade(L, np.ones((6, 1)), product=product) == 1
    assert grade(L, corner(6), product=product) == 2
    assert grade(L, noise(6, 1), product=product) == 2


@every_product
@pytest.mark.parametrize("n", [3, 4, 5, 8, 9])
@pytest.mark.parametrize("name", ["sym", "rw", "laplacian"])
def test_grades_of_a_cycle(product: BlockInnerProduct, n: int, name: str) -> None:
    L = operator(toy.cycle(n), name)
    assert grade(L, np.ones((n, 1)), product=product) == 1
    assert grade(L, corner(n), product=product) == n // 2 + 1


@every_product
@pytest.mark.parametrize("name", ["sym", "rw", "laplacian"])
def test_grades_of_a_star(product: BlockInnerProduct, name: str) -> None:
    L = operator(toy.star(7), name)
    assert grade(L, corner(7), product=product) == 2  # the hub, and all leaves alike
    assert grade(L, np.roll(corner(7), 1), product=product) == 3  # and one leaf unlike the others
    assert grade(L, noise(7, 1), product=product) == 3


@pytest.mark.parametrize("name", ["sym", "rw"])
def test_grades_of_a_disjoint_union(name: str) -> None:
    # The eigenvalues that X sees: 1 and 0 on K_4, three on C_5 of which 1 is shared, 1 alone.
    L = operator(toy.disjoint(toy.complete(4), toy.cycle(5), toy.isolated(2)), name)
    assert grade(L, np.ones((11, 1))) == 1
    assert grade(L, np.eye(11)[:, :1]) == 2
    assert grade(L, np.eye(11)[:, 4:5]) == 3
    assert grade(L, np.eye(11)[:, [9]]) == 1
    assert grade(L, np.eye(11)[:, [0]] + np.eye(11)[:, [4]]) == 4
    assert grade(L, np.eye(11)[:, [0, 4]]) == 3
    assert grade(L, np.eye(11)[:, [0, 4]], product=LOOP_INTERCHANGE) == 3
    assert grade(L, np.eye(11)[:, [0, 4]], product=GLOBAL) == 4


def test_more_columns_need_fewer_blocks_with_the_classical_product_only() -> None:
    L, x = operator(toy.path(12)), noise(12, 4)
    assert [grade(L, x[:, :f]) for f in (1, 2, 3, 4)] == [12, 6, 4, 3]
    for product in (GLOBAL, LOOP_INTERCHANGE):
        assert grade(L, x, product=product) == 12
    assert grade(L, np.eye(12)) == 1


def test_a_path_has_as_many_eigenvalues_as_nodes() -> None:
    for n in (1, 2, 10, 50):
        assert grade(operator(toy.path(n), "laplacian"), corner(n)) == n


@every_graph
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_random_start_sees_every_eigenvalue(graph: Graph, seed: int) -> None:
    L = operator(graph, "laplacian")
    values = np.linalg.eigvalsh(L.matrix.toarray())
    distinct = 1 + int((np.diff(values) > 1e-8).sum())
    assert grade(L, noise(graph.n, 1, seed)) == distinct


@every_product
def test_the_grade_does_not_depend_on_scale(product: BlockInnerProduct) -> None:
    L, x = operator(toy.cycle(8)).matrix, noise(8, 2)
    expected = grade(L, x, product=product)
    assert grade(1e-6 * L, 1e9 * x, product=product) == expected
    if product is not GLOBAL:
        assert grade(L, x * [1.0, 1e-12], product=product) == expected


def test_the_tolerance_decides() -> None:
    L = operator(toy.complete(6))
    nearly = np.ones((6, 1)) + 1e-6 * corner(6)
    assert grade(L, nearly) == 2
    assert grade(L, nearly, tolerance=1e-4) == 1
    assert grade(L, nearly.astype(np.float32)) == 1  # by default the root of the rounding


def test_grades_agree_for_tensors_and_arrays_of_either_precision() -> None:
    graph = toy.two_cliques(5)
    L = operator(graph)
    x = noise(graph.n, 1)
    expected = grade(L, x)
    assert expected == len(np.unique(np.linalg.eigvalsh(L.matrix.toarray()).round(9)))
    for dtype in (np.float32, np.float64):
        assert grade(L.matrix.astype(dtype), x.astype(dtype)) == expected
        assert grade(L, torch.from_numpy(x.astype(dtype))) == expected
        assert grade(torch.from_numpy(L.matrix.toarray().astype(dtype)), x) == expected


# Endings


@both
@every_product
def test_a_zero_start_is_an_ordinary_case(process, product: BlockInnerProduct) -> None:
    found = process(operator(toy.cycle(5)), np.zeros((5, 2)), 3, product=product)
    assert (found.end, found.grade, found.ranks, found.blocks) == (End.ZERO, 0, (), [])
    assert found.basis.shape == (5, 0)
    assert found.projected.shape == (0, 0)
    assert grade(operator(toy.cycle(5)), np.zeros((5, 2)), product=product) == 0


@both
@every_product
def test_an_eigenvector_as_start_ends_after_one_step(process, product: BlockInnerProduct) -> None:
    for name in ("sym", "laplacian"):
        found = process(operator(toy.cycle(7), name), np.ones((7, 1)), 5, product=product)
        assert (found.end, found.grade) == (End.INVARIANT, 1)
        assert found.projected.item() == pytest.approx(1.0 if name == "sym" else 0.0)
    degree = np.sqrt(operator(toy.star(8), "laplacian").matrix.diagonal())
    found = process(operator(toy.star(8), "normalised-laplacian"), degree, 5, product=product)
    assert (found.end, found.grade) == (End.INVARIANT, 1)  # L X is rounding, and nothing else


@both
def test_the_steps_asked_for(process) -> None:
    found = process(operator(toy.path(30)), noise(30, 2), 4)
    assert (found.end, found.grade, found.ranks) == (End.STEPS, None, (2, 2, 2, 2))
    assert found.basis.shape == (30, 8)
    assert found.projected.shape == (8, 8)


@both
def test_the_zero_matrix_and_the_identity(process) -> None:
    for matrix in (np.zeros((4, 4)), 2 * np.eye(4), sp.csr_array((4, 4))):
        found = process(matrix, noise(4, 2), 3)
        assert (found.end, found.ranks) == (End.INVARIANT, (2,))


@both
def test_dependent_columns_are_given_up(process) -> None:
    x = noise(20, 2)
    deficient = np.concatenate([x, x @ [[1.0], [2.0]], np.zeros((20, 1))], axis=1)
    L = operator(toy.path(20))
    found = process(L, deficient, 3)
    assert found.ranks == (2, 2, 2)
    assert [block.shape for block in found.blocks] == [(20, 2)] * 3
    assert found.start.shape == (2, 4)
    check(found, L, deficient, CLASSICAL)


@both
def test_directions_that_run_out_are_given_up_one_by_one(process) -> None:
    # On its own complete graph a corner has two directions; on its path it has six.
    L = operator(toy.disjoint(toy.complete(4), toy.path(6)))
    x = np.eye(10)[:, [0, 4]]
    assert process(L, x, 9).ranks == (2, 2, 1, 1, 1, 1)
    assert process(L, x, 9, product="loop-interchange").ranks == (2, 2, 1, 1, 1, 1)
    assert process(L, x, 9, product="global").ranks == (1,) * 7  # 0, and the path's six


@both
def test_more_columns_than_nodes(process) -> None:
    found = process(operator(toy.path(3)), noise(3, 8), 4)
    assert (found.end, found.ranks) == (End.INVARIANT, (3,))
    assert found.start.shape == (3, 8)


@both
def test_bad_arguments(process) -> None:
    L = operator(toy.path(3))
    with pytest.raises(UsageError, match="steps must be at least 1; it is 0"):
        process(L, corner(3), 0)
    for tolerance in (0.0, -1e-3, 1.0, float("nan")):
        with pytest.raises(UsageError, match="tolerance must lie between 0 and 1"):
            process(L, corner(3), 1, tolerance=tolerance)
        with pytest.raises(UsageError, match="tolerance must lie between 0 and 1"):
            grade(L, corner(3), tolerance=tolerance)
