"""`kryograph.krylov.products`: the paper's definition of a block inner product, three times."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov import CLASSICAL, GLOBAL, LOOP_INTERCHANGE, BlockInnerProduct
from kryograph.krylov.inner_products import INNER_PRODUCTS, STRETCH, as_inner_product, gram

every_product = pytest.mark.parametrize("product", INNER_PRODUCTS.values(), ids=INNER_PRODUCTS)
sizes = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))


def drawn(n: int, width: int, seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, width)) for _ in range(count)]


def member(product: BlockInnerProduct, width: int, seed: int) -> np.ndarray:
    """A matrix in S."""
    numbers = np.random.default_rng(seed).standard_normal((width, width))
    if product is GLOBAL:
        return numbers[0, 0] * np.eye(width)
    return numbers if product is CLASSICAL else np.diag(np.diag(numbers))


@every_product
@settings(max_examples=40)
@given(size=sizes)
def test_it_is_linear_over_its_algebra(
    product: BlockInnerProduct, size: tuple[int, int, int]
) -> None:
    x, y, z = drawn(*size, 3)
    c = member(product, size[1], size[2] + 1)
    assert product.contains(c)
    np.testing.assert_allclose(
        product.inner(x, y @ c), product.inner(x, y) @ c, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        product.inner(x + y, z), product.inner(x, z) + product.inner(y, z), rtol=1e-12, atol=1e-12
    )


@every_product
@settings(max_examples=40)
@given(size=sizes)
def test_it_is_symmetric_and_lies_in_its_algebra(
    product: BlockInnerProduct, size: tuple[int, int, int]
) -> None:
    x, y = drawn(*size, 2)
    found = product.inner(x, y)
    assert found.shape == (size[1], size[1])
    assert product.contains(found)
    np.testing.assert_allclose(found, product.inner(y, x).T, rtol=1e-13, atol=1e-13)


@every_product
@settings(max_examples=40)
@given(size=sizes)
def test_it_is_definite(product: BlockInnerProduct, size: tuple[int, int, int]) -> None:
    n, width, seed = size
    (x,) = drawn(n + width, width, seed, 1)  # of full rank
    assert np.linalg.eigvalsh(product.inner(x, x)).min() > 0
    assert not product.inner(0 * x, 0 * x).any()
    x[:, 1:] = 0
    assert product.inner(x, x).any()


@every_product
@settings(max_examples=20)
@given(size=sizes)
def test_the_algebra_is_closed(product: BlockInnerProduct, size: tuple[int, int, int]) -> None:
    _, width, seed = size
    c, d = (member(product, width, seed + i) for i in range(2))
    for made in (np.eye(width), c + d, c @ d, c.T):
        assert product.contains(made)


def test_what_the_algebras_leave_out() -> None:
    diagonal, full = np.diag([1.0, 2.0]), np.ones((2, 2))
    contained = [
        [p.contains(c) for c in (np.eye(2), diagonal, full)] for p in INNER_PRODUCTS.values()
    ]
    assert contained == [[True, True, True], [True, False, False], [True, True, False]]


@every_product
@settings(max_examples=40)
@given(size=sizes)
def test_the_normaliser_leaves_something_normal(
    product: BlockInnerProduct, size: tuple[int, int, int]
) -> None:
    n, width, seed = size
    (x,) = drawn(n + width, width, seed, 1)
    divisor = product.normaliser(x)
    assert product.contains(divisor)
    y = x @ np.linalg.inv(divisor)
    np.testing.assert_allclose(product.inner(y, y), np.eye(width), atol=1e-8)
    assert product.norm(x) == pytest.approx(np.trace(product.inner(x, x)) ** 0.5)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_all_agree_on_one_column(seed: int) -> None:
    x, y = drawn(7, 1, seed, 2)
    found = [p.inner(x, y).item() for p in INNER_PRODUCTS.values()]
    assert found == pytest.approx([(x * y).sum()] * 3)
    assert [p.normaliser(x).item() for p in INNER_PRODUCTS.values()] == pytest.approx(
        [np.linalg.norm(x)] * 3
    )


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_all_are_the_identity_for_orthonormal_columns(seed: int) -> None:
    q, _ = np.linalg.qr(drawn(9, 3, seed, 1)[0])
    for product in INNER_PRODUCTS.values():
        np.testing.assert_allclose(product.inner(q, q), np.eye(3), atol=1e-14)


def test_orthogonal_columns_make_two_of_them_agree() -> None:
    x = np.array([[3.0, 0.0], [0.0, 1.0], [4.0, 0.0]])
    assert CLASSICAL.inner(x, x).tolist() == [[25.0, 0.0], [0.0, 1.0]]
    assert LOOP_INTERCHANGE.inner(x, x).tolist() == [[25.0, 0.0], [0.0, 1.0]]
    assert GLOBAL.inner(x, x) == pytest.approx(13 * np.eye(2))


@every_product
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_and_arrays_are_answered_in_kind(
    product: BlockInnerProduct, dtype: torch.dtype
) -> None:
    x = torch.arange(6, dtype=dtype).reshape(3, 2)
    found = product.inner(x, x)
    assert isinstance(found, Tensor)
    assert found.dtype == dtype
    array = product.inner(x.numpy(), x.numpy())
    assert isinstance(array, np.ndarray)
    assert array.dtype == x.numpy().dtype
    assert array.tolist() == found.tolist()


@every_product
def test_a_batch_is_the_block_vector_arranged_otherwise(product: BlockInnerProduct) -> None:
    x = torch.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(product.from_batch(product.as_batch(x), 2), x)


@pytest.mark.parametrize("n", [STRETCH, STRETCH + 3, 3 * STRETCH + 5])
def test_a_product_of_tall_matrices_is_a_sum_over_stretches(n: int) -> None:
    x, y = (torch.from_numpy(a)[None] for a in drawn(n, 3, 0, 2))
    torch.testing.assert_close(gram(x, y), x.mT @ y, rtol=0, atol=1e-9)
    assert gram(x[:, :, :1], y).shape == (1, 1, 3)


def test_a_product_by_its_name() -> None:
    assert as_inner_product("loop-interchange") is LOOP_INTERCHANGE
    with pytest.raises(UsageError, match="did you mean 'global'"):
        as_inner_product("globl")


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(UsageError, match=r"one shape; they are \(3, 2\) and \(3, 1\)"):
        CLASSICAL.inner(np.ones((3, 2)), np.ones((3, 1)))
