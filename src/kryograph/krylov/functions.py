r"""Computation of g(L)X for an analytic function g without forming g(L).

.. math::
    g(L) X \approx V g(H) E_1 B, \quad X = V_1 B

in a Krylov basis V that grows until the coefficients g(H) E_1 B converge; or by the power series
a_0 X + a_1 L X + a_2 L² X + …, which is the definition of the paper.

Estimate of the error: V has orthonormal columns, so that the coefficients in two spaces differ by
as much as the approximations do. The remaining error is extrapolated from the last differences and
the rate at which they shrink. It is an estimate and not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from kryograph.errors import KryographError, UsageError, check_known
from kryograph.krylov.filters import Analytic, Filter, FloatArray, as_filter
from kryograph.krylov.inner_products import CLASSICAL, BlockInnerProduct, as_inner_product
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.process import End, Growth

METHODS = ("lanczos", "arnoldi", "power-series")
MOST_STEPS = 200
FINEST_TOLERANCE = 1e-14
"""Smallest tolerance that can be met in float64."""
DIRECTION_TOLERANCE = 1e-13
"""Relative length of a dropped direction; dropping it changes L by an error of this size."""


@dataclass(frozen=True, eq=False)
class Applied(Generic[A]):
    """The result of `applied`: g(L)X, in the kind and shape of X, with an estimate of its error.

    The estimate is relative to the Frobenius norm of g(L)X; the result has converged if it is
    within the tolerance, and is exact up to rounding if `end` is `End.INVARIANT`. `steps` counts
    products with L.
    """

    value: A
    steps: int
    estimate: float
    converged: bool
    end: End


def apply(
    g: Analytic,
    L: LinearMap,
    X: A,
    *,
    tolerance: float = 1e-10,
    max_steps: int = MOST_STEPS,
    method: str = "lanczos",
    product: BlockInnerProduct | str = CLASSICAL,
) -> A:
    """Compute g(L)X to a tolerance; `applied` also returns an estimate of the error.

    Args:
        g: `"exp"`, `"inverse"`, a `Filter`, or a function of an array of eigenvalues.
        L: An operator or a square matrix; symmetric for Lanczos.
        X: N × F, or N numbers.
        tolerance: Largest estimated error, relative to the Frobenius norm of g(L)X.
        max_steps: Largest number of products with L. Each keeps N × F numbers in memory, except
            in a power series.
        method: `"lanczos"`, `"arnoldi"` for an L that is not symmetric, or `"power-series"`.
        product: The block inner product in which the basis is orthonormal.

    Raises:
        KryographError: If the tolerance is not met.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> apply("exp", operator(toy.cycle(5), "laplacian"), np.ones(5)).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    result = applied(
        g, L, X, tolerance=tolerance, max_steps=max_steps, method=method, product=product
    )
    if not result.converged:
        raise KryographError(
            f"g(L)X is not within {tolerance:g} after {result.steps} steps; the estimated error is "
            f"{result.estimate:.1e}: allow more steps or a larger tolerance, or use `applied`, "
            "which returns what was reached."
        )
    return result.value


def applied(
    g: Analytic,
    L: LinearMap,
    X: A,
    *,
    tolerance: float = 1e-10,
    max_steps: int = MOST_STEPS,
    method: str = "lanczos",
    product: BlockInnerProduct | str = CLASSICAL,
) -> Applied[A]:
    """Compute g(L)X with at most `max_steps` steps, and estimate the error.

    The arguments are those of `apply`; a tolerance that is not met is no error here.
    """
    if not tolerance > 0:
        raise UsageError(f"The tolerance must be positive; it is {tolerance}.")
    if max_steps < 1:
        raise UsageError(f"max_steps must be at least 1; it is {max_steps}.")
    check_known("method", method, METHODS)
    pair, function = Pair.of(L, X), as_filter(g)
    tolerance = max(tolerance, FINEST_TOLERANCE)
    if method == "power-series":
        return _sum_power_series(function, pair, tolerance, max_steps)
    if method == "lanczos":
        pair.require_symmetric()
    approximation = Approximation(pair, function, as_inner_product(product), method == "lanczos")
    approximation.grow(tolerance, max_steps)
    return Applied(
        pair.back(approximation.value()),
        approximation.growth.steps,
        approximation.estimate,
        approximation.estimate <= tolerance,
        approximation.growth.end or End.STEPS,
    )


