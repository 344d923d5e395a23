"""Map: a place in the plane for every node, near to nodes that look alike to the model.

The features of the last hidden layer are reduced to thirty by principal components and placed by
t-SNE. Of many nodes a random part is placed so; each of the others goes to the mean of the places
of the five that are most like it, the nearer the heavier.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from kryograph.labelling.label import FitProgress, ignore_progress

LAYOUT_SAMPLE_NODES = 5000
"""Up to this many nodes are placed by t-SNE."""

COMPONENTS = 30
NEIGHBOURS = 5
PERPLEXITY = 30.0
TSNE_ITERATIONS = 500
STAGE = "drawing the map"

Places = npt.NDArray[np.float64]


def positions(
    embedding: npt.NDArray[np.floating],
    seed: int = 0,
    progress: FitProgress = ignore_progress,
) -> Places:
    """N × 2 places; the same seed gives the same ones.

    Args:
        embedding: N × d, what the nodes look like to the model.
        seed: Fixes which nodes are placed first, and t-SNE.
        progress: Told before and after.
    """
    seen = np.asarray(embedding, dtype=np.float64)
    n = len(seen)
    progress(STAGE, 0, 1)
    if n < 4 or np.ptp(seen, axis=0).max(initial=0.0) == 0:
        found = _spiral(n)
    else:
        size = min(COMPONENTS, *seen.shape)
        main = PCA(size, random_state=seed).fit_transform(seen)
        rng = np.random.default_rng(seed)
        first = np.sort(rng.permutation(n)[:LAYOUT_SAMPLE_NODES])
        found = np.empty((n, 2))
        found[first] = _tsne(main[first], seed)
        rest = np.setdiff1d(np.arange(n), first)
        if rest.size:
            found[rest] = _between(main[rest], main[first], found[first])
    progress(STAGE, 1, 1)
    return found


def _spiral(n: int) -> Places:
    """Nodes of which nothing can be told, side by side like the seeds of a sunflower."""
    k = np.arange(n)
    angle, radius = k * math.pi * (3 - math.sqrt(5)), np.sqrt(k)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _tsne(main: Places, seed: int) -> Places:
    # The start is the first two components at the scale that t-SNE wants. The noise is there for
    # nodes that are exactly alike, or all on a line: without it they could never part.
    rng = np.random.default_rng(seed)
    start = np.zeros((len(main), 2))
    start[:, : min(2, main.shape[1])] = main[:, :2]
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-12)
    start += rng.normal(scale=1e-6, size=start.shape)
    tsne = TSNE(
        perplexity=min(PERPLEXITY, (len(main) - 1) / 3),
        init=start.astype(np.float32),
        max_iter=TSNE_ITERATIONS,
        random_state=seed,
    )
    found: Places = tsne.fit_transform(main.astype(np.float32)).astype(np.float64)
    return found


def _between(asked: Places, known: Places, places: Places) -> Places:
    """For each row asked, the mean of the places of the nearest known rows."""
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(known))).fit(known)
    distance, at = near.kneighbors(asked)
    weight = 1 / (distance + 1e-9 * (1 + distance.max(initial=0.0)))
    weight /= weight.sum(axis=1, keepdims=True)
    found: Places = (weight[:, :, None] * places[at]).sum(axis=1)
    return found
