"""`kryograph.krylov.functions`: g(L)X against dense eigen-decompositions and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.bench.spmm import random_operator
from kryograph.data import toy
from kryograph.errors import KryographError, UsageError
from kryograph.graph import Graph
from kryograph.krylov import BlockInnerProduct, End, applied, apply, chebyshev, inverse, rational
from kryograph.krylov.filters import as_filter
from kryograph.krylov.functions import finite_values, remaining_error
from kryograph.krylov.inner_products import INNER_PRODUCTS
from kryograph.operators import operator

PIECES = toy.disjoint(toy.complete(4), toy.cycle(7), toy.isolated(2), toy.star(5))
GRAPHS = {
    "cycle": toy.cycle(12),
    "star": toy.star(9),
    "cliques": toy.two_cliques(5),
    "pieces": PIECES,
    "path": toy.path(60),
    "alone": toy.isolated(1),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
every_product = pytest.mark.parametrize("product", INNER_PRODUCTS.values(), ids=INNER_PRODUCTS)


def noise(n: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, width))


def dense(g: Callable[[Any], Any], matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """g(L)X through all eigenvectors of a symmetric L."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors @ (np.asarray(g(values))[:, None] * (vectors.T @ x))


def gap(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / max(np.linalg.norm(exact), 1e-300))


# Against all eigenvectors


@every_graph
@every_product
@pytest.mark.parametrize("name", ["sym", "laplacian", "affinity"])
@pytest.mark.parametrize("method", ["lanczos", "arnoldi"])
def test_the_exponential(graph: Graph, product: BlockInnerProduct, name: str, method: str) -> None:
    L = operator(graph, name)
    for x in (noise(graph.n, 3), np.eye(graph.n, 1), np.ones((graph.n, 2)), np.eye(graph.n)):
        found = applied("exp", L, x, method=method, product=product)
        assert found.converged
        assert gap(found.value, dense(np.exp, L.matrix.toarray(), x)) < 3e-10


@st.composite
def functions(draw: st.DrawFn) -> tuple[Any, Callable[[Any], Any]]:
    """An analytic g as it is given to `apply`, and as a function of numbers in [-1, 1]."""
    numbers = st.floats(-2, 2, allow_subnormal=False)
    kind = draw(st.sampled_from(["exp", "inverse", "rational", "chebyshev", "callable"]))
    if kind == "exp":
        return "exp", np.exp
    if kind == "inverse":
        shift = draw(st.sampled_from([-3.0, -1.5, 1.1, 2.0]))
        return inverse(shift), lambda x: 1 / (x + shift)
    coefficients = [1.0, *draw(st.lists(numbers, max_size=6))]
    if kind == "chebyshev":
        return chebyshev(coefficients), lambda x: np.polynomial.chebyshev.chebval(x, coefficients)
    numerator = np.polynomial.Polynomial(coefficients)
    if kind == "rational":
        return rational(
            coefficients, [2.5, 1.0, 0.3]
        ), lambda x: numerator(x) / (2.5 + x + 0.3 * x**2)
    rate, shift = draw(numbers), draw(numbers)
    return (lambda x: np.cos(rate * x + shift) + 3.0), lambda x: np.cos(rate * x + shift) + 3.0


