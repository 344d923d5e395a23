"""The paper's Lemma 1, its Theorems 1 and 2, and the equivalence of section 5.3, by experiment.

How many Krylov blocks are enough, which the paper leaves open.

Two answers. The span of K_m(L, X) grows with m until it is invariant, at m = m(L, X), the grade;
from there on more blocks add nothing that a layer could use. And accuracy, which stops growing much
sooner.
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
from kryograph.figures.ranks import ARCHITECTURES, Network, numerical_rank
from kryograph.graph import Graph
from kryograph.operators import Operator, from_adjacency, operator

FloatValues = npt.NDArray[np.float64]

FLOOR = 1e-13
"""Below this share of what they began with, distances are rounding."""


@dataclass(frozen=True)
class Convergence:
    """Lemma 1: how far L^m x is from the span of the component vectors, m = 0, 1, …"""

    components: int
    second: float
    """The largest |λ| of L below 1."""
    distances: FloatValues
    """Relative to that of x."""

    @property
    def rate(self) -> float:
        """By which factor the distance shrinks in the end: the mean over the last tenth."""
        usable = self.distances[self.distances > FLOOR]
        last = max(1, len(usable) // 10)
        if len(usable) <= last:
            return 0.0
        return float((usable[-1] / usable[-1 - last]) ** (1 / last))


def component_vectors(graph: Graph) -> sp.csr_array:
    """N × k: the eigenvectors of `sym` for the eigenvalue 1, D̃^{1/2} 1 on a component each.

    >>> from kryograph.data import toy
    >>> component_vectors(toy.disjoint(toy.path(2), toy.isolated(1))).toarray().round(4).tolist()
    [[0.7071, 0.0], [0.7071, 0.0], [0.0, 1.0]]
    """
    components, group = connected_components(graph.adjacency, directed=False)
    root = np.sqrt(graph.adjacency.sum(axis=1) + 1)
    lengths = np.sqrt(np.bincount(group, weights=root**2, minlength=components))
    return sp.csr_array((root / lengths[group], (np.arange(graph.n), group)))


def convergence(graph: Graph, steps: int, columns: int = 4, seed: int = 0) -> Convergence:
    """Multiply random columns by L, again and again, and look at what is left beside the span."""
    L, v = operator(graph, "sym").matrix, component_vectors(graph)

    def beside(x: FloatValues) -> FloatValues:
        left: FloatValues = x - v @ (v.T @ x)
        return left

    x = beside(np.random.default_rng(seed).standard_normal((graph.n, columns)))
    begun = float(np.linalg.norm(x))
    distances = [1.0] if begun > 0 else [0.0]
    for _ in range(steps):
        # L leaves the span and what is beside it alone, so that rounding is all that `beside`
        # takes out: without it, the span would grow back and hide the distance.
        x = beside(L @ x)
        distances.append(float(np.linalg.norm(x)) / begun if begun > 0 else 0.0)
    return Convergence(v.shape[1], _second(L, beside), np.array(distances))


def _second(L: sp.csr_array, beside: Callable[[FloatValues], FloatValues]) -> float:
    """The largest |λ| beside the span."""
    n = L.shape[0]
    if n <= 100:
        dense = beside(L.toarray())
        return float(abs(np.linalg.eigvalsh((dense + dense.T) / 2)).max(initial=0.0))
    left = LinearOperator((n, n), matvec=lambda x: beside(L @ beside(x)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    return float(abs(eigsh(left, k=1, v0=start, return_eigenvectors=False)[0]))


@torch.no_grad()
def deep_ranks(
    components: int, nodes: int, degree: float, width: int, layers: int, seed: int = 0
) -> list[int]:
    """Theorem 1: ranks of a deep GCN with ReLU on a graph of several components.

    Each component is a G(n, p) of that mean degree with a triangle and a path through all of its
    nodes: connected, and not bipartite.
    """
    rng = np.random.default_rng([seed, components])
    L = from_adjacency(_components(components, nodes // components, degree, rng))
    x = torch.from_numpy(rng.standard_normal((L.n, width)))
    network = Network(ARCHITECTURES["gcn"], "relu", [x])
    weights = (torch.from_numpy(rng.standard_normal((width, width))) for _ in range(layers))
    return [numerical_rank(network.forward(L, weight)) for weight in weights]


def _components(count: int, size: int, degree: float, rng: np.random.Generator) -> sp.csr_array:
    if size < 3:
        raise UsageError(f"A component with a triangle has 3 nodes or more; it would have {size}.")
    blocks = []
    for _ in range(count):
        upper = np.triu(rng.random((size, size)) < degree / size, 1)
        upper[np.arange(size - 1), np.arange(1, size)] = True
        upper[0, 2] = True
        blocks.append(sp.csr_array((upper | upper.T).astype(np.float64)))
    return sp.csr_array(sp.block_diag(blocks))


@dataclass(frozen=True)
class Fate:
    """Theorem 2: how often f lowers, keeps or raises the rank of two random columns."""

    function: str
    columns: str
    rows: int
    lowered: float
    kept: float
    raised: float


FUNCTIONS: dict[str, Callable[[FloatValues], FloatValues]] = {
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
}


def fates(rows: Sequence[int] = (2, 3, 5, 10), draws: int = 2000, seed: int = 0) -> list[Fate]:
    """Draw x and y from N(0, 1), independent or y = c x, and compare ranks before and after f."""
    found = []
    for n in rows:
        rng = np.random.default_rng([seed, n])
        x, y = rng.standard_normal((2, draws, n))
        multiple = rng.standard_normal((draws, 1)) * x
        for columns, other in (("independent", y), ("dependent", multiple)):
            before = np.linalg.matrix_rank(np.stack([x, other], axis=2))
            for name, f in FUNCTIONS.items():
                after = np.linalg.matrix_rank(np.stack([f(x), f(other)], axis=2))
                shares = [float(share.mean()) for share in _compared(after, before)]
                found.append(Fate(name, columns, n, *shares))
    return found


def _compared(after: FloatValues, before: FloatValues) -> list[npt.NDArray[np.bool_]]:
    return [after < before, after == before, after > before]


def snowball_residual(L: Operator, x: FloatValues, layers: int, width: int, seed: int = 0) -> float:
    """Section 5.3: ‖[H_1 … H_n] − K_{n+1}(L, X) V‖ / ‖[H_1 … H_n]‖ of a linear Snowball.

    V is made of the weights alone: H_{l+1} = L Σ_j H_j W_l^j has the coefficients of Σ_j H_j W_l^j,
    one block further down.
    """
    rng = np.random.default_rng(seed)
    features = x.shape[1]
    hidden: list[FloatValues] = [x]
    first = np.zeros(((layers + 1) * features, features))
    first[:features] = np.eye(features)
    coefficients: list[FloatValues] = [first]
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


ORDERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of blocks m that are trained with."""


