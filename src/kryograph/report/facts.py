"""Facts: the numbers that a page about a labelled graph says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.label import LabelledGraph


@dataclass(frozen=True)
class ClassScore:
    """How well one class is told, by held-out labels; None where nothing was asked or said.

    Args:
        name: Of the class.
        given: How many labels were given.
        precision: Of the answers that name the class, the share that is right.
        recall: Of the labels of the class, the share that was found.
        f1: The harmonic mean of both.
        predicted: How many nodes without a label are predicted to be of it.
    """

    name: str
    given: int
    precision: float | None
    recall: float | None
    f1: float | None
    predicted: int


def degrees(graph: Graph) -> Indices:
    """How many neighbours each node has."""
    found: Indices = np.diff(graph.adjacency.indptr).astype(np.int64)
    return found


def components(graph: Graph) -> int:
    """How many parts the graph falls into; an isolated node is one."""
    return int(connected_components(graph.adjacency, directed=False)[0])


def homophily(graph: Graph, given: Indices) -> tuple[float | None, int]:
    """The share of edges between labelled nodes that join equal labels, and how many these are."""
    both = graph.adjacency.tocoo()
    known = (both.row < both.col) & (given[both.row] != UNKNOWN) & (given[both.col] != UNKNOWN)
    equal = given[both.row[known]] == given[both.col[known]]
    return (float(equal.mean()) if equal.size else None), int(equal.size)


def degree_bins(degree: Indices) -> list[tuple[str, int]]:
    """Counts of nodes by degree, in bins that double: 0, 1, 2, 3–4, 5–8, and so on.

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
    """C × C counts of held-out labels: given in the row, predicted in the column."""
    counts = np.zeros((len(labelled.classes),) * 2, dtype=np.int64)
    held = labelled.held_out
    np.add.at(counts, (labelled.given[held.nodes], held.probabilities.argmax(axis=1)), 1)
    return counts


def class_scores(labelled: LabelledGraph) -> list[ClassScore]:
    """Precision, recall and F1 of each class."""
    counts = confusion(labelled)
    free = labelled.given == UNKNOWN
    size = len(labelled.classes)
    given = np.bincount(labelled.given[~free], minlength=size)
    predicted = np.bincount(labelled.raw[free].argmax(axis=1), minlength=size)
    scores = []
    for c, name in enumerate(labelled.classes):
        right, asked, said = int(counts[c, c]), int(counts[c].sum()), int(counts[:, c].sum())
        scores.append(
            ClassScore(
                name,
                int(given[c]),
                right / said if said else None,
                right / asked if asked else None,
                2 * right / (asked + said) if asked and said else None,
                int(predicted[c]),
            )
        )
    return scores


def set_sizes(labelled: LabelledGraph) -> Indices:
    """How many nodes without a label have a prediction set of 1, 2, … C classes."""
    free = labelled.given == UNKNOWN
    sizes = labelled.sets[free].sum(axis=1)
    return np.bincount(sizes, minlength=len(labelled.classes) + 1)[1:].astype(np.int64)


def most_frequent(counts: Indices, limit: int) -> Indices:
    """The numbers of at most so many classes, those with the highest counts, in their order."""
    return np.sort(np.argsort(-counts, kind="stable")[:limit])
