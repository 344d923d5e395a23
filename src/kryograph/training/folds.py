"""Folds: labelled nodes are divided into nodes to learn from and nodes to be held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices

NONE_HELD_OUT = (
    "No class has two labelled nodes, so none can be held out: give at least two labels to one "
    "class."
)


@dataclass(frozen=True, eq=False)
class Fold:
    """Labelled nodes that are trained on, and labelled nodes that are held out."""

    train: Indices
    held_out: Indices
    draw: int = 0
    """Number of the draw; the folds of one draw hold out every label at most once."""


def draw_folds(labels: Indices, seed: int, count: int, draws: int = 1) -> list[Fold]:
    """Draw stratified folds of the nodes whose label is known.

    The nodes of a class are dealt to the folds in turn, so that each fold has its share of every
    class. A class with a single label is never held out.

    Args:
        labels: N class numbers, `UNKNOWN` for nodes without label.
        seed: Determines the folds.
        count: Number of folds of a draw; not more than the largest class has labels.
        draws: Number of draws.

    >>> folds = draw_folds(np.array([0, 0, 1, 1, 2, -1]), seed=0, count=2)
    >>> [fold.held_out.tolist() for fold in folds]
    [[0, 2], [1, 3]]
    """
    known = np.flatnonzero(labels != UNKNOWN)
    sizes = np.bincount(labels[known])
    if sizes.max(initial=0) < 2:
        raise UsageError(NONE_HELD_OUT)
    count = int(min(count, sizes.max()))
    folds = []
    rng = np.random.default_rng(seed)
    for draw in range(draws):
        fold_of = np.full(labels.size, -1)
        next_fold = 0
        for c in np.flatnonzero(sizes > 1):
            nodes = rng.permutation(known[labels[known] == c])
            fold_of[nodes] = (next_fold + np.arange(nodes.size)) % count
            next_fold += nodes.size
        for k in range(count):
            held_out = np.flatnonzero(fold_of == k)
            folds.append(Fold(np.setdiff1d(known, held_out), held_out, draw))
    return folds
