"""Experiments on Lemma 1, Theorems 1 and 2, section 5.3 and the number of Krylov blocks.

The span of K_m(L, X) grows with m until m is the grade of X; from there on more blocks add nothing
that a layer could use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from kryograph.errors import UsageError
from kryograph.figures.ranks import ARCHITECTURES, ScaledLayers, numerical_rank
from kryograph.graph import Graph
from kryograph.krylov.bases import rank_tolerance
from kryograph.krylov.inner_products import CLASSICAL, as_inner_product
from kryograph.krylov.inputs import Pair
from kryograph.krylov.process import Growth
from kryograph.operators import Operator, from_adjacency, operator

FloatValues = npt.NDArray[np.float64]

FLOOR = 1e-13
"""Distances below this share of the first one are rounding errors."""


@dataclass(frozen=True)
class Convergence:
    """Convergence of L^m x to the span of the component vectors (Lemma 1)."""

    components: int  # number of connected components
    second: float  # the largest |λ| of L below 1
    distances: FloatValues  # of L^m x from the span for m = 0, 1, …, relative to that of x

    @property
    def rate(self) -> float:
        """Factor by which a step shrinks the distance: the mean over the last tenth of steps."""
        usable = self.distances[self.distances > FLOOR]
        last = max(1, len(usable) // 10)
        if len(usable) <= last:
            return 0.0
        return float((usable[-1] / usable[-1 - last]) ** (1 / last))


def component_vectors(graph: Graph) -> sp.csr_array:
    """Eigenvectors of `sym` for the eigenvalue 1, N × k: D̃^{1/2} 1 on one component each.

    >>> from kryograph.data import toy
    >>> component_vectors(toy.disjoint(toy.path(2), toy.isolated(1))).toarray().round(4).tolist()
    [[0.7071, 0.0], [0.7071, 0.0], [0.0, 1.0]]
    """
    components, group = connected_components(graph.adjacency, directed=False)
    root = np.sqrt(graph.adjacency.sum(axis=1) + 1)
    lengths = np.sqrt(np.bincount(group, weights=root**2, minlength=components))
    return sp.csr_array((root / lengths[group], (np.arange(graph.n), group)))


def convergence(graph: Graph, steps: int, columns: int = 4, seed: int = 0) -> Convergence:
    """Multiply random columns by L, `steps` times, and measure what lies outside of the span."""
    L, v = operator(graph, "sym").matrix, component_vectors(graph)

    def outside(x: FloatValues) -> FloatValues:
        remainder: FloatValues = x - v @ (v.T @ x)
        return remainder

    x = outside(np.random.default_rng(seed).standard_normal((graph.n, columns)))
    norms = [float(np.linalg.norm(x))]
    for _ in range(steps):
        # L maps the span and its complement to themselves, so `outside` removes rounding errors
        # only. Without it they would grow and hide the distance.
        x = outside(L @ x)
        norms.append(float(np.linalg.norm(x)))
    distances = np.array(norms) / (norms[0] or 1.0)
    return Convergence(v.shape[1], _largest_outside(L, outside), distances)


def _largest_outside(L: sp.csr_array, outside: Callable[[FloatValues], FloatValues]) -> float:
    """The largest |λ| of L whose eigenvector is not in the span."""
    n = L.shape[0]
    if n <= 100:
        dense = outside(L.toarray())
        return float(abs(np.linalg.eigvalsh((dense + dense.T) / 2)).max(initial=0.0))
    restricted = LinearOperator((n, n), matvec=lambda x: outside(L @ outside(x)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    return float(abs(eigsh(restricted, k=1, v0=start, return_eigenvectors=False)[0]))


@torch.no_grad()
def deep_ranks(
    components: int, nodes: int, degree: float, width: int, layers: int, seed: int = 0
) -> list[int]:
    """Ranks of all layers of a deep GCN with ReLU on a graph of several components (Theorem 1).

    Each component is a random graph with a path through all nodes and a triangle, so that it is
    connected and not bipartite. `nodes` counts those of all components, `degree` is the mean degree
    of the random graphs, and X and all layers have `width` columns.
    """
    rng = np.random.default_rng([seed, components])
    L = from_adjacency(_components(components, nodes // components, degree, rng))
    x = torch.from_numpy(rng.standard_normal((L.n, width)))
    network = ScaledLayers(ARCHITECTURES["gcn"], "relu", [x])
    weights = (torch.from_numpy(rng.standard_normal((width, width))) for _ in range(layers))
    return [numerical_rank(network.forward(L, weight)) for weight in weights]


def _components(count: int, size: int, degree: float, rng: np.random.Generator) -> sp.csr_array:
    if size < 3:
        raise UsageError(f"A component needs 3 nodes for a triangle; it would have {size}.")
    blocks = []
    for _ in range(count):
        upper = np.triu(rng.random((size, size)) < degree / size, 1)
        upper[np.arange(size - 1), np.arange(1, size)] = True
        upper[0, 2] = True
        blocks.append(sp.csr_array((upper | upper.T).astype(np.float64)))
    return sp.csr_array(sp.block_diag(blocks))


@dataclass(frozen=True)
class RankChange:
    """Shares of draws in which f lowers, keeps or raises the rank of two columns (Theorem 2)."""

    function: str  # name of f
    columns: str  # "independent" or "dependent"
    rows: int  # number of entries of each column
    lowered: float
    kept: float
    raised: float


def rank_changes(
    rows: Sequence[int] = (2, 3, 5, 10), draws: int = 2000, seed: int = 0
) -> list[RankChange]:
    """Draw x and y from N(0, 1), independent or y = c x, and compare ranks before and after f."""
    changes = []
    for n in rows:
        rng = np.random.default_rng([seed, n])
        x, y = rng.standard_normal((2, draws, n))
        multiple = rng.standard_normal((draws, 1)) * x
        for columns, other in (("independent", y), ("dependent", multiple)):
            before = np.linalg.matrix_rank(np.stack([x, other], axis=2))
            for name, f in (("tanh", np.tanh), ("relu", lambda z: np.maximum(z, 0))):
                after = np.linalg.matrix_rank(np.stack([f(x), f(other)], axis=2))
                shares = (after < before, after == before, after > before)
                changes.append(RankChange(name, columns, n, *(float(s.mean()) for s in shares)))
    return changes


def snowball_residual(L: Operator, x: FloatValues, layers: int, width: int, seed: int = 0) -> float:
    """Relative residual ‖[H_1 … H_n] − K_{n+1}(L, X) V‖ / ‖[H_1 … H_n]‖ of a linear Snowball (5.3).

    V is computed from the weights alone: if C are the coefficients of Σ_j H_j W_l^j, then those of
    H_{l+1} = L Σ_j H_j W_l^j are C moved down by one block. Each layer has `width` outputs.
    """
    rng = np.random.default_rng(seed)
    features = x.shape[1]
    hidden: list[FloatValues] = [x]
    coefficients: list[FloatValues] = [np.eye((layers + 1) * features, features)]
    for _ in range(layers):
        rows = sum(h.shape[1] for h in hidden)
        weight = rng.standard_normal((rows, width)) / np.sqrt(rows)
        hidden.append(np.asarray(L @ (np.hstack(hidden) @ weight)))
        coefficients.append(np.roll(np.hstack(coefficients) @ weight, features, axis=0))
    powers = [x]
    for _ in range(layers):
        powers.append(np.asarray(L @ powers[-1]))
    literal = np.hstack(hidden[1:])
    krylov = np.hstack(powers) @ np.hstack(coefficients[1:])
    return float(np.linalg.norm(krylov - literal) / np.linalg.norm(literal))


@dataclass(frozen=True)
class Span:
    """Growth of the span of K_m(L, X) with m."""

    nodes: int
    features: int
    dimensions: tuple[int, ...]  # of the spans of K_1, K_2, …
    grade: int | None  # the m at which the span stops growing; None if it was not reached
    tolerance: float  # relative length below which a direction counts as zero


def span(graph: Graph, blocks: int, on_dimension: Callable[[int], None] | None = None) -> Span:
    """Compute the span of up to `blocks` blocks by block Lanczos with deflation.

    `on_dimension` is called with the dimension before each step.
    """
    pair = Pair.of(operator(graph, "sym"), dense_features(graph))
    tolerance = rank_tolerance(pair, None)
    growth = Growth(pair, as_inner_product(CLASSICAL), tolerance, symmetric=True)
    while growth.end is None and len(growth.ranks) <= blocks:
        if on_dimension is not None:
            on_dimension(sum(growth.ranks))
        growth.step()
    return Span(
        nodes=graph.n,
        features=graph.features.shape[1],
        dimensions=tuple(int(d) for d in np.cumsum(growth.ranks[:blocks])),
        grade=None if growth.end is None else growth.steps,
        tolerance=tolerance,
    )


def dense_features(graph: Graph) -> FloatValues:
    """Return X as a dense array in float64."""
    x = graph.features
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x, dtype=np.float64)
