r"""Bases of block Krylov spaces, the grade, and the parameter blocks Γ of a filter.

`krylov_blocks` iterates over the block Krylov matrix :math:`K_m(L, X) = [X, LX, \dots, L^{m-1}X]`.

The paper writes a filter as :math:`g(L) X = K_m(L, X) \Gamma`. In a Krylov basis, with
:math:`X = V_1 B`, both sides are small:

.. math::
    L^i X = V H^i E_1 B, \quad g(L) X = V g(H) E_1 B, \quad
    [B', H B', \dots, H^{m-1} B'] \, \Gamma = g(H) B', \quad B' = E_1 B

`gamma` returns the least-squares solution of least norm, which is exact if m is the grade.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Generic, overload

import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov.filters import Analytic, as_filter
from kryograph.krylov.functions import FINEST_TOLERANCE, MOST_STEPS, Approximation
from kryograph.krylov.inner_products import CLASSICAL, BlockInnerProduct, as_inner_product
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.process import End, Growth
from kryograph.operators import EdgeOperator, Operator
from kryograph.sparse import SparseMatrix


@overload
def krylov_blocks(
    L: Operator | EdgeOperator | SparseMatrix | Tensor, X: Tensor | SparseMatrix, order: int
) -> Iterator[Tensor]: ...


@overload
def krylov_blocks(
    L: Operator | sp.sparray | npt.NDArray[Any], X: npt.NDArray[Any], order: int
) -> Iterator[npt.NDArray[Any]]: ...


def krylov_blocks(L: Any, X: Any, order: int) -> Iterator[Any]:
    """Iterate over the blocks X, LX, …, L^{order-1} X of the block Krylov matrix K_order(L, X).

    They are computed by repeated products, L(L(LX)), never from powers of L, in the precision of
    X, and have gradients if X is a tensor with gradients. `order` counts X itself; a sparse X
    becomes dense. If X is a NumPy array, L is an operator or a matrix of NumPy or SciPy.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> x = torch.tensor([[1.0], [0.0], [0.0]])
    >>> [b.ravel().tolist() for b in krylov_blocks(operator(toy.path(3), "affinity"), x, 3)]
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 2.0, 1.0]]
    """
    if order < 1:
        raise UsageError(f"The order of a block Krylov matrix must be at least 1; it is {order}.")
    block = X.to_dense() if isinstance(X, SparseMatrix) else X
    return accumulate(range(order - 1), lambda block, _: L @ block, initial=block)


@dataclass(frozen=True, eq=False)
class BlockBasis(Generic[A]):
    """An orthonormal basis V = [V_1, …, V_k] of a Krylov space, and H with L V = V H + E.

    The remainder E is zero if the space is invariant. Arrays are computed on access and have the
    kind and precision of X.
    """

    _growth: Growth

    @property
    def blocks(self) -> list[A]:
        """V_1, …, V_k, each N × F, or narrower if directions were dropped (classical only)."""
        blocks: list[A] = [self._growth.pair.back(v) for v in self._block_vectors()]
        return blocks

    @cached_property
    def basis(self) -> A:
        """V, an array of all blocks side by side."""
        pair = self._growth.pair
        basis: A = pair.back(torch.cat([pair.x[:, :0], *self._block_vectors()], dim=1))
        return basis

    @cached_property
    def projected(self) -> A:
        """H with blocks in S: block Hessenberg for Arnoldi, block tridiagonal for Lanczos."""
        return self._matrix(self._growth.projected)

    @cached_property
    def start(self) -> A:
        """The matrix B with X = V_1 B."""
        return self._matrix(self._growth.start)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Number of directions that each block adds; F until directions are dropped.

        For the global product a block is one direction, for the loop-interchange product as many
        as it has non-zero columns.
        """
        return tuple(self._growth.ranks[: self._growth.steps])

    @property
    def end(self) -> End:
        """The reason why the basis has no more blocks."""
        return self._growth.end or End.STEPS

    @property
    def grade(self) -> int | None:
        """The grade m(L, X) if the space is invariant; None if it could grow further."""
        return None if self.end is End.STEPS else self._growth.steps

    def _block_vectors(self) -> list[Tensor]:
        growth = self._growth
        return [growth.product.from_batch(v, growth.pair.x.shape[1]) for v in growth.used]

    def _matrix(self, numbers: Tensor) -> A:
        growth = self._growth
        matrix: A = growth.pair.back(growth.product.matrix(numbers, growth.pair.x.shape[1]))
        return matrix


def arnoldi(
    L: LinearMap,
    X: A,
    steps: int,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    tolerance: float | None = None,
) -> BlockBasis[A]:
    """Compute at most `steps` blocks of an orthonormal basis of a Krylov space of any square L.

    A direction whose length, relative to the columns of X and to L, is below the tolerance counts
    as zero. The default is the square root of the rounding error of X and L, 1.5e-8 in float64;
    with a smaller value rounding errors may be taken for directions.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> corner = torch.eye(5, 1)
    >>> basis = arnoldi(operator(toy.complete(5)), corner, 10)
    >>> basis.end.name, basis.ranks
    ('INVARIANT', (1, 1))
    """
    return BlockBasis(_grow(Pair.of(L, X), steps, product, tolerance, symmetric=False))


