"""Product of a constant sparse matrix and a dense matrix with gradients: Y = A X, dX = Aᵀ dY.

The sparse matrix is a constant (a diffusion operator, a bag of words), so the gradient is another
sparse product, with the transpose, which is stored once it was computed. Indices have 32 bits
where they fit, because the product is limited by memory bandwidth.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

EMBEDDING_COLUMNS = 16
"""Number of columns from which torch's kernel for embedding bags is faster than those for sparse
matrices, in float32 (`kryograph bench spmm`)."""

TORCH_KERNEL_COLUMNS = 96
"""Number of columns from which torch's own kernel is faster than MKL's, in float64."""


class SparseMatrix:
    """A constant CSR matrix on a device; its transpose is computed when it is first needed.

    Shapes: (n × k) @ (k × d) → (n × d).

    >>> import scipy.sparse as sp
    >>> a = SparseMatrix.from_scipy(sp.csr_array([[0.0, 2.0], [1.0, 0.0]]), dtype=torch.float64)
    >>> (a @ torch.tensor([[1.0], [10.0]], dtype=torch.float64)).tolist()
    [[20.0], [1.0]]
    """

    def __init__(self, matrix: Tensor, *, symmetric: bool = False) -> None:
        self._matrix = matrix
        self._transpose = self if symmetric else None
        self._pattern: SparseMatrix | None = None

    @classmethod
    def from_scipy(
        cls,
        matrix: sp.csr_array,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        symmetric: bool = False,
    ) -> SparseMatrix:
        """Convert a SciPy matrix. Its indices may be shared, its entries are copied.

        If the matrix is `symmetric`, its transpose needs no computation.
        """
        return cls(_to_torch(matrix, dtype, device), symmetric=symmetric)

    @property
    def shape(self) -> torch.Size:
        """Numbers of rows and columns."""
        return self._matrix.shape

    @property
    def nnz(self) -> int:
        """Number of stored entries of the matrix."""
        return int(self._matrix.values().numel())

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the entries."""
        return self._matrix.dtype

    @property
    def device(self) -> torch.device:
        """Device that holds the entries."""
        return self._matrix.device

    @property
    def T(self) -> SparseMatrix:
        """The transposed matrix, computed once."""
        if self._transpose is None:
            if self._pattern is not None:
                values = self.values[self._pattern._transposed_order]
                self._transpose = self._pattern.T.with_values(values)
            else:
                transposed = _to_torch(self.to_scipy().T.tocsr(), self.dtype, self.device)
                self._transpose = SparseMatrix(transposed)
            self._transpose._transpose = self
        return self._transpose

    @cached_property
    def _transposed_order(self) -> Tensor:
        """For each entry of the transpose, its index among the entries of this matrix."""
        matrix = self.to_scipy()
        numbers = np.arange(self.nnz)
        numbered = sp.csr_array((numbers, matrix.indices, matrix.indptr), shape=matrix.shape)
        return torch.from_numpy(numbered.T.tocsr().data).to(self.device)

    @property
    def values(self) -> Tensor:
        """The stored entries in the order of the rows."""
        return self._matrix.values()

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Build a matrix with the same sparsity pattern and other entries, also constants."""
        start, columns = self._matrix.crow_indices(), self._matrix.col_indices()
        other = SparseMatrix(_csr(start, columns, values, (self.shape[0], self.shape[1])))
        other._pattern = self if self._pattern is None else self._pattern
        return other

    def to_dense(self) -> Tensor:
        """Convert to a dense tensor."""
        return self._matrix.to_dense()

    def to_scipy(self) -> sp.csr_array:
        """Convert to a SciPy matrix; on the CPU it shares the memory of this one."""
        arrays = (self._matrix.values(), self._matrix.col_indices(), self._matrix.crow_indices())
        return sp.csr_array(tuple(a.cpu().numpy() for a in arrays), shape=tuple(self.shape))

    def rows(self, nodes: Tensor) -> SparseMatrix:
        """Copy the rows with the numbers `nodes`, in their order."""
        selected = self.to_scipy()[nodes.cpu().numpy()]
        return SparseMatrix(_to_torch(selected, self.dtype, self.device))

    def corner(self, rows: int, columns: int, *, symmetric: bool = False) -> SparseMatrix:
        """View of the first `rows` rows, which must have no entry beyond the first `columns`."""
        start = self._matrix.crow_indices()[: rows + 1]
        end = int(start[-1])
        entries = self._matrix.col_indices()[:end], self._matrix.values()[:end]
        return SparseMatrix(_csr(start, *entries, (rows, columns)), symmetric=symmetric)

    def __matmul__(self, x: Tensor) -> Tensor:
        result: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return result

    def product(self, x: Tensor) -> Tensor:
        """Compute A X without gradients."""
        if self._suits_bags(x):
            return self._weighted_sums(x)
        if self.device.type == "cpu" and x.ndim == 2 and x.shape[1] >= TORCH_KERNEL_COLUMNS:
            product: Tensor = torch.sparse.mm(self._matrix, x, "sum")
            return product
        return self._matrix @ x

    def add_product_(self, to: Tensor, x: Tensor) -> Tensor:
        """Add A X to the matrix `to` in place, without gradients."""
        if self._suits_bags(x):
            return to.add_(self._weighted_sums(x))
        return to.addmm_(self._matrix, x)

    def _suits_bags(self, x: Tensor) -> bool:
        """Whether `_weighted_sums` computes A X, faster."""
        return (
            x.device.type == "cpu"
            and x.ndim == 2
            and x.shape[1] >= EMBEDDING_COLUMNS
            and x.dtype == self.dtype == torch.float32
            and self.nnz > 0
        )

    def _weighted_sums(self, x: Tensor) -> Tensor:
        """A X: a row of it is a weighted sum of rows of X, as in a bag of word embeddings.

        torch has a kernel for such bags that fetches the next rows of X while it adds the present
        one, which those for sparse matrices do not.
        """
        if x.shape[0] != self.shape[1]:
            raise ValueError(f"a {tuple(self.shape)} matrix times a {tuple(x.shape)} one")
        start, columns = self._matrix.crow_indices(), self._matrix.col_indices()
        sums: Tensor = torch.embedding_bag(
            x.contiguous(),
            columns,
            start,
            mode=0,  # sums
            per_sample_weights=self.values,
            include_last_offset=True,
        )[0]
        return sums


class _Product(torch.autograd.Function):
    """A X for a constant A. The gradient is the same function with Aᵀ, so it can be nested."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: SparseMatrix) -> Tensor:
        if x.dtype == torch.float64 and matrix.dtype != torch.float64:
            raise ValueError(f"float64 times a {matrix.dtype} matrix would lose its digits")
        ctx.matrix = matrix
        # Autocast is disabled, because no sparse kernel takes bfloat16.
        with torch.autocast(matrix.device.type, enabled=False):
            return matrix.product(x.to(matrix.dtype)).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.T @ gradient, None


def _to_torch(matrix: sp.csr_array, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    fits = max(*matrix.shape, matrix.nnz) < np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    return _csr(
        shared_tensor(matrix.indptr.astype(index, copy=False)),
        shared_tensor(matrix.indices.astype(index, copy=False)),
        shared_tensor(matrix.data).to(dtype, copy=True),
        matrix.shape,
    ).to(device)


def shared_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Tensor on the memory of an array, which may be read-only; nobody may write to it then."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _csr(start: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        # torch warns once per process that its CSR layout is in beta.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # The invariants hold: SciPy checked them when it built the arrays.
        return torch.sparse_csr_tensor(start, columns, values, size=shape, check_invariants=False)


def row_normalise(matrix: sp.csr_array) -> sp.csr_array:
    """Divide each row by its sum; a row that sums to zero stays as it is.

    >>> row_normalise(sp.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.ones_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ matrix)