@dataclass(frozen=True)
class Span:
    """Dimensions of the span of K_1, K_2, …; and whether it has stopped growing."""

    nodes: int
    features: int
    dimensions: tuple[int, ...]
    grade: int | None
    """Where it stopped, if it did within the blocks that were asked for."""
    tolerance: float


def span(
    graph: Graph, blocks: int, progress: Callable[[int], None] = lambda dimension: None
) -> Span:
    """How the span of K_m(L, X) grows, up to so many blocks, by block Lanczos with deflation."""
    from kryograph.krylov.bases import rank_tolerance
    from kryograph.krylov.inner_products import CLASSICAL, as_inner_product
    from kryograph.krylov.inputs import Pair
    from kryograph.krylov.process import Growth

    features = graph.features
    dense = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
    pair = Pair.of(operator(graph, "sym"), dense.astype(np.float64))
    tolerance = rank_tolerance(pair, None)
    growth = Growth(pair, as_inner_product(CLASSICAL), tolerance, symmetric=True)
    while growth.end is None and len(growth.ranks) <= blocks:
        progress(sum(growth.ranks))
        growth.step()
    dimensions = np.cumsum(growth.ranks[:blocks])
    return Span(
        nodes=graph.n,
        features=graph.features.shape[1],
        dimensions=tuple(int(d) for d in dimensions),
        grade=None if growth.end is None else growth.steps,
        tolerance=tolerance,
    )
