"""Folds: parts of the given labels that take turns at being held out.

Choice: which system, for how many epochs, by what it says of labels that are held out.

A system is trained on each fold for the same number of epochs and scored on the held nodes after
each. The mean of these curves, smoothed, says for how long to train, and how good that is. Held-out
predictions are made afterwards, each with the number of epochs that folds chose which do not hold
out the same labels: no label has a say in how long its own prediction is trained for. (It has one,
among all others, in which system is chosen.) A system that tells of no epochs has none to choose,
and is not asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import NO_NODES, UNKNOWN, Graph, Indices, Split, Task
from kryograph.systems import System
from kryograph.systems.base import Probabilities
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import exactly

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
class LabelledNodes:
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
        split = Split("a fold", fold.train, fold.held, NO_NODES)
        return Task(self.graph, split, visible, self.classes)

    def whole(self) -> Task:
        """The task of all labels."""
        return Task.labelled(self.graph, self.labels, self.classes)


FOLD_EPOCHS = 200
"""How long a network trains on a fold."""

SMOOTHING = 15
"""Over how many epochs a curve is averaged: a few held-out nodes make it jump."""

OnFit: TypeAlias = Callable[[], None]
"""Called when another fit is done."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A system, and how it did on the folds.

    Args:
        system: With its settings.
        curves: Accuracy on the held nodes, folds × epochs; one column if it has no epochs.
        sizes: How many nodes each fold holds out.
        said: What it said of the held nodes of each fold, if it has no epochs.
    """

    system: System
    curves: npt.NDArray[np.float64]
    sizes: Indices
    said: tuple[Probabilities, ...] = ()

    def epochs(self, without: Sequence[int] = ()) -> int:
        """For how many epochs to train, by all folds but some; no curve, no choice.

        All of them, unless fewer are better by a standard error: the peak of a curve made by a few
        labels is mostly chance.
        """
        if self.curves.shape[1] == 1:
            return FOLD_EPOCHS
        kept = ~np.isin(np.arange(len(self.curves)), list(without))
        if not kept.any():
            return FOLD_EPOCHS
        curve = smoothed(np.average(self.curves[kept], axis=0, weights=self.sizes[kept]))
        error = math.sqrt(curve[-1] * (1 - curve[-1]) / self.sizes[kept].sum())
        if curve.max() <= curve[-1] + error:
            return len(curve)
        return len(curve) - int(curve[::-1].argmax())

    @property
    def accuracy(self) -> float:
        """That of held-out nodes, after this number of epochs."""
        curve = smoothed(np.average(self.curves, axis=0, weights=self.sizes))
        return float(curve[min(self.epochs(), len(curve)) - 1])


def smoothed(curve: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean over neighbouring epochs, fewer at both ends.

    >>> smoothed(np.array([0.0, 1.0]))
    array([0.5, 0.5])
    """
    half = SMOOTHING // 2
    return np.array([curve[max(t - half, 0) : t + half + 1].mean() for t in range(len(curve))])


def cross_validate(system: System, given: LabelledNodes, step: OnFit = lambda: None) -> Candidate:
    """Train the system on every fold and score it as it goes."""
    curves, said = [], []
    for fold in given.folds:
        scores: dict[int, float] = {}

        def note(epoch: Epoch, scores: dict[int, float] = scores) -> None:
            # A system that fits several times counts its epochs anew: the last fit remains.
            scores[epoch.number] = epoch.validation_accuracy or 0.0

        task, conditions = given.task(fold, seen=True), Conditions(exactly(FOLD_EPOCHS))
        found = system.fit(task, seed=given.seed, conditions=conditions, on_epoch=note)
        curves.append([scores[t] for t in sorted(scores)] or [found.validation_accuracy or 0.0])
        if not scores:
            said.append(found.predict_proba()[fold.held])
        step()
    sizes = np.array([fold.held.size for fold in given.folds])
    return Candidate(system, np.array(curves, dtype=np.float64), sizes, tuple(said))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for labelled nodes by fits that had not seen their labels.

    Args:
        nodes: The labelled nodes that were held out.
        labels: Their classes.
        probabilities: Theirs.
    """

    nodes: Indices
    labels: Indices
    probabilities: Probabilities

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whose most probable class is the true one."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.labels)


def held_out(candidate: Candidate, given: LabelledNodes, step: OnFit = lambda: None) -> HeldOut:
    """What the system says of each labelled node when its label is hidden, once."""
    found = np.zeros((given.graph.n, len(given.classes)))
    for k, fold in enumerate(given.first_draw):
        found[fold.held] = candidate.said[k] if candidate.said else _asked(candidate, given, fold)
        step()
    nodes = np.sort(np.concatenate([fold.held for fold in given.first_draw]))
    return HeldOut(nodes, given.labels[nodes], found[nodes])


def _asked(candidate: Candidate, given: LabelledNodes, fold: Fold) -> Probabilities:
    """What a system with epochs says of a fold's held nodes, whose labels have no say in them."""
    same = [k for k, each in enumerate(given.folds) if np.isin(each.held, fold.held).any()]
    conditions = Conditions(exactly(candidate.epochs(without=same)))
    task = given.task(fold, seen=False)
    fit = candidate.system.fit(task, seed=given.seed, conditions=conditions)
    return fit.predict_proba()[fold.held]
