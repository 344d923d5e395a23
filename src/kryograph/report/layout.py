"""Positions of nodes in the plane, by t-SNE of their embedding.

The embedding is reduced to thirty principal components. Of many nodes t-SNE places a random
sample; every other node goes to the weighted mean of the positions of the five sampled nodes that
are most similar to it, weighted by the inverse of their distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsRegressor

from kryograph.threads import on_free_cores

COMPONENTS = 30
NEIGHBOURS = 5


@dataclass(frozen=True)
class Detail:
    """Settings of t-SNE, which weigh time against detail.

    Args:
        nodes: Largest number of nodes that t-SNE places.
        perplexity: Number of neighbours that a node is kept near to.
        iterations: Number of steps, of which the first 250 exaggerate.
        exaggeration: Factor of the attraction in these steps.
        angle: Inaccuracy of the repulsion, between 0 and 1.
    """

    nodes: int
    perplexity: float
    iterations: int
    exaggeration: float
    angle: float


COARSE = Detail(nodes=600, perplexity=20.0, iterations=350, exaggeration=6.0, angle=0.8)
"""For reports: a third of a second, where `FINE` takes longer than all of the fit. The groups are
the same, and what lies between them."""

FINE = Detail(nodes=5000, perplexity=30.0, iterations=500, exaggeration=12.0, angle=0.5)
"""For figures: every node of the usual data sets is placed by itself."""

Positions = npt.NDArray[np.float64]


@on_free_cores()
def positions(
    embedding: npt.NDArray[np.floating], seed: int = 0, detail: Detail = COARSE
) -> Positions:
    """N × 2 positions of nodes with an N × d embedding, in which similar nodes have similar rows.

    The seed fixes the sample of nodes and the start of t-SNE, and so the positions.
    """
    rows = np.asarray(embedding, dtype=np.float64)
    n = len(rows)
    if n < 4 or np.ptp(rows, axis=0).max(initial=0.0) == 0:
        return _spiral(n)
    components = PCA(min(COMPONENTS, *rows.shape), random_state=seed).fit_transform(rows)
    sample = np.sort(np.random.default_rng(seed).permutation(n)[: detail.nodes])
    placed = np.empty((n, 2))
    placed[sample] = _tsne(components[sample], seed, detail)
    rest = np.setdiff1d(np.arange(n), sample)
    if rest.size:
        mean = KNeighborsRegressor(min(NEIGHBOURS, len(sample)), weights="distance")
        placed[rest] = mean.fit(components[sample], placed[sample]).predict(components[rest])
    return placed


def _spiral(n: int) -> Positions:
    """Positions on a spiral, for nodes whose embeddings do not differ."""
    k = np.arange(n)
    angle, radius = k * math.pi * (3 - math.sqrt(5)), np.sqrt(k)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _tsne(components: Positions, seed: int, detail: Detail) -> Positions:
    # The start is the first two components at the scale that t-SNE recommends. The noise separates
    # nodes that are equal or lie on a line; without it they would stay there.
    rng = np.random.default_rng(seed)
    start = np.zeros((len(components), 2))
    start[:, : min(2, components.shape[1])] = components[:, :2]
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
    start += rng.normal(scale=1e-6, size=start.shape)
    tsne = TSNE(
        perplexity=min(detail.perplexity, (len(components) - 1) / 3),
        init=start.astype(np.float32),
        max_iter=detail.iterations,
        early_exaggeration=detail.exaggeration,
        angle=detail.angle,
        random_state=seed,
    )
    placed: Positions = tsne.fit_transform(components.astype(np.float32)).astype(np.float64)
    return placed
