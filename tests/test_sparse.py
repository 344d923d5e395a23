from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from kryograph import sparse as module
from kryograph.sparse import SparseMatrix, row_normalise

SYMMETRIC = np.array([[2.0, -1.0, 0.0], [-1.0, 0.0, 0.5], [0.0, 0.5, 1.0]])
LOPSIDED = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, -2.0], [1.0, 0.0, 4.0]])
WIDE = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, -3.0]])
TALL = WIDE.T.copy()
HOLLOW = np.array([[0.0, 0.0, 0.0], [0.0, 7.0, 0.0], [0.0, 0.0, 0.0]])
EMPTY = np.zeros((3, 2))

MATRICES = {
    "symmetric": SYMMETRIC,
    "lopsided": LOPSIDED,
    "wide": WIDE,
    "tall": TALL,
    "hollow": HOLLOW,
    "empty": EMPTY,
}


@pytest.fixture(params=list(MATRICES))
def array(request: pytest.FixtureRequest) -> np.ndarray:
    return MATRICES[request.param]


def sparse(array: np.ndarray, dtype: torch.dtype = torch.float64) -> SparseMatrix:
    same = array.shape[0] == array.shape[1] and np.array_equal(array, array.T)
    return SparseMatrix.from_scipy(sp.csr_array(array), dtype=dtype, symmetric=same)


