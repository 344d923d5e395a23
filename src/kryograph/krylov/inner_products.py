"""Block inner products (the paper's definition 1): maps of two block vectors into an algebra S.

===================  ==================  ==================  ======================================
name                 ⟨X, Y⟩              S                   batch B × n × r of X
===================  ==================  ==================  ======================================
`CLASSICAL`          Xᵀ Y                all F × F matrices  1 × N × F: X itself
`GLOBAL`             trace(Xᵀ Y) / F I   multiples of I      1 × N F × 1: one vector of all numbers
`LOOP_INTERCHANGE`   diag(Xᵀ Y)          diagonal matrices   F × N × 1: each column on its own
===================  ==================  ==================  ======================================

Each of them is the classical product of the numbers of X and Y, arranged as the batch in the last
column, so that one algorithm serves all three. The trace is divided by F, so that ⟨X, X⟩ is the
identity for all three if X has orthonormal columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kryograph.errors import UsageError, check_known
from kryograph.krylov.inputs import A

STRETCH = 8192
"""Rows of a stretch: a product of tall matrices is computed as a sum over stretches in cache."""


class BlockInnerProduct(ABC):
    """A block inner product, as a map from block vectors to batches of matrices and back.

    `name` is that for `product=` arguments, `algebra` describes the algebra S.

    >>> x = np.array([[1.0, 1.0], [0.0, 2.0]])
    >>> for product in INNER_PRODUCTS.values():
    ...     print(product.name, product.inner(x, x).round(12).tolist())
    classical [[1.0, 1.0], [1.0, 5.0]]
    global [[3.0, 0.0], [0.0, 3.0]]
    loop-interchange [[1.0, 0.0], [0.0, 5.0]]
    """

    name: str
    algebra: str

    def inner(self, X: A, Y: A) -> A:
        """Compute ⟨X, Y⟩, an F × F matrix in S."""
        x, y = _tensor(X), _tensor(Y)
        if x.shape != y.shape or x.ndim != 2:
            raise UsageError(
                f"An inner product needs two matrices of one shape; they are {tuple(x.shape)} "
                f"and {tuple(y.shape)}."
            )
        product: A = _like(X, self.matrix(gram(self.as_batch(x), self.as_batch(y)), x.shape[1]))
        return product

    def norm(self, X: A) -> float:
        """Compute √trace⟨X, X⟩, which is the Frobenius norm for all three inner products."""
        return float(torch.linalg.matrix_norm(_tensor(X)))

    def normaliser(self, X: A) -> A:
        """Compute N(X) in S with X = Y N(X) and ⟨Y, Y⟩ = I, for X of full rank."""
        x = _tensor(X)
        _, r = torch.linalg.qr(self.as_batch(x))
        sign = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(r.dtype)
        normaliser: A = _like(X, self.matrix(sign[..., None] * r, x.shape[1]))
        return normaliser

    def contains(self, C: A) -> bool:
        """Whether an F × F matrix C lies in S up to rounding: ⟨I, C⟩ is the part of C in S."""
        c = _tensor(C)
        part = self.inner(torch.eye(len(c)).to(c), c)
        return torch.allclose(
            c, part, rtol=0, atol=8 * torch.finfo(c.dtype).eps * float(c.abs().max())
        )

    @abstractmethod
    def as_batch(self, x: Tensor) -> Tensor:
        """Arrange a block vector N × F as a batch B × n × r."""

    @abstractmethod
    def from_batch(self, batch: Tensor, width: int) -> Tensor:
        """Arrange a batch B × n × r as a block vector N × F, where F is `width`.

        For the classical product the result is narrower than F if the batch is.
        """

    @abstractmethod
    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        """Arrange a batch B × (j r) × (k r) as j × k blocks in S, a matrix (j F) × (k F)."""


class Classical(BlockInnerProduct):
    """⟨X, Y⟩ = Xᵀ Y."""

    name, algebra = "classical", "all F × F matrices"

    def as_batch(self, x: Tensor) -> Tensor:
        return x[None]

    def from_batch(self, batch: Tensor, width: int) -> Tensor:
        return batch[0]

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        return numbers[0]


class Global(BlockInnerProduct):
    """⟨X, Y⟩ = trace(Xᵀ Y) / F · I."""

    name, algebra = "global", "multiples of the identity"

    def as_batch(self, x: Tensor) -> Tensor:
        # The scale makes the squared length of the vector trace(Xᵀ X) / F.
        return x.reshape(1, -1, 1).div(x.shape[1] ** 0.5)

    def from_batch(self, batch: Tensor, width: int) -> Tensor:
        return batch.reshape(-1, width).mul(width**0.5)

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        return torch.kron(numbers[0], torch.eye(width).to(numbers))


class LoopInterchange(BlockInnerProduct):
    """⟨X, Y⟩ = diag(Xᵀ Y)."""

    name, algebra = "loop-interchange", "diagonal matrices"

    def as_batch(self, x: Tensor) -> Tensor:
        return x.T.contiguous()[..., None]

    def from_batch(self, batch: Tensor, width: int) -> Tensor:
        return batch[..., 0].T.contiguous()

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        # Entry (j, k) of every vector's matrix goes to the diagonal of block (j, k).
        _, rows, columns = numbers.shape
        blocks = torch.diag_embed(numbers.permute(1, 2, 0))
        return blocks.permute(0, 2, 1, 3).reshape(rows * width, columns * width)


CLASSICAL, GLOBAL, LOOP_INTERCHANGE = Classical(), Global(), LoopInterchange()
INNER_PRODUCTS: dict[str, BlockInnerProduct] = {
    p.name: p for p in (CLASSICAL, GLOBAL, LOOP_INTERCHANGE)
}


def as_inner_product(product: BlockInnerProduct | str) -> BlockInnerProduct:
    """Look up an inner product by its name; an inner product is returned as it is."""
    if isinstance(product, BlockInnerProduct):
        return product
    check_known("block inner product", product, INNER_PRODUCTS)
    return INNER_PRODUCTS[product]


def gram(x: Tensor, y: Tensor) -> Tensor:
    """Compute Xᵀ Y for two batches of tall matrices: B × n × r, B × n × q → B × r × q."""
    n, r = x.shape[1:]
    if len(x) > 1 or r == 1 or n <= STRETCH:
        return x.mT @ y
    # One product over the long side uses one core and misses the cache; a batch of stretches
    # uses all cores and fits the cache.
    even = n // STRETCH * STRETCH
    a, b = (z[0, :even].reshape(-1, STRETCH, z.shape[-1]) for z in (x, y))
    total: Tensor = (a.mT @ b).sum(dim=0, keepdim=True)
    return total.baddbmm_(x[:, even:].mT, y[:, even:])


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else torch.from_numpy(np.array(x))


def _like(x: Any, result: Tensor) -> Any:
    """Convert a result to the kind of `x`: a tensor or an array."""
    return result if isinstance(x, Tensor) else result.numpy()
