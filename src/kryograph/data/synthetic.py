"""A synthetic citation graph: planted classes, edges mostly inside them, words that hint at them.

Each node has a class. A share `homophily` of the edges joins nodes of one class, the others nodes
of two; the citing node is drawn evenly and the cited one by weights with a heavy tail, so that a
few papers are cited a lot.

A node's words are drawn from one distribution per class: a common one, in which the r-th word has
weight 1 / (r + 10), mixed with the share `signal` of the class's own, which has the same weights
multiplied by random ones.

The defaults give a graph of Cora's size that is about as hard. Cora's homophily is higher, 0.81; at
that value this graph would be easier than Cora.

Everything is drawn in whole arrays: a million nodes take seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.data.dataset import Dataset
from kryograph.data.splits import PUBLIC, TEST, VALIDATION, per_class_split
from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, Graph, Indices
from kryograph.sparse import row_normalise

ROUNDS = 100
SYNTHETIC_TRAIN_PER_CLASS = 20


def synthetic_citations(
    n: int = 2708,
    classes: int = 7,
    words: int = 1433,
    words_per_node: int = 18,
    mean_degree: float = 4.0,
    homophily: float = 0.7,
    signal: float = 0.27,
    seed: int = 0,
    *,
    normalise: bool = True,
) -> Dataset:
    """Draw a data set; it depends on the arguments and on nothing else.

    Args:
        n: Number of nodes, spread evenly over the classes.
        classes: Number of classes.
        words: Number of features.
        words_per_node: Words drawn for each node; one that is drawn twice counts once.
        mean_degree: Twice the number of edges, divided by n.
        homophily: Share of the edges that stay within a class.
        signal: Share of the words that are drawn from the class's own distribution.
        seed: Seed of the random numbers.
        normalise: Divide each node's features by their sum.

    >>> data = synthetic_citations(seed=1)
    >>> data, data.public
    (Dataset('synthetic', Graph(2,708 nodes, 5,416 edges, 1,433 sparse features), 7 classes), \
Split('public', 140 / 500 / 1,000))
    """
    counts = {"classes": classes, "words": words, "words_per_node": words_per_node}
    for name, count in counts.items():
        if count < 1:
            raise UsageError(f"{name} must be 1 or more; got {count}.")
    if n < classes:
        raise UsageError(
            f"{n:,} nodes cannot have {classes:,} classes; make n {classes:,} or more."
        )
    for name, share in {"homophily": homophily, "signal": signal}.items():
        if not 0 <= share <= 1:
            raise UsageError(f"{name} must lie between 0 and 1; got {share}.")
    if not 0 <= mean_degree < n:
        raise UsageError(f"mean_degree must be 0 or more and below n = {n:,}; got {mean_degree}.")
    if seed < 0:
        raise UsageError(f"A seed must be 0 or more; got {seed}.")
    rng = np.random.default_rng([seed])
    labels = rng.permutation(np.arange(n) % classes)
    edges = _draw_edges(labels, round(n * mean_degree / 2), homophily, rng)
    features = _draw_words(labels, words, words_per_node, signal, rng)
    if normalise:
        features = row_normalise(features)
    public = None
    if n >= SYNTHETIC_TRAIN_PER_CLASS * classes + VALIDATION + TEST:
        split = per_class_split(labels, SYNTHETIC_TRAIN_PER_CLASS, seed=seed)
        public = replace(split, name=PUBLIC)
    return Dataset(
        name="synthetic",
        graph=Graph.from_edges(edges, n, features=features),
        labels=labels,
        classes=tuple(f"class {label}" for label in range(classes)),
        origin=f"drawn with seed {seed}",
        public=public,
    )


def _draw_edges(
    labels: Indices, count: int, homophily: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw `count` different pairs of nodes, the share `homophily` of them within classes."""
    # With the nodes sorted by class, each class is one stretch of the cumulated weights, and a
    # number drawn from a stretch is a node of that class.
    n = labels.size
    order = np.argsort(labels, kind="stable")
    weights = np.minimum(1 + rng.pareto(1.2, n), np.sqrt(n))
    upto = np.concatenate([[0.0], np.cumsum(weights)])
    sizes = np.bincount(labels)
    last = np.cumsum(sizes)
    begin, end = upto[last - sizes], upto[last]
    total = upto[-1]

    def node_at(points: npt.NDArray[np.float64]) -> Indices:
        return np.minimum(np.searchsorted(upto, points, side="right") - 1, n - 1)

    def within(source: Indices) -> Indices:
        c = labels[order[source]]
        return node_at(begin[c] + rng.random(c.size) * (end[c] - begin[c]))

    def across(source: Indices) -> Indices:
        c = labels[order[source]]
        beyond = end[c] + rng.random(c.size) * (total - (end[c] - begin[c]))
        return node_at(np.where(beyond < total, beyond, beyond - total))

    def pairs(count: int, possible: int, partner: Callable[[Indices], Indices]) -> Indices:
        keys, rounds = NO_NODES, 0
        while keys.size < count:
            if count > possible or rounds == ROUNDS:
                raise UsageError(
                    f"{n:,} nodes have no room for {count:,} such edges; lower mean_degree, or "
                    "move homophily towards the middle."
                )
            rounds += 1
            source = rng.integers(0, n, count - keys.size)
            target = partner(source)
            key = np.minimum(source, target) * n + np.maximum(source, target)
            keys = np.union1d(keys, key[source != target])
        return keys

    same = round(homophily * count)
    same_pairs = int((sizes * (sizes - 1) // 2).sum())
    inside = pairs(same, same_pairs, within)
    keys = np.append(inside, pairs(count - same, n * (n - 1) // 2 - same_pairs, across))
    return np.stack([order[keys // n], order[keys % n]])


def _draw_words(
    labels: Indices, words: int, per_node: int, signal: float, rng: np.random.Generator
) -> sp.csr_array:
    """Draw the words of each node: N × `words`, sparse, of ones."""
    classes = int(labels.max()) + 1
    common = 1 / (np.arange(words) + 10.0)
    common /= common.sum()
    own = common * rng.lognormal(0.0, 2.0, (classes, words))
    own /= own.sum(axis=1, keepdims=True)
    upto = np.cumsum((1 - signal) * common + signal * own, axis=1)
    upto /= upto[:, -1:]
    # Class c is the stretch from c to c + 1, so one search serves all classes.
    stretches = (upto + np.arange(classes)[:, None]).ravel()
    drawn = np.searchsorted(stretches, labels[:, None] + rng.random((labels.size, per_node)))
    column = np.clip(drawn - labels[:, None] * words, 0, words - 1)
    indptr = np.arange(labels.size + 1) * per_node
    features = sp.csr_array(
        (np.ones(column.size), column.ravel(), indptr), shape=(labels.size, words)
    )
    features.sum_duplicates()
    features.data[:] = 1
    return features