@settings(max_examples=60)
@given(
    g=functions(),
    n=st.integers(1, 40),
    width=st.integers(1, 4),
    density=st.sampled_from([0.0, 0.05, 0.2, 1.0]),
    product=st.sampled_from(list(INNER_PRODUCTS.values())),
    method=st.sampled_from(["lanczos", "arnoldi", "power-series"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_functions_of_random_graphs(g, n, width, density, product, method, seed) -> None:
    given_g, exact = g
    rng = np.random.default_rng(seed)
    ends = np.stack(np.nonzero(np.triu(rng.random((n, n)) < density, 1)))
    L = operator(Graph.from_edges(ends, n))
    x = rng.integers(-2, 3, (n, width)).astype(np.float64)
    if method == "power-series" and (callable(given_g) or not x.any()):
        method = "lanczos"
    expected = dense(exact, L.matrix.toarray(), x)
    found = applied(given_g, L, x, method=method, product=product, max_steps=500)
    assert found.converged
    scale = max(np.linalg.norm(expected), 1e-3 * np.linalg.norm(x))
    assert np.linalg.norm(found.value - expected) <= 1e-9 * scale


@every_product
def test_an_operator_that_is_not_symmetric(product: BlockInnerProduct) -> None:
    L, x = operator(toy.star(9), "rw"), noise(9, 2)
    matrix = L.matrix.toarray()
    values, vectors = np.linalg.eig(matrix)
    for g, exact in (("exp", np.exp), (inverse(2.0), lambda v: 1 / (v + 2)), (np.cos, np.cos)):
        expected = ((vectors * exact(values)) @ np.linalg.solve(vectors, x)).real
        found = apply(g, L, x, method="arnoldi", product=product)
        assert gap(found, expected) < 1e-10


@pytest.mark.parametrize("width", [1, 4])
@every_product
def test_against_scipy(width: int, product: BlockInnerProduct) -> None:
    matrix, x = random_operator(500), noise(500, width)
    expected = scipy.sparse.linalg.expm_multiply(matrix, x)
    for tolerance in (1e-4, 1e-8, 1e-12):
        found = applied("exp", matrix, x, tolerance=tolerance, product=product)
        assert found.converged
        assert found.estimate <= tolerance
        assert gap(found.value, expected) < 3 * tolerance
        assert found.steps < 20
    solved = scipy.sparse.linalg.spsolve(sp.csc_array(matrix + 1.5 * sp.eye_array(500)), x[:, 0])
    assert gap(apply(inverse(1.5), matrix, x, product=product)[:, 0], solved) < 1e-9


def test_the_laplacian_of_a_grid_takes_many_steps() -> None:
    # Its spectrum is wide: -30 L has eigenvalues from -120 to 0.
    L = -30 * operator(toy.path(300), "laplacian").matrix
    x = noise(300, 2)
    found = applied("exp", L, x, tolerance=1e-9)
    assert found.converged
    assert 20 < found.steps < 60
    assert gap(found.value, dense(np.exp, L.toarray(), x)) < 3e-9


def test_an_even_function_is_not_mistaken_for_a_finished_one() -> None:
    # From a corner of a bipartite graph every other step leaves cosh as it is.
    matrix = 4 * operator(toy.path(50), "affinity").matrix - 4 * sp.eye_array(50)
    x = np.eye(50, 1)
    assert gap(apply(np.cosh, matrix, x), dense(np.cosh, matrix.toarray(), x)) < 3e-10


def test_a_ritz_value_at_a_pole_is_passed_by() -> None:
    # The path without loops: the corner's first Ritz value is 0, and 0 is no eigenvalue.
    matrix = np.eye(6, k=1) + np.eye(6, k=-1)
    found = apply("inverse", matrix, np.eye(6, 1))
    np.testing.assert_allclose(matrix @ found, np.eye(6, 1), atol=1e-13)


def test_a_pole_that_x_does_not_see_is_none() -> None:
    # The pseudo-inverse, since X is orthogonal to the constants.
    L, x = operator(toy.path(6), "laplacian"), np.array([1.0, 0.0, 0.0, 0.0, 0.0, -1.0])
    found = apply("inverse", L, x)
    np.testing.assert_allclose(found, [2.5, 1.5, 0.5, -0.5, -1.5, -2.5], atol=1e-12)


# What happened


@every_product
@pytest.mark.parametrize("method", ["lanczos", "arnoldi"])
def test_endings(product: BlockInnerProduct, method: str) -> None:
    L = operator(toy.complete(6))
    found = applied("exp", L, np.eye(6, 2), method=method, product=product)
    assert (found.end, found.steps, found.estimate) == (End.INVARIANT, 2, 0.0)
    # exp(L) = I + (e - 1) L, for L² = L.
    expected = np.eye(6, 2) + (np.e - 1) / 6
    np.testing.assert_allclose(found.value, expected, atol=1e-14)
    nothing = applied("inverse", L, np.zeros((6, 2)), method=method, product=product)
    assert (nothing.end, nothing.steps, nothing.converged) == (End.ZERO, 0, True)
    assert not nothing.value.any()


@every_product
def test_columns_that_end_at_different_times_do_not_disturb_each_other(
    product: BlockInnerProduct,
) -> None:
    L = operator(toy.disjoint(toy.complete(4), toy.path(20)))
    x = np.eye(24)[:, [0, 4, 0]] * [1.0, 1.0, 0.0]
    for g, exact in (("exp", np.exp), (inverse(1.2), lambda v: 1 / (v + 1.2))):
        assert gap(apply(g, L, x, product=product), dense(exact, L.matrix.toarray(), x)) < 1e-9


@pytest.mark.parametrize("method", ["lanczos", "arnoldi", "power-series"])
def test_steps_run_out(method: str) -> None:
    L, x = operator(toy.path(200)), noise(200, 1)
    found = applied(inverse(1.01), L, x, max_steps=5, method=method)
    assert (found.steps, found.converged, found.end) == (5, False, End.STEPS)
    assert found.value.shape == x.shape
    with pytest.raises(KryographError, match="not within 1e-10 after 5 steps") as raised:
        apply(inverse(1.01), L, x, max_steps=5, method=method)
    assert raised.value.exit_code == 1


def test_slow_convergence_is_not_called_fast() -> None:
    L = operator(toy.path(400))
    x = noise(400, 2)
    exact = dense(lambda v: 1 / (v + 0.34), L.matrix.toarray(), x)
    for tolerance in (1e-2, 1e-4, 1e-8):
        found = applied(inverse(0.34), L, x, tolerance=tolerance, max_steps=300)
        assert found.converged
        assert gap(found.value, exact) < 10 * tolerance


def test_no_tolerance_is_finer_than_rounding() -> None:
    found = applied("exp", operator(toy.path(80)), noise(80, 2), tolerance=1e-30)
    assert found.converged
    assert found.steps < 30


def test_the_remaining_error_is_extrapolated() -> None:
    assert remaining_error([1.0]) == np.inf
    assert remaining_error([1.0, 0.5, 0.25]) == pytest.approx(0.25)
    assert remaining_error([1.0, 0.5, 1e-6]) == pytest.approx(1e-6)  # at the slower rate
    assert remaining_error([1.0, 0.0]) == 0.0
    assert remaining_error([0.1, 0.1, 0.2]) == np.inf


# The power series


def test_a_polynomial_takes_as_many_products_as_its_degree() -> None:
    L, x = operator(toy.cycle(9)), noise(9, 2)
    found = applied(rational([1.0, 0.0, 2.0]), L, x, method="power-series")
    assert (found.steps, found.estimate, found.converged) == (2, 0.0, True)
    np.testing.assert_allclose(found.value, x + 2 * (L @ (L @ x)), atol=1e-14)


def test_the_series_of_the_exponential() -> None:
    found = applied("exp", operator(toy.cycle(9)), noise(9, 2), method="power-series")
    assert 11 <= found.steps <= 16
    assert found.converged


def test_outside_its_radius_a_series_is_refused_and_lanczos_is_not() -> None:
    L, x = operator(toy.cycle(9)), noise(9, 2)
    with pytest.raises(UsageError, match="exceeds its radius of convergence"):
        apply(inverse(0.01), L, x, method="power-series")
    exact = dense(lambda v: 1 / (v + 0.01), L.matrix.toarray(), x)
    assert gap(apply(inverse(0.01), L, x), exact) < 1e-10
    with pytest.raises(KryographError, match="not within"):
        apply(inverse(0.9), L, x, method="power-series")


def test_a_function_without_a_known_series_is_refused() -> None:
    for g in (np.cos, "inverse"):
        with pytest.raises(UsageError, match=r"power series of .* is not known"):
            apply(g, operator(toy.cycle(9)), noise(9, 2), method="power-series")


# Bad input


@pytest.mark.parametrize("method", ["lanczos", "arnoldi"])
@pytest.mark.parametrize(
    ("g", "name"),
    [
        ("inverse", "laplacian"),
        (inverse(-1.0), "sym"),
        (rational([1.0], [0.0, 0.0, 1.0]), "normalised-laplacian"),
        (rational([1.0, 1.0], [1.0, -1.0]), "sym"),
    ],
)
def test_a_pole_in_the_spectrum_is_refused(g: Any, name: str, method: str) -> None:
    for graph in (toy.cycle(8), toy.path(5), PIECES):
        with pytest.raises(UsageError, match="not finite, or jumps, at an eigenvalue"):
            apply(g, operator(graph, name), noise(graph.n, 1), method=method)


@pytest.mark.parametrize(
    "g", [np.log, np.sqrt, lambda x: 1 / x, lambda x: x * np.nan, lambda x: np.sign(x)]
)
def test_a_function_that_is_not_finite_on_the_spectrum_is_refused(g: Any) -> None:
    L = operator(toy.cycle(8), "laplacian")
    shifted = L.matrix - 2 * sp.eye_array(8)  # eigenvalues -2, …, 0, …, 2
    with pytest.raises(UsageError, match="not finite, or jumps"):
        apply(g, shifted, noise(8, 1))


def test_a_function_must_give_a_number_for_each_eigenvalue() -> None:
    L = operator(toy.cycle(8))
    for g in (lambda x: x + 0j, lambda x: x.ravel()[:1], lambda x: "no"):
        with pytest.raises(UsageError, match="must give a real number for each"):
            apply(g, L, noise(8, 1))
    np.testing.assert_allclose(apply(lambda x: 2.0, L, np.ones(8)), 2.0)


def test_rounding_at_a_zero_of_g_is_no_pole() -> None:
    near = np.array([1e-17, 0.5, 1.0])
    assert finite_values(as_filter(lambda x: x), near) is not None
    assert finite_values(as_filter("inverse"), near) is None
    assert finite_values(as_filter("inverse"), np.array([1e-9, 0.5, 1.0])) is not None


def test_bad_arguments() -> None:
    L, x = operator(toy.cycle(5)), torch.ones(5, 1)
    for tolerance in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="tolerance must be positive"):
            apply("exp", L, x, tolerance=tolerance)
    with pytest.raises(UsageError, match="max_steps must be at least 1; it is 0"):
        apply("exp", L, x, max_steps=0)
    with pytest.raises(UsageError, match="did you mean 'lanczos'"):
        apply("exp", L, x, method="lancsoz")
    with pytest.raises(UsageError, match="Unknown analytic function 'expp'"):
        apply("expp", L, x)
    with pytest.raises(UsageError, match="Unknown block inner product"):
        apply("exp", L, x, product="none")