class Approximation:
    """The approximation V g(H) E_1 B of g(L)X in a growing Krylov space.

    The coefficients g(H) E_1 B, B × k × r, are None as long as g is not finite on the Ritz values.
    """

    def __init__(self, pair: Pair, g: Filter, product: BlockInnerProduct, symmetric: bool) -> None:
        self.g = g
        self.growth = Growth(
            pair, product, DIRECTION_TOLERANCE, symmetric=symmetric, partly=symmetric
        )
        self.coefficients: Tensor | None = None
        self.estimate = np.inf
        self._changes: list[float] = []

    def grow(self, tolerance: float, max_steps: int, at_least: int = 0) -> None:
        """Add steps until the estimate is within the tolerance or the space cannot grow."""
        growth = self.growth
        while growth.end is None and growth.steps < max_steps:
            # The coefficients cost an eigen-decomposition, so they are computed every second step
            # and later more rarely. For an even g every other step may change nothing.
            for _ in range(min(max(2, growth.steps // 8), max_steps - growth.steps)):
                if growth.end is None:
                    growth.step()
            self._update()
            if self.estimate <= tolerance and growth.steps >= at_least:
                break
        if growth.end is not None:
            self.estimate = 0.0
        if self.coefficients is None and growth.end is not End.ZERO:
            where = "an eigenvalue" if growth.end is End.INVARIANT else "a Ritz value"
            raise UsageError(
                f"The function {self.g.name} is not finite, or jumps, at {where} of L: "
                "shift its pole away from there."
            )

    def value(self) -> Tensor:
        """Compute the approximation of g(L)X, N × F."""
        growth = self.growth
        x = growth.pair.x
        if self.coefficients is None:
            return torch.zeros_like(x)
        y = torch.zeros_like(growth.product.as_batch(x))
        row = 0
        for v in growth.used:
            y.baddbmm_(v, self.coefficients[:, row : row + v.shape[-1]])
            row += v.shape[-1]
        return growth.product.from_batch(y, x.shape[1])

    def _update(self) -> None:
        previous, self.coefficients = self.coefficients, _coefficients(self.g, self.growth)
        if previous is None or self.coefficients is None:
            self.estimate, self._changes = np.inf, []
            return
        change = self.coefficients.clone()
        change[:, : previous.shape[1]] -= previous
        size = float(torch.linalg.vector_norm(self.coefficients))
        self._changes.append(float(torch.linalg.vector_norm(change)) / size if size else 0.0)
        self.estimate = remaining_error(self._changes)


def remaining_error(changes: list[float]) -> float:
    """Extrapolate the sum of all further changes from the last three.

    >>> remaining_error([1.0, 0.1, 0.01])
    0.00111...
    >>> remaining_error([0.1, 0.1, 0.1]), remaining_error([0.1, 0.01])
    (inf, inf)
    """
    if changes[-1] <= FINEST_TOLERANCE:
        return changes[-1]
    if len(changes) < 3:
        return np.inf
    # The slower of the last two rates, because one change may be small by chance.
    rate = max(b / a for a, b in pairwise(changes[-3:]))
    return changes[-1] * rate / (1 - rate) if rate < 1 else np.inf


def _coefficients(g: Filter, growth: Growth) -> Tensor | None:
    """Compute g(H) E_1 B; None if g is not finite on the Ritz values."""
    if not growth.steps:
        return None
    h, start = growth.projected, growth.start
    if not growth.symmetric:
        return _coefficients_by_matrix(g, growth)
    alive = growth.alive
    # A dropped vector has no influence on the result. Its row gets a diagonal entry on which g is
    # known to be finite, because zero may be a pole.
    any_ritz_value = h[:, 0, 0][alive[:, 0]][0]
    h = h + torch.diag_embed(torch.where(alive, 0.0, any_ritz_value))
    values, vectors = torch.linalg.eigh(h)
    g_of_values = finite_values(g, values.cpu().numpy())
    if g_of_values is None:
        return None
    first = vectors[:, : start.shape[1]].mT @ start
    coefficients: Tensor = vectors @ (torch.from_numpy(g_of_values).to(h)[..., None] * first)
    return coefficients


def _coefficients_by_matrix(g: Filter, growth: Growth) -> Tensor | None:
    h, start, alive = growth.projected, growth.start, growth.alive
    coefficients = h.new_zeros(len(h), h.shape[1], start.shape[-1])
    for i, size in enumerate(alive.sum(dim=1).tolist()):
        if not size:
            continue
        corner = h[i, :size, :size].cpu().numpy()
        ritz = np.linalg.eigvals(corner)
        real = ritz.real[ritz.imag == 0]
        if real.size and finite_values(g, real) is None:
            return None
        with np.errstate(all="ignore"):
            try:
                g_of_corner = np.asarray(g.of_matrix(corner))
            except np.linalg.LinAlgError:
                return None
        if not np.isfinite(g_of_corner).all():
            return None
        coefficients[i, :size] = torch.from_numpy(g_of_corner).to(h)[:, : start.shape[1]] @ start[i]
    return coefficients


def finite_values(g: Filter, values: FloatArray) -> FloatArray | None:
    """Evaluate g at Ritz values; None if it is not finite there or within their rounding error."""
    rounding = 4 * values.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max()
    with np.errstate(all="ignore"):
        near = [np.asarray(g.values(values + shift)) for shift in (0.0, -rounding, rounding)]
    for results in near:
        if results.dtype.kind not in "fiu" or results.shape not in ((), values.shape):
            raise UsageError(
                f"The function {g.name} must give a real number for each of {values.shape} "
                f"eigenvalues; it gave {results.dtype} of shape {results.shape}."
            )
    stacked = np.stack([np.broadcast_to(y, values.shape).astype(np.float64) for y in near])
    if not np.isfinite(stacked).all():
        return None
    # Near a pole the rounding error of an eigenvalue decides: 1 / 1e-17 is finite but meaningless.
    jump = np.ptp(stacked, axis=0).max()
    return None if jump > 0.1 * np.abs(stacked).max() else stacked[0]


def _sum_power_series(g: Filter, pair: Pair, tolerance: float, max_steps: int) -> Applied[A]:
    """Sum the power series of g until its terms are small enough."""
    if g.series is None:
        raise UsageError(
            f"The power series of {g.name} about 0 is not known: use method='lanczos', or "
            "write g with `rational` or `chebyshev`."
        )
    total, block = torch.zeros_like(pair.x), pair.x
    terms: list[float] = []
    estimate, steps = np.inf, 0
    coefficients = g.series()
    for n, a in enumerate(islice(coefficients, max_steps + 1)):
        if n:
            block, steps = pair.times(block), n
        total.add_(block, alpha=a)
        size, term = (float(torch.linalg.vector_norm(y)) for y in (total, a * block))
        if not np.isfinite(size + term):
            raise UsageError(
                f"The power series of {g.name} overflows after {n} terms: the spectral radius of L "
                "exceeds its radius of convergence; use method='lanczos'."
            )
        terms.append(term / size if size else 0.0)
        # Pairs of terms, because every other term of an even function is zero.
        estimate = remaining_error([a + b for a, b in pairwise(terms)]) if n else np.inf
        if estimate <= tolerance:
            break
    else:
        if next(coefficients, None) is None:
            estimate = 0.0
    return Applied(pair.back(total), steps, estimate, estimate <= tolerance, End.STEPS)
