r"""g(L)X for an analytic g, without ever forming g(L).

.. math::
    g(L) X \approx V g(H) E_1 B, \quad X = V_1 B

in a Krylov basis V that grows until the coefficients g(H) E_1 B stop moving; or by the power
series a_0 X + a_1 L X + a_2 L² X + …, the paper's own definition.

How the error is estimated: V has orthonormal columns, so that the coefficients of two spaces
differ as the approximations do. From the last differences, and from how fast they shrink, follows
what is still to come. It is an estimate, and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from kryograph.errors import KryographError, UsageError, unknown
from kryograph.krylov.filters import Analytic, Filter, FloatArray, as_filter
from kryograph.krylov.inner_products import CLASSICAL, BlockInnerProduct, as_inner_product
from kryograph.krylov.inputs import A, LinearMap, Pair
from kryograph.krylov.process import End, Growth

METHODS = ("lanczos", "arnoldi", "power-series")
MOST_STEPS = 200
FINEST = 1e-14
"""No finer tolerance can be met in float64."""
ROUNDING = 1e-13
"""What counts as zero here: a direction that is given up is an error in L of its size."""


@dataclass(frozen=True, eq=False)
class Applied(Generic[A]):
    """g(L)X, and how it was reached.

    Attributes:
        value: g(L)X, of X's kind, shape and type.
        steps: Products with L.
        estimate: Of the error, relative to the Frobenius norm of g(L)X.
        converged: Whether the estimate is within the tolerance.
        end: Why it ended; invariant means that nothing but rounding is missing.
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
    """g(L)X to a tolerance; `applied` tells how it was reached, too.

    Args:
        g: `"exp"`, `"inverse"`, a `Filter`, or a function of an array of eigenvalues.
        L: An operator or a square matrix; symmetric for Lanczos.
        X: N × F, or N numbers.
        tolerance: Of the estimated error, relative to the Frobenius norm of g(L)X.
        max_steps: When to give up. A step keeps N × F numbers, except in a power series.
        method: `"lanczos"`, `"arnoldi"` for an L that is not symmetric, or `"power-series"`.
        product: The block inner product that the basis is orthonormal in.

    Raises:
        KryographError: If the tolerance is not met.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> apply("exp", operator(toy.cycle(5), "laplacian"), np.ones(5)).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    found = applied(
        g, L, X, tolerance=tolerance, max_steps=max_steps, method=method, product=product
    )
    if not found.converged:
        raise KryographError(
            f"g(L)X is not within {tolerance:g} after {found.steps} steps; the estimate is "
            f"{found.estimate:.1e}: allow more steps or a larger tolerance, or take it as it is "
            "from `applied`."
        )
    return found.value


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
    """g(L)X as far as it gets in `max_steps`, with an estimate of the error; else as `apply`."""
    if not tolerance > 0:
        raise UsageError(f"A tolerance must be positive; got {tolerance}.")
    if max_steps < 1:
        raise UsageError(f"max_steps must be 1 or more; got {max_steps}.")
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    pair, chosen = Pair.of(L, X), as_filter(g)
    tolerance = max(tolerance, FINEST)
    if method == "power-series":
        return _summed(chosen, pair, tolerance, max_steps)
    if method == "lanczos":
        pair.require_symmetric()
    approximation = Approximation(pair, chosen, as_inner_product(product), method == "lanczos")
    approximation.grow(tolerance, max_steps)
    return Applied(
        pair.back(approximation.value()),
        approximation.growth.steps,
        approximation.estimate,
        approximation.estimate <= tolerance,
        approximation.growth.end or End.STEPS,
    )


class Approximation:
    """V g(H) E_1 B in a space that grows.

    Attributes:
        growth: The space.
        coefficients: g(H) E_1 B, B × k × r; None before the first space where g is finite.
        estimate: Of the relative error.
    """

    def __init__(self, pair: Pair, g: Filter, product: BlockInnerProduct, symmetric: bool) -> None:
        self.g = g
        self.growth = Growth(pair, product, ROUNDING, symmetric=symmetric, partly=symmetric)
        self.coefficients: Tensor | None = None
        self.estimate = np.inf
        self._moved: list[float] = []

    def grow(self, tolerance: float, max_steps: int, at_least: int = 0) -> None:
        """Until the estimate is within the tolerance, or nothing is left to do."""
        growth = self.growth
        while growth.end is None and growth.steps < max_steps:
            # Looking costs an eigen-decomposition: every second step, later more rarely. Not
            # every step, since an even g may not move in every other one.
            for _ in range(min(max(2, growth.steps // 8), max_steps - growth.steps)):
                if growth.end is None:
                    growth.step()
            self._look()
            if self.estimate <= tolerance and growth.steps >= at_least:
                break
        if growth.end is not None:
            self.estimate = 0.0
        if self.coefficients is None and growth.end is not End.ZERO:
            where = "an eigenvalue" if growth.end is End.INVARIANT else "a Ritz value"
            raise UsageError(
                f"The function {self.g.name} is not finite, or jumps, at {where} of L: "
                "shift it away from there."
            )

    def value(self) -> Tensor:
        """The approximation, N × F."""
        growth = self.growth
        x = growth.pair.x
        if self.coefficients is None:
            return torch.zeros_like(x)
        y = torch.zeros_like(growth.product.parts(x))
        at = 0
        for v in growth.used:
            y.baddbmm_(v, self.coefficients[:, at : at + v.shape[-1]])
            at += v.shape[-1]
        return growth.product.whole(y, x.shape[1])

    def _look(self) -> None:
        before, self.coefficients = self.coefficients, _coefficients(self.g, self.growth)
        if before is None or self.coefficients is None:
            self.estimate, self._moved = np.inf, []
            return
        change = self.coefficients.clone()
        change[:, : before.shape[1]] -= before
        size = float(torch.linalg.vector_norm(self.coefficients))
        self._moved.append(float(torch.linalg.vector_norm(change)) / size if size else 0.0)
        self.estimate = still_to_come(self._moved)


def still_to_come(moved: list[float]) -> float:
    """From how far the last three looks moved, how far all further ones will.

    >>> still_to_come([1.0, 0.1, 0.01])
    0.00111...
    >>> still_to_come([0.1, 0.1, 0.1]), still_to_come([0.1, 0.01])
    (inf, inf)
    """
    if moved[-1] <= FINEST:
        return moved[-1]
    if len(moved) < 3:
        return np.inf
    # The slower of the last two, lest one look that happens to be short deceives.
    rate = max(b / a for a, b in pairwise(moved[-3:]))
    return moved[-1] * rate / (1 - rate) if rate < 1 else np.inf


def _coefficients(g: Filter, growth: Growth) -> Tensor | None:
    """g(H) E_1 B, or None where g is not finite on the Ritz values."""
    if not growth.steps:
        return None
    h, start = growth.projected, growth.start
    if not growth.symmetric:
        return _by_matrix(g, growth)
    alive = growth.alive
    # A vector that has ended takes no part; any Ritz value will do, so long as g knows it.
    alive_first = h[:, 0, 0][alive[:, 0]][0]
    h = h + torch.diag_embed(torch.where(alive, 0.0, alive_first))
    values, vectors = torch.linalg.eigh(h)
    at = evaluated(g, values.cpu().numpy())
    if at is None:
        return None
    first = vectors[:, : start.shape[1]].mT @ start
    found: Tensor = vectors @ (torch.from_numpy(at).to(h)[..., None] * first)
    return found


def _by_matrix(g: Filter, growth: Growth) -> Tensor | None:
    h, start, alive = growth.projected, growth.start, growth.alive
    found = h.new_zeros(len(h), h.shape[1], start.shape[-1])
    for i, size in enumerate(alive.sum(dim=1).tolist()):
        if not size:
            continue
        corner = h[i, :size, :size].cpu().numpy()
        ritz = np.linalg.eigvals(corner)
        real = ritz.real[ritz.imag == 0]
        if real.size and evaluated(g, real) is None:
            return None
        with np.errstate(all="ignore"):
            try:
                small = np.asarray(g.of_matrix(corner))
            except np.linalg.LinAlgError:
                return None
        if not np.isfinite(small).all():
            return None
        found[i, :size] = torch.from_numpy(small).to(h)[:, : start.shape[1]] @ start[i]
    return found


def evaluated(g: Filter, values: FloatArray) -> FloatArray | None:
    """g at Ritz values; None if it is not finite there, or not within their rounding."""
    rounding = 4 * values.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max()
    with np.errstate(all="ignore"):
        near = [np.asarray(g.values(values + shift)) for shift in (0.0, -rounding, rounding)]
    for at in near:
        if at.dtype.kind not in "fiu" or at.shape not in ((), values.shape):
            raise UsageError(
                f"The function {g.name} must give a real number for each of {values.shape} "
                f"eigenvalues; it gave {at.dtype} of shape {at.shape}."
            )
    stacked = np.stack([np.broadcast_to(at, values.shape).astype(np.float64) for at in near])
    if not np.isfinite(stacked).all():
        return None
    # At a pole a computed eigenvalue is not the eigenvalue: 1 / 1e-17 is finite, and nonsense.
    jump = np.ptp(stacked, axis=0).max()
    return None if jump > 0.1 * np.abs(stacked).max() else stacked[0]


def _summed(g: Filter, pair: Pair, tolerance: float, max_steps: int) -> Applied[A]:
    """The truncated power series."""
    if g.series is None:
        raise UsageError(
            f"The power series of {g.name} about 0 is not known: take the method lanczos, or "
            "write g as rational or chebyshev."
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
                f"The power series of {g.name} overflows after {n} terms: L's spectral radius is "
                "beyond its radius of convergence, so take the method lanczos."
            )
        terms.append(term / size if size else 0.0)
        # Two terms at a time: every other one of an even function is zero.
        estimate = still_to_come([a + b for a, b in pairwise(terms)]) if n else np.inf
        if estimate <= tolerance:
            break
    else:
        if next(coefficients, None) is None:
            estimate = 0.0
    return Applied(pair.back(total), steps, estimate, estimate <= tolerance, End.STEPS)