def random(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


def test_a_product_by_hand() -> None:
    product = sparse(WIDE) @ torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    assert product.tolist() == [[7], [-12]]


def test_products_are_those_of_the_dense_matrix(array: np.ndarray) -> None:
    matrix, x = sparse(array), random(array.shape[1], 4)
    assert matrix.shape == array.shape
    np.testing.assert_array_equal(matrix.to_dense().numpy(), array)
    np.testing.assert_allclose((matrix @ x).numpy(), array @ x.numpy(), rtol=1e-14, atol=1e-15)


def test_the_transpose_is_the_transpose(array: np.ndarray) -> None:
    matrix, y = sparse(array), random(array.shape[0], 4)
    np.testing.assert_array_equal(matrix.T.to_dense().numpy(), array.T)
    np.testing.assert_allclose((matrix.T @ y).numpy(), array.T @ y.numpy(), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(matrix.T.T.to_dense().numpy(), array)


@settings(max_examples=50)
@given(
    shape=st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 4)),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_products_and_gradients_of_random_matrices(
    shape: tuple[int, int, int], density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n, k, d = shape
    array = rng.standard_normal((n, k)) * (rng.random((n, k)) < density)
    matrix = SparseMatrix.from_scipy(sp.csr_array(array), dtype=torch.float64)
    x = torch.from_numpy(rng.standard_normal((k, d))).requires_grad_()
    upstream = rng.standard_normal((n, d))
    product = matrix @ x
    product.backward(torch.from_numpy(upstream))
    assert x.grad is not None
    np.testing.assert_allclose(product.detach().numpy(), array @ x.detach().numpy(), atol=1e-13)
    np.testing.assert_allclose(x.grad.numpy(), array.T @ upstream, atol=1e-13)


def test_first_and_second_derivatives(array: np.ndarray) -> None:
    matrix, x = sparse(array), random(array.shape[1], 2).requires_grad_()
    assert gradcheck(lambda x: matrix @ x, (x,))
    assert gradgradcheck(lambda x: matrix @ x, (x,))
    assert gradgradcheck(lambda x: (matrix @ torch.tanh(x)) ** 2, (x,))
    y = random(array.shape[0], 2).requires_grad_()
    assert gradcheck(lambda y: matrix.T @ y, (y,))


def test_calling_a_matrix_symmetric_saves_its_transpose() -> None:
    matrix = sparse(SYMMETRIC)
    assert matrix.T._matrix is matrix._matrix
    assert sparse(LOPSIDED).T._matrix is not sparse(LOPSIDED)._matrix


def test_indices_are_32_bits_wide(array: np.ndarray) -> None:
    wide = sp.csr_array(array)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    matrix = SparseMatrix.from_scipy(wide)
    for side in (matrix, matrix.T):
        assert side._matrix.crow_indices().dtype == torch.int32
        assert side._matrix.col_indices().dtype == torch.int32


def test_empty_rows_give_zeros() -> None:
    product = sparse(HOLLOW) @ torch.ones(3, 2, dtype=torch.float64)
    assert product.tolist() == [[0, 0], [7, 7], [0, 0]]
    assert (sparse(EMPTY) @ torch.ones(2, 2, dtype=torch.float64)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entries_have_the_type_asked_for(dtype: torch.dtype) -> None:
    array = np.array([[1 / 3]])
    matrix = sparse(array, dtype)
    assert matrix.dtype == dtype
    assert matrix.device == torch.device("cpu")
    assert matrix.to_dense().item() == torch.tensor(1 / 3, dtype=dtype).item()
    assert (matrix @ torch.ones(1, 1, dtype=dtype)).dtype == dtype


def test_the_matrix_is_a_copy() -> None:
    given_matrix = sp.csr_array(LOPSIDED.copy())
    matrix = SparseMatrix.from_scipy(given_matrix, dtype=torch.float64)
    given_matrix.data[:] = 0
    np.testing.assert_array_equal(matrix.to_dense().numpy(), LOPSIDED)
    np.testing.assert_array_equal(matrix.T.to_dense().numpy(), LOPSIDED.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mixed_precision_stays_outside(dtype: torch.dtype) -> None:
    matrix = sparse(LOPSIDED, torch.float32)
    x = random(3, 2, dtype=torch.float32).to(dtype).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        product = matrix @ x
        loss = product.float().sum()
    loss.backward()
    expected = torch.from_numpy(LOPSIDED).float() @ x.detach().float()
    assert product.dtype == dtype
    # The product itself is exact in float32; only the last rounding is to the narrow type.
    assert torch.allclose(product, expected.to(dtype), rtol=0, atol=1e-6)
    assert x.grad is not None
    assert x.grad.dtype == dtype
    column_sums = torch.from_numpy(LOPSIDED.sum(axis=0)).to(dtype)
    assert torch.equal(x.grad, column_sums[:, None].expand(3, 2))


@pytest.mark.usefixtures("bfloat16")
def test_a_network_trains_in_mixed_precision() -> None:
    matrix = sparse(LOPSIDED, torch.float32)
    weight = random(2, 2, dtype=torch.float32).requires_grad_()
    x = random(3, 2, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = x @ weight
        assert hidden.dtype == torch.bfloat16
        loss = (matrix @ hidden).float().sum()
    loss.backward()
    expected = x.T @ torch.from_numpy(LOPSIDED).float().T @ torch.ones(3, 2)
    assert weight.grad is not None
    assert torch.allclose(weight.grad, expected, rtol=0.02, atol=0.02)


def test_float64_is_not_cut_short() -> None:
    single = SparseMatrix.from_scipy(sp.csr_array([[1.0]]), dtype=torch.float32)
    with pytest.raises(ValueError, match="would lose its digits"):
        single @ torch.ones(1, 1, dtype=torch.float64)


# Wide and narrow products


FORMS = {
    "plain": lambda k, d: random(k, d),
    "turned": lambda k, d: random(d, k).T,
    "every other column": lambda k, d: random(k, 2 * d)[:, ::2],
    "some rows": lambda k, d: random(k + 3, d)[3:],
    "one row again and again": lambda k, d: random(1, d).expand(k, d),
}


@pytest.mark.parametrize(
    "columns",
    [
        1,
        module.EMBEDDING_COLUMNS - 1,
        module.EMBEDDING_COLUMNS,
        module.EMBEDDING_COLUMNS + 1,
        module.TORCH_KERNEL_COLUMNS - 1,
        module.TORCH_KERNEL_COLUMNS,
        module.TORCH_KERNEL_COLUMNS + 1,
    ],
)
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
@pytest.mark.parametrize("form", FORMS)
def test_wide_and_narrow_products_are_those_of_scipy(
    array: np.ndarray, columns: int, dtype: torch.dtype, rtol: float, form: str
) -> None:
    matrix, x = sparse(array, dtype), FORMS[form](array.shape[1], columns).to(dtype)
    expected = sp.csr_array(array) @ x.double().numpy()
    for product in (matrix.product(x), matrix @ x):
        assert (product.dtype, product.shape) == (dtype, expected.shape)
        np.testing.assert_allclose(product.numpy(), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "columns",
    [
        1,
        module.EMBEDDING_COLUMNS - 1,
        module.EMBEDDING_COLUMNS,
        module.EMBEDDING_COLUMNS + 1,
        module.TORCH_KERNEL_COLUMNS - 1,
        module.TORCH_KERNEL_COLUMNS,
        module.TORCH_KERNEL_COLUMNS + 1,
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_added_in_place(array: np.ndarray, columns: int, dtype: torch.dtype) -> None:
    matrix, x = sparse(array, dtype), random(array.shape[1], columns, dtype=dtype)
    to = random(array.shape[0], columns, dtype=dtype)
    expected = to.clone() + matrix.to_dense() @ x
    found = matrix.add_product_(to, x)
    assert found.data_ptr() == to.data_ptr()
    torch.testing.assert_close(to, expected)


def test_a_wide_product_of_a_matrix_of_other_width_is_an_error() -> None:
    with pytest.raises(ValueError, match="matrix times a"):
        sparse(WIDE, torch.float32).product(torch.ones(3, module.EMBEDDING_COLUMNS))


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_a_wide_product_takes_indices_of_either_width(index: torch.dtype) -> None:
    matrix = sparse(WIDE, torch.float32)
    start, columns = matrix._matrix.crow_indices().to(index), matrix._matrix.col_indices().to(index)
    other = SparseMatrix(module._csr(start, columns, matrix.values, (2, 4)))
    x = random(4, module.EMBEDDING_COLUMNS, dtype=torch.float32)
    torch.testing.assert_close(other.product(x), matrix.to_dense() @ x)


@pytest.mark.parametrize("columns", [module.TORCH_KERNEL_COLUMNS, module.TORCH_KERNEL_COLUMNS + 1])
def test_derivatives_of_a_wide_product(array: np.ndarray, columns: int) -> None:
    matrix, x = sparse(array), random(array.shape[1], columns).requires_grad_()
    assert gradcheck(lambda x: matrix @ x, (x,), fast_mode=True)
    assert gradgradcheck(lambda x: (matrix @ torch.tanh(x)) ** 2, (x,), fast_mode=True)


def test_a_vector_is_a_column() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    assert sparse(WIDE).product(x).tolist() == [7, -12]


# Parts of a matrix


def test_a_matrix_goes_to_scipy_and_back(array: np.ndarray) -> None:
    matrix = sparse(array)
    np.testing.assert_array_equal(matrix.to_scipy().toarray(), array)
    assert matrix.nnz == matrix.T.nnz == np.count_nonzero(array)


@pytest.mark.parametrize("rows", [[2, 0], [1], [0, 0, 2], []])
def test_some_rows_in_that_order(rows: list[int]) -> None:
    some = sparse(LOPSIDED).rows(torch.tensor(rows, dtype=torch.int64))
    np.testing.assert_array_equal(some.to_dense().numpy(), LOPSIDED[rows])
    np.testing.assert_array_equal(some.T.to_dense().numpy(), LOPSIDED[rows].T)
    x = random(3, 2)
    np.testing.assert_allclose((some @ x).numpy(), LOPSIDED[rows] @ x.numpy(), atol=1e-14)


def test_rows_of_a_symmetric_matrix_are_not_symmetric() -> None:
    some = sparse(SYMMETRIC).rows(torch.tensor([1, 0, 2]))
    np.testing.assert_array_equal(some.T.to_dense().numpy(), SYMMETRIC[[1, 0, 2]].T)


BAND = np.diag([2.0, 3.0, 4.0, 5.0]) + np.diag([0.0, 7.0, 8.0], 1) + np.diag([0.0, 7.0, 8.0], -1)
"""Row 0 reaches column 0, row 1 columns 1 and 2, and so on."""


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (1, 1), (2, 3), (3, 4), (4, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_corner_is_a_slice_that_shares_memory(
    rows: int, columns: int, dtype: torch.dtype
) -> None:
    matrix = sparse(BAND, dtype)
    corner, expected = matrix.corner(rows, columns), BAND[:rows, :columns]
    assert corner.shape == expected.shape
    assert corner.dtype == dtype
    np.testing.assert_array_equal(corner.to_dense().numpy(), expected)
    np.testing.assert_array_equal(corner.T.to_dense().numpy(), expected.T)
    assert corner.nnz == np.count_nonzero(expected)
    x = random(columns, 2, dtype=dtype)
    torch.testing.assert_close(corner @ x, torch.from_numpy(expected).to(dtype) @ x)
    if rows > 0:
        for part in ("values", "col_indices", "crow_indices"):
            ours, whole = (getattr(each._matrix, part)() for each in (corner, matrix))
            assert ours.data_ptr() == whole.data_ptr(), part


def test_a_corner_is_symmetric_if_that_is_said() -> None:
    matrix = sparse(BAND)
    said = matrix.corner(1, 1, symmetric=True)
    assert said.T is said
    assert matrix.corner(2, 3).T.shape == (3, 2)


def test_derivatives_of_parts() -> None:
    matrix, x = sparse(BAND), random(3, 2).requires_grad_()
    assert gradcheck(lambda x: matrix.corner(2, 3) @ x, (x,))
    whole = random(4, 2).requires_grad_()
    assert gradcheck(lambda x: matrix.rows(torch.tensor([3, 0])) @ x, (whole,))


def test_a_transpose_is_made_when_it_is_first_needed() -> None:
    matrix = sparse(LOPSIDED)
    assert matrix._transpose is None
    matrix @ random(3, 1)
    assert matrix._transpose is None
    assert matrix.T is matrix.T
    assert matrix.T.T is matrix


# Other entries in the same places


def test_other_entries_in_the_same_places(array: np.ndarray) -> None:
    matrix = sparse(array)
    values = torch.arange(1.0, matrix.nnz + 1, dtype=torch.float64)
    other = matrix.with_values(values)
    expected = np.zeros_like(array)
    expected[np.nonzero(array)] = values.numpy()
    np.testing.assert_array_equal(other.to_dense().numpy(), expected)
    # Of a symmetric matrix too: other entries need not be symmetric.
    np.testing.assert_array_equal(other.T.to_dense().numpy(), expected.T)
    np.testing.assert_array_equal(other.T.T.to_dense().numpy(), expected)
    np.testing.assert_array_equal(matrix.to_dense().numpy(), array)
    assert torch.equal(other.values, values)


def test_entries_can_be_changed_again() -> None:
    first = sparse(LOPSIDED).with_values(torch.ones(4, dtype=torch.float64))
    second = first.with_values(first.values * torch.tensor([1.0, 0.0, 2.0, 3.0]))
    assert second.to_dense().tolist() == [[0, 1, 0], [0, 0, 0], [2, 0, 3]]
    assert second.T.to_dense().tolist() == [[0, 0, 2], [1, 0, 0], [0, 0, 3]]


def test_gradients_use_the_other_entries() -> None:
    other = sparse(LOPSIDED).with_values(torch.tensor([2.0, 0.0, -1.0, 5.0], dtype=torch.float64))
    x = random(3, 2).requires_grad_()
    assert gradcheck(lambda x: other @ x, (x,))
    (other @ x).sum().backward()
    assert x.grad is not None
    assert x.grad[:, 0].tolist() == [-1, 2, 5]


def test_rows_sum_to_one_and_stay_sparse() -> None:
    words = sp.random_array((20, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    found = row_normalise(words)
    sums = found.sum(axis=1)
    assert isinstance(found, sp.csr_array)
    assert found.nnz == words.nnz
    np.testing.assert_allclose(sums[words.sum(axis=1) > 0], 1, rtol=1e-14)
    np.testing.assert_allclose(found[[3]].toarray() * words[[3]].sum(), words[[3]].toarray())


def test_a_row_without_words_stays_zero() -> None:
    assert row_normalise(sp.csr_array([[0.0, 0.0], [2.0, 6.0]])).toarray().tolist() == [
        [0.0, 0.0],
        [0.25, 0.75],
    ]
