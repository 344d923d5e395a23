r"""The parameter blocks of the paper's equation for a filter, :math:`g(L) X = K_m(L, X) \Gamma`.

In a Krylov basis, with :math:`X = V_1 B`, both sides are small:

.. math::
    L^i X = V H^i E_1 B, \quad g(L) X = V g(H) E_1 B, \quad
    [B', H B', \dots, H^{m-1} B'] \, \Gamma = g(H) B', \quad B' = E_1 B

and Γ is the least-squares solution of least norm, which is exact where m is the grade.

Bases of block Krylov spaces, by the block Arnoldi and block Lanczos processes, and the grade.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov.filters import Analytic, as_filter
from kryograph.krylov.functions import FINEST, MOST_STEPS, Approximation
from kryograph.krylov.inner_products import CLASSICAL, BlockInnerProduct, as_inner_product
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.process import End, Growth


def gamma(
    g: Analytic,
    L: LinearMap,
    X: A,
    m: int | None = None,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    max_steps: int = MOST_STEPS,
) -> A:
    """Γ_0, …, Γ_{m-1} in S, as m × F × F, such that X Γ_0 + L X Γ_1 + … is g(L)X.

    The powers L^i X are nearly dependent long before they are. Up to thirty blocks the sum is
    g(L)X to 1e-11 where the spectrum lies in [-1, 1], and to 1e-7 for the Laplacian of a path.

    Args:
        g: As for `apply`.
        L: An operator or a square matrix, symmetric or not.
        X: N × F.
        m: How many blocks; the grade m(L, X) by default. With fewer, the sum is as near to
            g(L)X as it can be in the Frobenius norm.
        product: Whose algebra S the blocks lie in.
        max_steps: How large the Krylov space may become.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> # On three joined nodes L² = L, so that exp(L) = I + (e - 1) L.
    >>> found = gamma("exp", operator(toy.complete(3)), torch.eye(3, 1, dtype=torch.float64))
    >>> [round(x, 6) for x in found.ravel().tolist()]
    [1.0, 1.718282]
    """
    if m is not None and m < 1:
        raise UsageError(f"m must be 1 or more blocks; got {m}.")
    pair, chosen = Pair.of(L, X), as_inner_product(product)
    width = pair.x.shape[1]
    m = grade(L, X, product=chosen) if m is None else m
    approximation = Approximation(pair, as_filter(g), chosen, pair.symmetric)
    approximation.grow(FINEST, max(max_steps, m), at_least=m)
    growth, right = approximation.growth, approximation.coefficients
    if growth.end is End.ZERO or right is None:
        nothing: A = pair.back(pair.x.new_zeros(m, width, width))
        return nothing
    power = torch.zeros_like(right)
    power[:, : growth.start.shape[1]] = growth.start
    powers = []
    for _ in range(m):
        powers.append(power)
        power = growth.projected @ power
    left = torch.cat(powers, dim=2)
    # Powers shrink or grow: at one length the least-squares problem is better conditioned.
    lengths = torch.linalg.vector_norm(left, dim=1)
    lengths = torch.where(lengths > 0, lengths, 1.0)
    solved = torch.linalg.lstsq(left / lengths[:, None], right, driver="gelsd").solution
    numbers = solved / lengths[..., None]
    whole: A = pair.back(chosen.matrix(numbers, width).reshape(m, width, width))
    return whole


@dataclass(frozen=True, eq=False)
class BlockBasis(Generic[A]):
    """What Arnoldi or Lanczos found: V = [V_1, …, V_k] with L V = V H + (what leads out of it).

    The arrays are made when they are asked for, of X's kind and type.
    """

    _growth: Growth

    @property
    def blocks(self) -> list[A]:
        """V_1, …, V_k: N × F each, or narrower where directions were given up (classical)."""
        found: list[A] = [self._growth.pair.back(v) for v in self._wholes()]
        return found

    @cached_property
    def basis(self) -> A:
        """V, the blocks side by side."""
        pair = self._growth.pair
        found: A = pair.back(torch.cat([pair.x[:, :0], *self._wholes()], dim=1))
        return found

    @cached_property
    def projected(self) -> A:
        """H, whose blocks lie in S: block Hessenberg, block tridiagonal by Lanczos."""
        return self._matrix(self._growth.projected)

    @cached_property
    def start(self) -> A:
        """B with X = V_1 B."""
        return self._matrix(self._growth.start)

    @property
    def ranks(self) -> tuple[int, ...]:
        """How many directions each block adds; F, F, … as long as nothing is given up.

        A block is one direction for the global product, and as many as it has non-zero columns
        for the loop-interchange one.
        """
        return tuple(self._growth.ranks[: self._growth.steps])

    @property
    def end(self) -> End:
        """Why there are no more blocks."""
        return self._growth.end or End.STEPS

    @property
    def grade(self) -> int | None:
        """m(L, X), if the space is invariant; None if it might grow."""
        return None if self.end is End.STEPS else self._growth.steps

    def _wholes(self) -> list[Tensor]:
        growth = self._growth
        return [growth.product.whole(v, growth.pair.x.shape[1]) for v in growth.used]

    def _matrix(self, numbers: Tensor) -> A:
        growth = self._growth
        found: A = growth.pair.back(growth.product.matrix(numbers, growth.pair.x.shape[1]))
        return found


def arnoldi(
    L: LinearMap,
    X: A,
    steps: int,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    tolerance: float | None = None,
) -> BlockBasis[A]:
    """At most `steps` blocks of an orthonormal basis, for any square L.

    Args:
        L: An operator or a square matrix.
        X: N × F.
        steps: The largest number of blocks.
        product: The block inner product, or its name.
        tolerance: What counts as zero, relative to X's columns and to L; by default the root of
            the rounding of X and L: 1.5e-8 in float64. Below it rounding is taken for a direction.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> corner = torch.eye(5, 1)
    >>> found = arnoldi(operator(toy.complete(5)), corner, 10)
    >>> found.end.name, found.ranks
    ('INVARIANT', (1, 1))
    """
    return _basis(Pair.of(L, X), steps, product, tolerance, symmetric=False)


def block_lanczos(
    L: LinearMap,
    X: A,
    steps: int,
    *,
    product: BlockInnerProduct | str = CLASSICAL,
    tolerance: float | None = None,
) -> BlockBasis[A]:
    """The same for a symmetric L, by three-term recurrences; arguments as for `arnoldi`."""
    pair = Pair.of(L, X)
    pair.require_symmetric()
    return _basis(pair, steps, product, tolerance, symmetric=True)


def grade(
    L: LinearMap,
    X: A,
    *,
    tolerance: float | None = None,
    product: BlockInnerProduct | str = CLASSICAL,
) -> int:
    """m(L, X): the smallest m where K_{m+1}(L, X) spans what K_m(L, X) spans; 0 if X is zero.

    Args:
        L: An operator or a square matrix.
        X: N × F.
        tolerance: What counts as zero; as for `arnoldi`.
        product: Whose span: with coefficients from all matrices (classical), from the diagonal
            ones (loop-interchange) or from the multiples of the identity (global).

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> L = operator(toy.complete(5))
    >>> grade(L, torch.ones(5, 1)), grade(L, torch.eye(5, 1)), grade(L, torch.zeros(5, 1))
    (1, 2, 0)
    """
    pair = Pair.of(L, X)
    growth = Growth(
        pair, as_inner_product(product), rank_tolerance(pair, tolerance), symmetric=pair.symmetric
    )
    while growth.end is None:
        growth.step()
    return growth.steps


def rank_tolerance(pair: Pair, tolerance: float | None) -> float:
    """What counts as zero: as told, or the root of the rounding.

    A direction of length τ carries rounding of size ε / τ, so that below √ε nobody can say
    whether the next one is a direction at all.
    """
    if tolerance is None:
        return float(pair.eps**0.5)
    if not 0 < tolerance < 1:
        raise UsageError(f"A tolerance must lie between 0 and 1; got {tolerance}.")
    return tolerance


def _basis(
    pair: Pair,
    steps: int,
    product: BlockInnerProduct | str,
    tolerance: float | None,
    *,
    symmetric: bool,
) -> BlockBasis[A]:
    if steps < 1:
        raise UsageError(f"A Krylov space takes 1 step or more; got {steps}.")
    growth = Growth(
        pair, as_inner_product(product), rank_tolerance(pair, tolerance), symmetric=symmetric
    )
    while growth.end is None and growth.steps < steps:
        growth.step()
    return BlockBasis(growth)
