from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.engine.cost import gemm_cost, spmm_cost
from kryograph.engine.hops import FeatureRows
from kryograph.sparse import TORCH_KERNEL_COLUMNS, SparseMatrix

WORDS = sp.random_array((9, 6), density=0.4, rng=0, format="csr")
X = torch.from_numpy(WORDS.toarray())
ORDER = torch.tensor([4, 0, 8, 2, 3])

either = pytest.mark.parametrize("sparse", [False, True])


def features(sparse: bool, order: Tensor = ORDER) -> FeatureRows:
    return FeatureRows(SparseMatrix.from_scipy(WORDS, dtype=torch.float64) if sparse else X, order)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@either
@pytest.mark.parametrize("rows", [0, 1, 3, 5])
@pytest.mark.parametrize("columns", [1, TORCH_KERNEL_COLUMNS - 1, TORCH_KERNEL_COLUMNS])
def test_products_take_the_first_rows_in_that_order(sparse: bool, rows: int, columns: int) -> None:
    found, weight, y = features(sparse), random(6, columns), random(rows, columns)
    first = X[ORDER[:rows]]
    torch.testing.assert_close(found.product(rows, weight), first @ weight, rtol=0, atol=1e-13)
    torch.testing.assert_close(found.transposed(y), first.T @ y, rtol=0, atol=1e-13)
    # Once more, from what is kept.
    torch.testing.assert_close(found.product(rows, weight), first @ weight, rtol=0, atol=1e-13)


@either
def test_all_rows_dense(sparse: bool) -> None:
    assert torch.equal(features(sparse).dense(), X[ORDER])
    assert features(sparse).width == 6


@either
def test_all_rows_in_their_order_are_not_copied(sparse: bool) -> None:
    x = SparseMatrix.from_scipy(WORDS, dtype=torch.float64) if sparse else X
    assert FeatureRows(x, torch.arange(9)).x is x
    assert FeatureRows(x, torch.arange(8)).x is not x
    backwards = FeatureRows(x, torch.arange(9).flip(0))
    assert torch.equal(backwards.dense(), X.flip(0))


def test_a_sparse_product_costs_its_entries_and_a_dense_one_its_size() -> None:
    entries = int((X[ORDER[:3]] != 0).sum())
    assert 0 < entries < 18
    assert features(True).cost(3, 7) == spmm_cost(entries, 3, 7)
    assert features(False).cost(3, 7) == gemm_cost(3, 6, 7)
