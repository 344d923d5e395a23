"""`kryograph.krylov.powers`: blocks by hand, for tensors and arrays alike."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.krylov import krylov_blocks
from kryograph.operators import operator

PATH = operator(toy.path(3), "affinity")
CORNER = np.array([[1.0], [0.0], [0.0]])
BLOCKS = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]


@pytest.mark.parametrize("matrix", [PATH, PATH.matrix, PATH.matrix.toarray()], ids=type)
def test_arrays_have_array_blocks(matrix: sp.sparray) -> None:
    found = list(krylov_blocks(matrix, CORNER, 3))
    assert all(isinstance(block, np.ndarray) for block in found)
    assert [block.ravel().tolist() for block in found] == BLOCKS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_have_tensor_blocks(dtype: torch.dtype) -> None:
    x = torch.from_numpy(CORNER).to(dtype)
    for matrix in (PATH, torch.from_numpy(PATH.matrix.toarray()).to(dtype)):
        found = list(krylov_blocks(matrix, x, 3))
        assert {block.dtype for block in found} == {dtype}
        assert [block.ravel().tolist() for block in found] == BLOCKS


def test_blocks_have_gradients() -> None:
    x = torch.from_numpy(CORNER).requires_grad_()
    last = list(krylov_blocks(PATH, x, 3))[-1]
    last.sum().backward()
    assert x.grad is not None
    assert x.grad.ravel().tolist() == [5.0, 7.0, 5.0]  # the column sums of L²


def test_an_order_below_one_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="must be at least 1; it is 0"):
        krylov_blocks(PATH, CORNER, 0)