def block_lanczos(
    L: LinearMap,
    X: A,
    steps: int,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    tolerance: float | None = None,
) -> BlockBasis[A]:
    """Compute the basis of `arnoldi` for a symmetric L by three-term recurrences."""
    pair = Pair.of(L, X)
    pair.require_symmetric()
    return BlockBasis(_grow(pair, steps, product, tolerance, symmetric=True))


def grade(
    L: LinearMap,
    X: A,
    *,
    tolerance: float | None = None,
    product: BlockInnerProduct | str = CLASSICAL,
) -> int:
    """Compute m(L, X), the smallest m where K_{m+1} and K_m span the same space; 0 if X is zero.

    The span has coefficients from the algebra S of the inner product: all matrices (classical),
    diagonal matrices (loop-interchange) or multiples of the identity (global). The tolerance is
    that of `arnoldi`.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> L = operator(toy.complete(5))
    >>> grade(L, torch.ones(5, 1)), grade(L, torch.eye(5, 1)), grade(L, torch.zeros(5, 1))
    (1, 2, 0)
    """
    pair = Pair.of(L, X)
    return _grow(pair, None, product, tolerance, symmetric=pair.symmetric).steps


def rank_tolerance(pair: Pair, tolerance: float | None) -> float:
    """Check a tolerance; None means the square root of the rounding error ε.

    A direction of length τ has rounding errors of size ε / τ, so that below √ε a direction cannot
    be told from rounding errors.
    """
    if tolerance is None:
        return float(pair.eps**0.5)
    if not 0 < tolerance < 1:
        raise UsageError(f"The tolerance must lie between 0 and 1; it is {tolerance}.")
    return tolerance


def _grow(
    pair: Pair,
    steps: int | None,
    product: BlockInnerProduct | str,
    tolerance: float | None,
    *,
    symmetric: bool,
) -> Growth:
    """Make at most `steps` steps; None means until the space is invariant."""
    if steps is not None and steps < 1:
        raise UsageError(f"The number of steps must be at least 1; it is {steps}.")
    growth = Growth(
        pair, as_inner_product(product), rank_tolerance(pair, tolerance), symmetric=symmetric
    )
    while growth.end is None and (steps is None or growth.steps < steps):
        growth.step()
    return growth


def gamma(
    g: Analytic,
    L: LinearMap,
    X: A,
    m: int | None = None,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    max_steps: int = MOST_STEPS,
) -> A:
    """Compute Γ_0, …, Γ_{m-1} in S, an m × F × F array, with X Γ_0 + L X Γ_1 + … = g(L)X.

    The powers L^i X become nearly dependent long before the grade is reached. Up to thirty blocks
    the sum equals g(L)X to 1e-11 if the spectrum lies in [-1, 1], and to 1e-7 for the Laplacian of
    a path. With m below the grade m(L, X), which is its default, the sum is the best approximation
    of g(L)X in the Frobenius norm. g(L)X is computed in a Krylov space of `max_steps` blocks at
    most; L need not be symmetric.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> # On the complete graph with three nodes L² = L, so that exp(L) = I + (e - 1) L.
    >>> blocks = gamma("exp", operator(toy.complete(3)), torch.eye(3, 1, dtype=torch.float64))
    >>> [round(x, 6) for x in blocks.ravel().tolist()]
    [1.0, 1.718282]
    """
    if m is not None and m < 1:
        raise UsageError(f"m must be at least 1 block; it is {m}.")
    pair, inner_product = Pair.of(L, X), as_inner_product(product)
    width = pair.x.shape[1]
    m = grade(L, X, product=inner_product) if m is None else m
    approximation = Approximation(pair, as_filter(g), inner_product, pair.symmetric)
    approximation.grow(FINEST_TOLERANCE, max(max_steps, m), at_least=m)
    growth, right = approximation.growth, approximation.coefficients
    if growth.end is End.ZERO or right is None:
        zeros: A = pair.back(pair.x.new_zeros(m, width, width))
        return zeros
    power = torch.zeros_like(right)
    power[:, : growth.start.shape[1]] = growth.start
    powers = []
    for _ in range(m):
        powers.append(power)
        power = growth.projected @ power
    left = torch.cat(powers, dim=2)
    # Powers shrink or grow; scaled to length one they make a better conditioned problem.
    lengths = torch.linalg.vector_norm(left, dim=1)
    lengths = torch.where(lengths > 0, lengths, 1.0)
    solution = torch.linalg.lstsq(left / lengths[:, None], right, driver="gelsd").solution
    numbers = solution / lengths[..., None]
    blocks: A = pair.back(inner_product.matrix(numbers, width).reshape(m, width, width))
    return blocks
