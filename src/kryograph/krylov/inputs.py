"""Conversion of L and X of any kind to float64 on one device, and of results to the kind of X.

All computations are in float64, because inner products of single-precision columns lose the digits
that decide on a rank. The precision of the input still decides what counts as rounding:
eigenvalues that are equal in float64 differ by 1e-7 in a matrix that was rounded to float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix

LinearMap: TypeAlias = Operator | SparseMatrix | Tensor | npt.NDArray[Any] | sp.sparray
"""Types of L: an operator, or a square matrix of torch, NumPy or SciPy, sparse or dense."""

A = TypeVar("A", Tensor, npt.NDArray[Any])
"""Type of X and therefore of the result: a tensor or an array."""

ASYMMETRY_UNITS = 8
"""Largest difference of the entries (i, j) and (j, i) of a symmetric L, in roundings of the
largest entry."""


@dataclass(frozen=True, eq=False)
class Pair:
    """L and X after all checks, in float64."""

    matrix: SparseMatrix | Tensor
    """L, N × N."""
    x: Tensor
    """A copy of X, N × F."""
    eps: float
    """Relative rounding error of the less precise of the two inputs."""
    original: Any
    """X as the caller passed it."""
    known_symmetric: bool | None
    """Whether L is symmetric, if L is an operator; None for other matrices."""

    @classmethod
    def of(cls, L: LinearMap, X: Any) -> Pair:
        """Convert and check both; raise a `UsageError` if they are not finite or do not match."""
        x, x_eps = _features(X)
        matrix, eps, symmetric = _matrix(L, x.device)
        if matrix.shape[0] != matrix.shape[1]:
            raise UsageError(f"L must be square; it is {matrix.shape[0]:,} × {matrix.shape[1]:,}.")
        if matrix.shape[0] != x.shape[0]:
            raise UsageError(
                f"L has {matrix.shape[0]:,} nodes and X has {x.shape[0]:,} rows: they must match."
            )
        entries = matrix.values if isinstance(matrix, SparseMatrix) else matrix
        for name, values in (("L", entries), ("X", x)):
            # A finite sum is cheaper to compute and implies finite entries.
            if not torch.isfinite(values.sum()) and not torch.isfinite(values).all():
                raise UsageError(f"{name} has entries that are not finite: remove them first.")
        return cls(matrix, x, max(eps, x_eps), X, symmetric)

    def times(self, x: Tensor) -> Tensor:
        """Compute the product L X."""
        if isinstance(self.matrix, SparseMatrix):
            return self.matrix.product(x)
        return self.matrix @ x

    def back(self, y: Tensor) -> Any:
        """Convert a result to the kind and precision of X, and to a vector if X is a vector."""
        original = self.original
        if getattr(original, "ndim", 2) == 1 and y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if isinstance(original, Tensor | SparseMatrix):
            return y.to(original.dtype if original.dtype.is_floating_point else torch.float64)
        dtype = original.dtype if hasattr(original, "dtype") else np.asarray(original).dtype
        return y.cpu().numpy().astype(_floating(dtype), copy=False)

    @cached_property
    def largest(self) -> float:
        """Largest absolute entry of L, a lower bound of its spectral norm."""
        entries = self.matrix.values if isinstance(self.matrix, SparseMatrix) else self.matrix
        return float(entries.abs().max()) if entries.numel() else 0.0

    @cached_property
    def symmetric(self) -> bool:
        """Whether L is symmetric up to rounding."""
        if self.known_symmetric is not None:
            return self.known_symmetric
        if isinstance(self.matrix, SparseMatrix):
            matrix = self.matrix.to_scipy()
            gap = float(abs(matrix - matrix.T.tocsr()).max()) if matrix.nnz else 0.0
        else:
            gap = float((self.matrix - self.matrix.T).abs().max())
        return gap <= ASYMMETRY_UNITS * self.eps * self.largest

    def require_symmetric(self) -> None:
        """Raise a `UsageError` unless L is symmetric; the Lanczos process needs it."""
        if not self.symmetric:
            raise UsageError(
                "Lanczos needs a symmetric L, and this L is not: use the operator sym, "
                "or the Arnoldi process."
            )


def _features(X: Any) -> tuple[Tensor, float]:
    """Convert X to N × F in float64; also its relative rounding error."""
    if isinstance(X, SparseMatrix | Tensor):
        X = X.to_dense()
    x, eps = _dense(X.toarray() if sp.issparse(X) else X)
    if x.ndim not in (1, 2):
        raise UsageError(f"X must be N × F, or N numbers; it has shape {tuple(x.shape)}.")
    return x.reshape(len(x), -1) if len(x) else x.reshape(0, 1), eps


def _matrix(L: LinearMap, device: torch.device) -> tuple[SparseMatrix | Tensor, float, bool | None]:
    """Convert L to float64; also its relative rounding error and the symmetry of an operator."""
    if isinstance(L, Operator):
        return L.tensor(torch.float64, device), float(np.finfo(np.float64).eps), L.symmetric
    if isinstance(L, SparseMatrix):
        L = L.to_scipy()
    elif isinstance(L, Tensor) and L.layout != torch.strided:
        entries = L.detach().to_sparse_coo().coalesce().cpu()  # type: ignore[no-untyped-call]
        pairs = tuple(entries.indices().numpy())
        L = sp.coo_array((entries.values().numpy(), pairs), tuple(L.shape))
    if np.ndim(L) != 2:
        raise UsageError(f"L must be a square matrix; it has shape {tuple(np.shape(L))}.")
    if sp.issparse(L):
        csr = sp.csr_array(L)
        eps = float(np.finfo(_floating(csr.dtype)).eps)
        return SparseMatrix.from_scipy(csr, dtype=torch.float64, device=device), eps, None
    dense, eps = _dense(L)
    return dense.to(device), eps, None


def _dense(values: Any) -> tuple[Tensor, float]:
    """Copy a dense tensor or an array as float64; also its relative rounding error."""
    if isinstance(values, Tensor):
        copy = values.detach().to(torch.float64, copy=True, memory_format=torch.contiguous_format)
        return copy, _eps(values.dtype)
    array = np.asarray(values)
    eps = float(np.finfo(_floating(array.dtype)).eps)
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C")), eps


def _floating(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Floating-point type of a result for an input of type `dtype`; integers become float64."""
    if dtype.kind not in "fiu":
        raise UsageError(f"L and X must hold real numbers; one of them holds {dtype}.")
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _eps(dtype: torch.dtype) -> float:
    if dtype.is_complex or dtype == torch.bool:
        raise UsageError(f"L and X must hold real numbers; one of them holds {dtype}.")
    return torch.finfo(dtype if dtype.is_floating_point else torch.float64).eps
