"""Analytic functions: values, matrices and power series agree, and bad ones are refused."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.linalg

from kryograph.errors import UsageError
from kryograph.krylov import Filter, chebyshev, inverse, rational
from kryograph.krylov.filters import FILTERS, as_filter

POINTS = np.linspace(-0.9, 0.9, 7)
MINE: dict[str, Filter] = {
    "exp": FILTERS["exp"],
    "inverse": inverse(1.5),
    "inverse, negative": inverse(-2.0),
    "polynomial": rational([1.0, 0.0, -2.0]),
    "rational": rational([1.0, 2.0], [3.0, 1.0, 0.5]),
    "chebyshev": chebyshev([0.5, 1.0, 0.0, 0.25]),
    "chebyshev, elsewhere": chebyshev([0.5, 1.0, 2.0], (-1.0, 3.0)),
}
every_filter = pytest.mark.parametrize("g", MINE.values(), ids=MINE)


def test_values_by_hand() -> None:
    at = np.array([0.0, 1.0])
    assert MINE["exp"].values(at) == pytest.approx([1.0, np.e])
    assert inverse(1.0).values(at) == pytest.approx([1.0, 0.5])
    assert rational([1.0, 2.0], [3.0, 1.0]).values(at) == pytest.approx([1 / 3, 3 / 4])
    assert chebyshev([0.0, 0.0, 0.0, 1.0]).values(np.array([0.5])) == pytest.approx([-1.0])
    assert chebyshev([0.0, 1.0], (0.0, 2.0)).values(at) == pytest.approx([-1.0, 0.0])


@every_filter
def test_a_matrix_is_treated_as_its_eigenvalues_are(g: Filter) -> None:
    basis = np.random.default_rng(0).standard_normal((7, 7))  # not orthogonal
    matrix = basis @ np.diag(POINTS) @ np.linalg.inv(basis)
    expected = basis @ np.diag(g.values(POINTS)) @ np.linalg.inv(basis)
    np.testing.assert_allclose(g.of_matrix(matrix), expected, rtol=1e-9, atol=1e-9)


@every_filter
def test_the_power_series_sums_to_the_values(g: Filter) -> None:
    assert g.series is not None
    coefficients = list(islice(g.series(), 200))
    found = np.polynomial.polynomial.polyval(POINTS, coefficients)
    np.testing.assert_allclose(found, g.values(POINTS), rtol=1e-12)


def test_polynomials_end() -> None:
    assert list(rational([1.0, 0.0, -2.0]).series()) == [1.0, 0.0, -2.0]
    assert list(chebyshev([0.0, 0.0, 1.0]).series()) == [-1.0, 0.0, 2.0]


def test_what_has_no_series_about_zero() -> None:
    assert inverse().series is None
    assert rational([1.0], [0.0, 1.0]).series is None
    assert as_filter(np.cos).series is None


def test_a_function_becomes_a_filter() -> None:
    g = as_filter(np.cos)
    assert g.name == "cos"
    assert as_filter(g) is g
    matrix = np.array([[0.5, 1.0], [0.0, 0.2]])
    np.testing.assert_allclose(g.of_matrix(matrix), scipy.linalg.cosm(matrix), atol=1e-14)


def test_a_function_of_a_matrix_without_enough_eigenvectors_is_refused() -> None:
    g = as_filter(np.cos)
    for matrix in (np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])):
        with pytest.raises(UsageError, match="use the operator sym"):
            g.of_matrix(matrix)


def test_bad_coefficients_are_refused() -> None:
    for make in (
        lambda: rational([]),
        lambda: rational([np.nan]),
        lambda: chebyshev([]),
        lambda: chebyshev([[1.0]]),
    ):
        with pytest.raises(UsageError, match="1 or more finite coefficients"):
            make()
    with pytest.raises(UsageError, match="must not be zero"):
        rational([1.0], [0.0])
    with pytest.raises(UsageError, match="from a number to a larger one"):
        chebyshev([1.0], (1.0, 1.0))
    with pytest.raises(UsageError, match="did you mean 'inverse'"):
        as_filter("invers")
