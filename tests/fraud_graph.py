"""A synthetic fraud graph: two classes, 95 to 5, that features and edges hint at."""

from __future__ import annotations

import numpy as np

from kryograph.graph import UNKNOWN, Graph, Indices

FRAUD_CLASSES = ("no", "yes")


def draw_fraud_graph(
    n: int = 1500,
    *,
    share: float = 0.05,
    labelled: float = 0.3,
    signal: float = 1.0,
    seed: int = 0,
) -> tuple[Graph, Indices, Indices]:
    """Draw the graph, the true classes and the labels that are known.

    Args:
        n: Number of nodes.
        share: Share of the nodes of class 1.
        labelled: Share of the nodes with a known label; they are drawn at random.
        signal: Distance of the class means in each of three features, in standard deviations.
        seed: Determines everything.
    """
    rng = np.random.default_rng(seed)
    truth = (rng.permutation(n) < round(share * n)).astype(np.int64)
    features = rng.normal(size=(n, 6))
    features[:, :3] += signal * truth[:, None]
    source, target = rng.integers(0, n, (2, 3 * n))
    # Half of the edges of a fraudulent account lead to another one.
    frauds = np.flatnonzero(truth)
    own = (truth[source] == 1) & (rng.random(source.size) < 0.5)
    target[own] = rng.choice(frauds, int(own.sum()))
    apart = source != target
    edges = np.stack([source[apart], target[apart]])
    known = np.where(rng.random(n) < labelled, truth, UNKNOWN)
    return Graph.from_edges(edges, n, features=features), truth, known
