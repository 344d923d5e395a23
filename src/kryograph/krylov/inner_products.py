"""Block inner products (the paper's definition 1): maps of two block vectors into an algebra S.

===================  ==============================  ===================  =========================
name                 ⟨X, Y⟩                          S                    what it is
===================  ==============================  ===================  =========================
`CLASSICAL`          Xᵀ Y                            all F × F matrices   every column sees all
`GLOBAL`             trace(Xᵀ Y) / F · I             multiples of I       one vector of N F numbers
`LOOP_INTERCHANGE`   diag(Xᵀ Y)                      diagonal matrices    F vectors on their own
===================  ==============================  ===================  =========================

The last column is how they are computed: each is the classical product of the same numbers,
arranged as a batch of B block vectors n × r. So one algorithm serves all three.

The trace is divided by F, so that all three are the identity where X has orthonormal columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kryograph.errors import UsageError, unknown
from kryograph.krylov.inputs import A

STRETCH = 8192
"""Rows to a stretch: a product of tall thin matrices is a sum over stretches that fit a cache."""


class BlockInnerProduct(ABC):
    """A block inner product.

    Attributes:
        name: What it is called.
        algebra: What S is, in words.

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
        """⟨X, Y⟩, an F × F matrix in S."""
        x, y = _tensor(X), _tensor(Y)
        if x.shape != y.shape or x.ndim != 2:
            raise UsageError(
                f"An inner product needs two matrices of one shape; they are {tuple(x.shape)} "
                f"and {tuple(y.shape)}."
            )
        found: A = _like(X, self.matrix(gram(self.parts(x), self.parts(y)), x.shape[1]))
        return found

    def norm(self, X: A) -> float:
        """√trace⟨X, X⟩: the Frobenius norm, whichever the product."""
        return float(torch.linalg.matrix_norm(_tensor(X)))

    def normaliser(self, X: A) -> A:
        """N(X) in S with X = Y N(X) and ⟨Y, Y⟩ = I, for X of full rank."""
        x = _tensor(X)
        _, r = torch.linalg.qr(self.parts(x))
        sign = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(r.dtype)
        found: A = _like(X, self.matrix(sign[..., None] * r, x.shape[1]))
        return found

    def contains(self, C: A) -> bool:
        """Whether an F × F matrix lies in S, exactly."""
        c = _tensor(C)
        return torch.equal(c, self.matrix(self._numbers(c), c.shape[-1]))

    @abstractmethod
    def parts(self, x: Tensor) -> Tensor:
        """A block vector N × F as a batch B × n × r."""

    @abstractmethod
    def whole(self, parts: Tensor, width: int) -> Tensor:
        """A batch as a block vector; `width` is F."""

    @abstractmethod
    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        """A batch B × (j r) × (k r) as (j F) × (k F): blocks that lie in S."""

    @abstractmethod
    def _numbers(self, c: Tensor) -> Tensor:
        """What of an F × F matrix lies in S, as a batch."""


class Classical(BlockInnerProduct):
    """⟨X, Y⟩ = Xᵀ Y."""

    name, algebra = "classical", "all F × F matrices"

    def parts(self, x: Tensor) -> Tensor:
        """One matrix."""
        return x[None]

    def whole(self, parts: Tensor, width: int) -> Tensor:
        """The matrix; narrower than F where directions were given up."""
        return parts[0]

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        """The matrix as it is."""
        return numbers[0]

    def _numbers(self, c: Tensor) -> Tensor:
        return c[None]


class Global(BlockInnerProduct):
    """⟨X, Y⟩ = trace(Xᵀ Y) / F · I."""

    name, algebra = "global", "multiples of the identity"

    def parts(self, x: Tensor) -> Tensor:
        """One vector of all numbers, so scaled that its length squared is trace / F."""
        return x.reshape(1, -1, 1).div(x.shape[1] ** 0.5)

    def whole(self, parts: Tensor, width: int) -> Tensor:
        """The numbers as a matrix again."""
        return parts.reshape(-1, width).mul(width**0.5)

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        """Each number times the identity."""
        return torch.kron(numbers[0], torch.eye(width).to(numbers))

    def _numbers(self, c: Tensor) -> Tensor:
        return c[None, :1, :1]


class LoopInterchange(BlockInnerProduct):
    """⟨X, Y⟩ = diag(Xᵀ Y)."""

    name, algebra = "loop-interchange", "diagonal matrices"

    def parts(self, x: Tensor) -> Tensor:
        """F vectors."""
        return x.T.contiguous()[..., None]

    def whole(self, parts: Tensor, width: int) -> Tensor:
        """The vectors as columns."""
        return parts[..., 0].T.contiguous()

    def matrix(self, numbers: Tensor, width: int) -> Tensor:
        """The numbers of one place in all vectors, on a diagonal."""
        _, rows, columns = numbers.shape
        blocks = torch.diag_embed(numbers.permute(1, 2, 0))
        return blocks.permute(0, 2, 1, 3).reshape(rows * width, columns * width)

    def _numbers(self, c: Tensor) -> Tensor:
        return c.diagonal()[:, None, None]


CLASSICAL, GLOBAL, LOOP_INTERCHANGE = Classical(), Global(), LoopInterchange()
INNER_PRODUCTS: dict[str, BlockInnerProduct] = {
    p.name: p for p in (CLASSICAL, GLOBAL, LOOP_INTERCHANGE)
}


def as_inner_product(product: BlockInnerProduct | str) -> BlockInnerProduct:
    """A product, or the one of that name."""
    if isinstance(product, BlockInnerProduct):
        return product
    if product not in INNER_PRODUCTS:
        raise unknown("block inner product", product, INNER_PRODUCTS)
    return INNER_PRODUCTS[product]


def gram(x: Tensor, y: Tensor) -> Tensor:
    """Xᵀ Y of two batches of tall thin matrices: B × n × r, B × n × q → B × r × q."""
    n, r = x.shape[1:]
    if len(x) > 1 or r == 1 or n <= STRETCH:
        return x.mT @ y
    # Over the long side BLAS uses one core, and misses its cache; over stretches it does not.
    whole = n // STRETCH * STRETCH
    a, b = (z[0, :whole].reshape(-1, STRETCH, z.shape[-1]) for z in (x, y))
    found: Tensor = (a.mT @ b).sum(dim=0, keepdim=True)
    return found.baddbmm_(x[:, whole:].mT, y[:, whole:])


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else torch.from_numpy(np.array(x))


def _like(given: Any, found: Tensor) -> Any:
    return found if isinstance(given, Tensor) else found.numpy()
