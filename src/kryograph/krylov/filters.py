"""Analytic functions g for g(L)X: on eigenvalues, on a small matrix, and as a power series.

===========================  =============================  ===============================
g                            argument                       power series about 0 converges
===========================  =============================  ===============================
exp(x)                       `"exp"`                        everywhere
1 / (x + c)                  `"inverse"`, `inverse(c)`      for |x| < |c|
p(x) / q(x)                  `rational(p, q)`               up to the nearest root of q
Σ c_k T_k(x)                 `chebyshev(c, interval)`       everywhere (a polynomial)
any function of an array     the function itself            series not known
===========================  =============================  ===============================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
from numpy.polynomial import Polynomial
from numpy.polynomial import chebyshev as cheb

from kryograph.errors import UsageError, check_known

FloatArray: TypeAlias = npt.NDArray[np.float64]

LARGEST_CONDITION = 1e6
"""Condition number of eigenvectors beyond which a matrix function is not computed by them."""


@dataclass(frozen=True)
class Filter:
    """An analytic function g.

    It is evaluated by `values` at an array of numbers and by `of_matrix` at a small matrix that
    need not be symmetric. `series` iterates over the Taylor coefficients about 0, or is None if
    they are not known; `name` is for messages.

    >>> rational([1.0], [1.0, -1.0]).values(np.array([0.0, 0.5])).tolist()
    [1.0, 2.0]
    """

    name: str
    values: Callable[[FloatArray], Any]
    of_matrix: Callable[[FloatArray], Any]
    series: Callable[[], Iterator[float]] | None = None


Analytic: TypeAlias = Filter | str | Callable[[Any], Any]
"""Types of g: a filter, the name of a filter, or a function of an array of eigenvalues."""


def inverse(shift: float = 0.0) -> Filter:
    """The function 1 / (x + shift); g(L)X solves (L + shift I) Y = X."""

    def series() -> Iterator[float]:
        return ((-1) ** n / shift ** (n + 1) for n in count())

    return Filter(
        f"inverse({shift})",
        lambda x: 1 / (x + shift),
        lambda h: np.linalg.inv(h + shift * np.eye(len(h))),
        series if shift else None,
    )


def rational(numerator: Sequence[float], denominator: Sequence[float] = (1.0,)) -> Filter:
    """Build the function p(x) / q(x) from the coefficients of p and q, constant terms first.

    >>> [a for a, _ in zip(rational([1.0], [1.0, -0.5]).series(), range(3))]
    [1.0, 0.5, 0.25]
    """
    p, q = (Polynomial(_coefficients(c, "A polynomial")) for c in (numerator, denominator))
    if not q.coef.any():
        raise UsageError("The denominator of a rational function must not be zero.")

    def coefficients() -> Iterator[float]:
        # p = q · Σ a_n xⁿ is solved for one coefficient after the other.
        series: list[float] = []
        for n in count():
            if len(q.coef) == 1 and n >= len(p.coef):
                return
            known = sum(q.coef[k] * series[n - k] for k in range(1, min(n, q.degree()) + 1))
            series.append(float(((p.coef[n] if n < len(p.coef) else 0.0) - known) / q.coef[0]))
            yield series[-1]

    def of_matrix(h: FloatArray) -> Any:
        return np.linalg.solve(_horner(q, h), _horner(p, h))

    name = f"rational({p.coef.tolist()}, {q.coef.tolist()})"
    return Filter(name, lambda x: p(x) / q(x), of_matrix, coefficients if q.coef[0] else None)


def chebyshev(coefficients: Sequence[float], interval: tuple[float, float] = (-1.0, 1.0)) -> Filter:
    """The function Σ c_k T_k(t), where t runs from -1 to 1 as x runs through the interval.

    >>> chebyshev([0.0, 0.0, 1.0]).values(np.array([0.0, 1.0])).tolist()
    [-1.0, 1.0]
    """
    c, (low, high) = _coefficients(coefficients, "A Chebyshev series"), interval
    if not low < high:
        raise UsageError(f"The interval must run from a number to a larger one; it is {interval}.")
    middle, half = (low + high) / 2, (high - low) / 2

    def of_matrix(h: FloatArray) -> Any:
        one = np.eye(len(h))
        t = (h - middle * one) / half
        first, second = np.zeros_like(t), np.zeros_like(t)
        for a in c[:0:-1]:  # Clenshaw
            first, second = a * one + 2 * t @ first - second, first
        return c[0] * one + t @ first - second

    def series() -> Iterator[float]:
        power = Polynomial(cheb.cheb2poly(c))
        shifted = power(Polynomial([-middle / half, 1 / half]))
        return iter(np.atleast_1d(shifted.coef).tolist())

    return Filter(
        f"chebyshev({c.tolist()}, {interval})",
        lambda x: cheb.chebval((x - middle) / half, c),
        of_matrix,
        series,
    )


def as_filter(g: Analytic) -> Filter:
    """Convert a name or a function to a filter; a filter is returned as it is."""
    if isinstance(g, Filter):
        return g
    if callable(g):
        return Filter(getattr(g, "__name__", "g"), g, _through_eigenvectors(g))
    check_known("analytic function", g, FILTERS)
    return FILTERS[g]


def _factorials() -> Iterator[float]:
    return (1 / math.factorial(n) if n < 170 else 0.0 for n in count())


FILTERS: dict[str, Filter] = {
    "exp": Filter("exp", np.exp, scipy.linalg.expm, _factorials),
    "inverse": inverse(),
}


def _coefficients(coefficients: Sequence[float], what: str) -> FloatArray:
    numbers = np.asarray(coefficients, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise UsageError(f"{what} needs 1 or more finite coefficients; they are {coefficients}.")
    return numbers


def _horner(polynomial: Polynomial, h: FloatArray) -> FloatArray:
    """Evaluate a polynomial at a matrix by Horner's rule."""
    value: FloatArray = np.zeros_like(h)
    for a in polynomial.coef[::-1]:
        value = value @ h + a * np.eye(len(h))
    return value


def _through_eigenvectors(g: Callable[[Any], Any]) -> Callable[[FloatArray], Any]:
    """Evaluate g at matrices with real eigenvalues and well-conditioned eigenvectors."""

    def of_matrix(h: FloatArray) -> Any:
        values, vectors = np.linalg.eig(h)
        real = np.abs(values.imag).max() <= 1e-10 * np.abs(values).max()
        if not real or np.linalg.cond(vectors) > LARGEST_CONDITION:
            raise UsageError(
                "A function of eigenvalues needs an L with real eigenvalues and independent "
                "eigenvectors: use the operator sym, or a named function."
            )
        return ((vectors * g(values.real)) @ np.linalg.inv(vectors)).real

    return of_matrix
