"""A constant sparse matrix times a dense one, with gradients: Y = A X, and dX = Aᵀ dY.

The matrix is a constant (a diffusion operator, a bag of words), so the gradient is one more sparse
product, with the transpose that is stored beside it. Indices are 32 bits wide where they fit, since
the product is bound by memory.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor


class SparseMatrix:
    """A constant CSR matrix on a device, and its transpose.

    Shapes: (n × k) @ (k × d) → (n × d).

    >>> import scipy.sparse as sp
    >>> a = SparseMatrix.from_scipy(sp.csr_array([[0.0, 2.0], [1.0, 0.0]]), dtype=torch.float64)
    >>> (a @ torch.tensor([[1.0], [10.0]], dtype=torch.float64)).tolist()
    [[20.0], [1.0]]
    """

    def __init__(self, matrix: Tensor, transpose: Tensor) -> None:
        self._matrix = matrix
        self._transpose = transpose

    @classmethod
    def from_scipy(
        cls,
        matrix: sp.csr_array,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        symmetric: bool = False,
    ) -> SparseMatrix:
        """Copy a SciPy matrix. Say `symmetric` if it is, and the transpose costs nothing."""
        forward = _to_torch(matrix, dtype, device)
        return cls(forward, forward if symmetric else _to_torch(matrix.T.tocsr(), dtype, device))

    @property
    def shape(self) -> torch.Size:
        """Rows and columns."""
        return self._matrix.shape

    @property
    def dtype(self) -> torch.dtype:
        """The type of the entries."""
        return self._matrix.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries lie."""
        return self._matrix.device

    @property
    def T(self) -> SparseMatrix:
        """The transpose, at no cost."""
        return SparseMatrix(self._transpose, self._matrix)

    def to_dense(self) -> Tensor:
        """The same matrix, dense."""
        return self._matrix.to_dense()

    def __matmul__(self, x: Tensor) -> Tensor:
        result: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return result


class _Product(torch.autograd.Function):
    """A X for a constant A; its gradient is the same function with Aᵀ, so it nests."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: SparseMatrix) -> Tensor:
        if x.dtype == torch.float64 and matrix.dtype != torch.float64:
            raise ValueError(f"float64 times a {matrix.dtype} matrix would lose its digits")
        ctx.matrix = matrix
        # Mixed precision must not reach in here: there is no sparse kernel for bfloat16.
        with torch.autocast(x.device.type, enabled=False):
            product: Tensor = matrix._matrix @ x.to(matrix.dtype)
        return product.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.T @ gradient, None


def _to_torch(matrix: sp.csr_array, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    fits = max(*matrix.shape, matrix.nnz) < np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    with warnings.catch_warnings():
        # torch announces once per process that its CSR layout is in beta.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index)),
            torch.from_numpy(matrix.indices.astype(index)),
            torch.from_numpy(matrix.data.astype(np.float64)).to(dtype),
            size=matrix.shape,
            device=device,
            check_invariants=False,  # SciPy has checked them
        )
