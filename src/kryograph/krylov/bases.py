"""Bases of block Krylov spaces, by the block Arnoldi and block Lanczos processes, and the grade."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import torch
from torch import Tensor

from kryograph.errors import UsageError
from kryograph.krylov.growth import End, Growth
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.products import CLASSICAL, Product, as_product


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
    product: Product | str = CLASSICAL,
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
    product: Product | str = CLASSICAL,
    tolerance: float | None = None,
) -> BlockBasis[A]:
    """The same for a symmetric L, by three-term recurrences; arguments as for `arnoldi`."""
    pair = Pair.of(L, X)
    pair.require_symmetric()
    return _basis(pair, steps, product, tolerance, symmetric=True)


def grade(
    L: LinearMap, X: A, *, tolerance: float | None = None, product: Product | str = CLASSICAL
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
        pair, as_product(product), rank_tolerance(pair, tolerance), symmetric=pair.symmetric
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
    product: Product | str,
    tolerance: float | None,
    *,
    symmetric: bool,
) -> BlockBasis[A]:
    if steps < 1:
        raise UsageError(f"A Krylov space takes 1 step or more; got {steps}.")
    growth = Growth(pair, as_product(product), rank_tolerance(pair, tolerance), symmetric=symmetric)
    while growth.end is None and growth.steps < steps:
        growth.step()
    return BlockBasis(growth)
