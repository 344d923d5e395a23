"""How many Krylov blocks are enough, which the paper leaves open.

Two answers. The span of K_m(L, X) grows with m until it is invariant, at m = m(L, X), the grade;
from there on more blocks add nothing that a layer could use. And accuracy, which stops growing much
sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kryograph.graph import Graph
from kryograph.operators import operator

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
    from kryograph.krylov.growth import Growth
    from kryograph.krylov.inputs import Pair
    from kryograph.krylov.products import CLASSICAL, as_product

    features = graph.features
    dense = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
    pair = Pair.of(operator(graph, "sym"), dense.astype(np.float64))
    tolerance = rank_tolerance(pair, None)
    growth = Growth(pair, as_product(CLASSICAL), tolerance, symmetric=True)
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
