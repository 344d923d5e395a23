"""Folds: parts of the given labels that take turns at being held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices, Split, Task

FEW = 60
"""Up to this many labels the folds are drawn several times: one draw says little."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Labelled nodes that train, and labelled nodes that are asked about."""

    train: Indices
    held: Indices


def folds(labels: Indices, seed: int, count: int = 5) -> list[Fold]:
    """Stratified folds of the nodes whose label is known, drawn three times if these are few.

    A class's nodes are dealt to the folds in turn, so that each fold has its share of every class.
    A class with a single label always trains.

    >>> [fold.held.tolist() for fold in folds(np.array([0, 0, 1, 1, 2, -1]), seed=0, count=2)][:2]
    [[0, 2], [1, 3]]
    """
    known = np.flatnonzero(labels != UNKNOWN)
    sizes = np.bincount(labels[known])
    if sizes.max(initial=0) < 2:
        raise UsageError(
            "No class has two labelled nodes, so none can be held out: give at least two labels "
            "to one class."
        )
    count = int(min(count, sizes.max()))
    drawn = []
    rng = np.random.default_rng(seed)
    for _ in range(3 if known.size <= FEW else 1):
        fold_of = np.full(labels.size, -1)
        turn = 0
        for c in np.flatnonzero(sizes > 1):
            nodes = rng.permutation(known[labels[known] == c])
            fold_of[nodes] = (turn + np.arange(nodes.size)) % count
            turn += nodes.size  # the next class goes on where this one ended
        for k in range(count):
            held = np.flatnonzero(fold_of == k)
            drawn.append(Fold(np.setdiff1d(known, held), held))
    return drawn


@dataclass(frozen=True, eq=False)
class Given:
    """What a person gave, and how it is divided.

    Args:
        graph: The whole graph.
        labels: N class numbers, `UNKNOWN` for the nodes to be labelled.
        classes: Their names.
        folds: Of the nodes whose label is known.
        seed: Fixes weights and dropout.
    """

    graph: Graph
    labels: Indices
    classes: tuple[str, ...]
    folds: list[Fold]
    seed: int

    @property
    def first_draw(self) -> list[Fold]:
        """The folds in which every label is held out once."""
        count = next(
            (
                k
                for k, fold in enumerate(self.folds)
                if k and np.isin(fold.held, np.concatenate([f.held for f in self.folds[:k]])).any()
            ),
            len(self.folds),
        )
        return self.folds[:count]

    def task(self, fold: Fold, *, seen: bool) -> Task:
        """The task of a fold; the labels of the held nodes are `seen`, to score by, or not."""
        visible = np.full(self.graph.n, UNKNOWN)
        known = np.union1d(fold.train, fold.held) if seen else fold.train
        visible[known] = self.labels[known]
        nobody = np.empty(0, dtype=np.int64)
        split = Split("a fold", fold.train, fold.held, nobody)
        return Task(self.graph, split, visible, self.classes)

    def whole(self) -> Task:
        """The task of all labels."""
        nobody = np.empty(0, dtype=np.int64)
        known = np.flatnonzero(self.labels != UNKNOWN)
        split = Split("all labels", known, nobody, nobody)
        return Task(self.graph, split, self.labels, self.classes)
