"""`kryograph.krylov.inputs`: every kind of L and X gives one answer, in X's kind; bad ones none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.krylov import apply, arnoldi, block_lanczos, gamma, grade
from kryograph.krylov.inputs import Pair
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix

L = operator(toy.star(6))
DENSE = L.matrix.toarray()
X = np.random.default_rng(0).standard_normal((6, 2))
CSR = SparseMatrix.from_scipy(L.matrix, dtype=torch.float64)

MATRICES: dict[str, Any] = {
    "operator": L,
    "SparseMatrix": CSR,
    "SciPy CSR": L.matrix,
    "SciPy COO": L.matrix.tocoo(),
    "SciPy matrix": sp.csc_matrix(L.matrix),
    "NumPy": DENSE,
    "torch": torch.from_numpy(DENSE),
    "torch COO": torch.from_numpy(DENSE).to_sparse(),
    "torch CSR": CSR._matrix,
}
FEATURES: dict[str, Any] = {
    "NumPy": X,
    "NumPy, by columns": np.asfortranarray(X),
    "torch": torch.from_numpy(X),
    "torch, by columns": torch.from_numpy(X.T.copy()).T,
}
every_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
every_use = pytest.mark.parametrize(
    "use",
    [
        lambda L, X: apply("exp", L, X),
        lambda L, X: arnoldi(L, X, 3).basis,
        lambda L, X: block_lanczos(L, X, 3).basis,
        lambda L, X: gamma("exp", L, X),
        lambda L, X: grade(L, X),
    ],
    ids=["apply", "arnoldi", "lanczos", "gamma", "grade"],
)


@every_matrix
@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@every_use
def test_kinds_do_not_matter(matrix: Any, features: Any, use: Callable[[Any, Any], Any]) -> None:
    expected, found = use(L, X), use(matrix, features)
    if not isinstance(expected, int):
        assert type(found) is type(features)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_the_answer_has_the_type_of_x(kind: type) -> None:
    ones = np.ones((6, 1), dtype=kind)
    answer = np.float64 if kind is np.int64 else kind
    found = apply("exp", operator(toy.star(6), "laplacian"), ones)
    assert found.dtype == answer
    np.testing.assert_allclose(found, 1.0, rtol=1e-6)
    tensor = apply("exp", operator(toy.star(6), "laplacian"), torch.from_numpy(ones))
    assert tensor.numpy().dtype == answer
    basis = block_lanczos(L, ones, 2)
    assert {basis.basis.dtype, basis.projected.dtype, basis.start.dtype} == {np.dtype(answer)}


def test_single_precision_is_as_good_as_its_rounding() -> None:
    exact = apply("exp", L, X)
    found = apply("exp", L.matrix.astype(np.float32), X.astype(np.float32))
    assert 1e-9 < abs(found - exact).max() < 1e-6


def test_a_vector_is_answered_by_a_vector() -> None:
    for x in (X[:, 0], torch.from_numpy(X[:, 0])):
        found = apply("exp", L, x)
        assert found.shape == (6,)
        np.testing.assert_array_equal(found, apply("exp", L, X[:, :1])[:, 0])


def test_sparse_features_become_dense() -> None:
    few = sp.csr_array(np.eye(6, 2))
    for x in (few, SparseMatrix.from_scipy(few, dtype=torch.float64)):
        np.testing.assert_allclose(apply("exp", L, x), apply("exp", L, np.eye(6, 2)), atol=1e-15)


def test_what_comes_in_is_not_written_to() -> None:
    x, matrix = X.copy(), DENSE.copy()
    for product in ("classical", "global", "loop-interchange"):
        apply("exp", matrix, x, product=product)
        arnoldi(matrix, x[:, :1], 3, product=product)
    apply("exp", matrix, x, method="power-series")
    assert (x == X).all()
    assert (matrix == DENSE).all()


def test_gradients_end_here() -> None:
    x = torch.from_numpy(X).requires_grad_()
    assert not apply("exp", L, x).requires_grad


def test_the_coarser_type_is_what_rounding_means() -> None:
    assert Pair.of(L, X).eps == np.finfo(np.float64).eps
    assert Pair.of(L.matrix.astype(np.float32), X).eps == np.finfo(np.float32).eps
    assert Pair.of(L, torch.ones(6, 1)).eps == np.finfo(np.float32).eps


def test_symmetry_is_seen_up_to_rounding() -> None:
    assert Pair.of(DENSE, X).symmetric
    assert Pair.of(L.matrix.astype(np.float32), X).symmetric
    bent = DENSE.copy()
    bent[0, 1] += 1e-9
    assert not Pair.of(bent, X).symmetric
    assert not Pair.of(sp.csr_array(bent), X).symmetric
    assert Pair.of(bent.astype(np.float32), X).symmetric


# Bad input


def spoilt(value: float, of: np.ndarray) -> np.ndarray:
    copy = of.copy()
    copy[1, 1] = value
    return copy


@every_use
@pytest.mark.parametrize(
    ("matrix", "x", "message"),
    [
        (DENSE[:4], X, "square; it is 4 × 6"),
        (DENSE[0], X, r"square matrix; it has shape \(6,\)"),
        (sp.csr_array(DENSE[:, :4]), X, "square; it is 6 × 4"),
        (DENSE, X[:4], "6 nodes and X has 4 rows"),
        (DENSE, X[None], r"N × F, or N numbers; it has shape \(1, 6, 2\)"),
        (spoilt(np.nan, DENSE), X, "L has entries that are not finite"),
        (sp.csr_array(spoilt(np.inf, DENSE)), X, "L has entries that are not finite"),
        (DENSE, spoilt(np.nan, X), "X has entries that are not finite"),
        (DENSE, torch.from_numpy(spoilt(-np.inf, X)), "X has entries that are not finite"),
        (DENSE + 0j, X, "real numbers; one of them holds complex128"),
        (DENSE, X > 0, "real numbers; one of them holds bool"),
        (DENSE, torch.from_numpy(X) > 0, "real numbers; one of them holds torch.bool"),
    ],
)
def test_bad_input_is_one_sentence(
    use: Callable[[Any, Any], Any], matrix: Any, x: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        use(matrix, x)
    assert str(raised.value).endswith(".")


def test_lanczos_refuses_an_asymmetric_matrix() -> None:
    walk = operator(toy.path(4), "rw")
    for use in (
        lambda: block_lanczos(walk, np.eye(4, 1), 2),
        lambda: apply("exp", walk.matrix, np.eye(4, 1)),
    ):
        with pytest.raises(UsageError, match="use the operator sym"):
            use()


def test_numbers_whose_squares_are_none_are_refused() -> None:
    for matrix, x in ((L, 1e200 * X), (1e200 * DENSE, X)):
        with pytest.raises(UsageError, match="so large that their squares overflow"):
            grade(matrix, x)
    assert grade(1e100 * DENSE, 1e100 * X) == grade(1e-100 * DENSE, 1e-100 * X) == grade(L, X) == 2
