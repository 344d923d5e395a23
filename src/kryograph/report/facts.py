"""Statistics of a labelled graph for its page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.labelled_graph import LabelledGraph


def degrees(graph: Graph) -> Indices:
    """Number of neighbours of every node."""
    counts: Indices = np.diff(graph.adjacency.indptr).astype(np.int64)
    return counts


def components(graph: Graph) -> int:
    """Number of connected components; an isolated node is one."""
    return int(connected_components(graph.adjacency, directed=False)[0])


def homophily(graph: Graph, labels: Indices) -> tuple[float | None, int]:
    """Share of equal labels among the edges between labelled nodes, and the number of these edges.

    The share is None if there is no such edge.
    """
    edges = graph.adjacency.tocoo()
    known = (
        (edges.row < edges.col) & (labels[edges.row] != UNKNOWN) & (labels[edges.col] != UNKNOWN)
    )
    equal = labels[edges.row[known]] == labels[edges.col[known]]
    return (float(equal.mean()) if equal.size else None), int(equal.size)


def degree_bins(degree: Indices) -> list[tuple[str, int]]:
    """Numbers of nodes by degree, in bins of doubling width: 0, 1, 2, 3–4, 5–8, and so on.

    >>> degree_bins(np.array([0, 1, 1, 3, 4, 7]))
    [('0', 1), ('1', 2), ('2', 0), ('3–4', 2), ('5–8', 1)]
    """
    bins = [("0", int((degree == 0).sum()))]
    low, high = 1, 1
    while low <= degree.max(initial=0):
        inside = int(((degree >= low) & (degree <= high)).sum())
        bins.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", inside))
        low, high = high + 1, 2 * high
    return bins


def confusion(labelled: LabelledGraph) -> npt.NDArray[np.int64]:
    """C × C counts of held-out labels: given class by row, predicted class by column."""
    counts = np.zeros((len(labelled.classes),) * 2, dtype=np.int64)
    held = labelled.held_out
    np.add.at(counts, (labelled.given_labels[held.nodes], held.probabilities.argmax(axis=1)), 1)
    return counts


def set_sizes(labelled: LabelledGraph) -> Indices:
    """Numbers of unlabelled nodes whose prediction set has 1, 2, … C classes."""
    free = labelled.given_labels == UNKNOWN
    sizes = labelled.sets[free].sum(axis=1)
    return np.bincount(sizes, minlength=len(labelled.classes) + 1)[1:].astype(np.int64)


def most_frequent(counts: Indices, limit: int) -> Indices:
    """Indices of the `limit` highest counts, in ascending order."""
    return np.sort(np.argsort(-counts, kind="stable")[:limit])
