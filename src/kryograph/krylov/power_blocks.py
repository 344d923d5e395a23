"""Power blocks: the block Krylov matrix K_m(L, X) = [X, LX, …, L^{m-1}X], block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy.typing as npt
import scipy.sparse as sp
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix


@overload
def krylov_blocks(
    L: Operator | SparseMatrix | Tensor, X: Tensor | SparseMatrix, order: int
) -> Iterator[Tensor]: ...


@overload
def krylov_blocks(
    L: Operator | sp.sparray | npt.NDArray[Any], X: npt.NDArray[Any], order: int
) -> Iterator[npt.NDArray[Any]]: ...


def krylov_blocks(L: Any, X: Any, order: int) -> Iterator[Any]:
    """Iterate over the blocks X, LX, …, L^{order-1} X of the block Krylov matrix K_order(L, X).

    They are computed by repeated products, L(L(LX)), never from powers of L, in the precision of
    X, and have gradients if X is a tensor with gradients.

    Args:
        L: An operator or a square matrix; a NumPy array takes a matrix of NumPy or SciPy.
        X: N × F; a sparse tensor matrix becomes dense.
        order: Number m of blocks including X itself; at least 1.

    >>> import torch
    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> x = torch.tensor([[1.0], [0.0], [0.0]])
    >>> [b.ravel().tolist() for b in krylov_blocks(operator(toy.path(3), "affinity"), x, 3)]
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]
    """
    if order < 1:
        raise UsageError(f"The order of a block Krylov matrix must be at least 1; it is {order}.")
    return _blocks(L, X.to_dense() if isinstance(X, SparseMatrix) else X, order)


def _blocks(L: Any, block: Any, order: int) -> Iterator[Any]:
    yield block
    for _ in range(order - 1):
        block = L @ block
        yield block
