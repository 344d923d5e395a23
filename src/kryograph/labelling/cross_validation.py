"""Cross-validation on the given labels: accuracy, number of epochs and held-out predictions.

A system is trained on each fold for the same number of epochs and scored on the held-out nodes
after each epoch. The smoothed mean of these curves gives the number of epochs to train and the
accuracy to expect.

Held-out predictions are made afterwards. The number of epochs of a prediction is chosen without the
folds that hold out the same labels, so a label has no influence on how long its own prediction is
trained. (It has one, among all others, on which system is chosen.) A system without epochs has
nothing to choose, so its predictions are those of the first pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kryograph.errors import KryographError
from kryograph.graph import NO_NODES, UNKNOWN, Graph, Indices, Split, Task
from kryograph.stats import Metric
from kryograph.systems import Fit, System
from kryograph.systems.base import Probabilities
from kryograph.training.folds import Fold
from kryograph.training.loop import Conditions, Epoch, OnEpoch, ignore_epoch
from kryograph.training.stopping import exactly

FOLD_EPOCHS = 200
"""Number of epochs for which a network is trained on a fold."""

SMOOTHING_EPOCHS = 15
"""Number of epochs over which a curve is averaged; with few held-out nodes it jumps."""

OnFit: TypeAlias = Callable[[], None]
"""Callback that is called after each fit."""


@dataclass(frozen=True, eq=False)
class LabelledNodes:
    """A graph with the given labels, and their folds.

    Args:
        graph: The whole graph.
        labels: N class numbers, `UNKNOWN` for the nodes to be labelled.
        classes: Names of the classes.
        folds: Folds of the nodes whose label is known.
        seed: Determines weights and dropout of every fit.
        metric: Function of held-out probabilities and their classes by which candidates are chosen;
            None for their accuracy.
    """

    graph: Graph
    labels: Indices
    classes: tuple[str, ...]
    folds: Sequence[Fold]
    seed: int
    metric: Metric | None = None

    @property
    def first_draw(self) -> list[Fold]:
        """The folds that together hold out every label at most once."""
        return [fold for fold in self.folds if fold.draw == 0]

    def task(self, fold: Fold, *, validate: bool) -> Task:
        """Build the task that trains on `fold.train`.

        With `validate`, the held-out nodes are its validation nodes; otherwise their labels are
        hidden.
        """
        visible = np.full(self.graph.n, UNKNOWN)
        known = np.union1d(fold.train, fold.held_out) if validate else fold.train
        visible[known] = self.labels[known]
        split = Split("fold", fold.train, fold.held_out, NO_NODES)
        return Task(self.graph, split, visible, self.classes)

    def fit(self, system: System, task: Task, epochs: int, on_epoch: OnEpoch = ignore_epoch) -> Fit:
        """Fit a system for a number of epochs; any error of it becomes `CandidateFailed`."""
        conditions = Conditions(exactly(epochs))
        try:
            return system.fit(task, seed=self.seed, conditions=conditions, on_epoch=on_epoch)
        except Exception as error:
            raise CandidateFailed(system, error) from error


class CandidateFailed(KryographError):
    """A system could not be fitted, for example because its training diverged."""

    def __init__(self, system: System, error: Exception) -> None:
        reason = " ".join(str(error).split())
        kind = "" if isinstance(error, KryographError) else f"{type(error).__name__}: "
        super().__init__(f"{system.name} could not be trained ({kind}{reason.rstrip('.')}).")
        self.error = error


@dataclass(frozen=True, eq=False)
class Candidate:
    """A system with its scores on the folds.

    Args:
        system: The system, with its settings.
        curves: Accuracy on the held-out nodes, folds × epochs; one column without epochs.
        sizes: Number of nodes that each fold holds out.
        held_out_probabilities: Predictions for the held-out nodes of each fold. Empty for systems
            with epochs, which are fitted again with the chosen number of epochs.
        metric_score: Score by the metric that candidates are chosen by; None for their accuracy.
    """

    system: System
    curves: npt.NDArray[np.float64]
    sizes: Indices
    held_out_probabilities: tuple[Probabilities, ...] = ()
    metric_score: float | None = None

    @property
    def score(self) -> float:
        """Score by which the candidate is compared with others."""
        return self.accuracy if self.metric_score is None else self.metric_score

    def epochs(self, without: Sequence[int] | Indices = ()) -> int:
        """Choose the number of epochs by all folds except those with the numbers `without`.

        It is the length of the curves unless fewer epochs are better by a standard error, because
        the peak of a curve of a few labels is mostly chance.
        """
        kept = ~np.isin(np.arange(len(self.curves)), without)
        if self.curves.shape[1] == 1 or not kept.any():
            return FOLD_EPOCHS
        curve = smooth(np.average(self.curves[kept], axis=0, weights=self.sizes[kept]))
        error = math.sqrt(curve[-1] * (1 - curve[-1]) / self.sizes[kept].sum())
        if curve.max() <= curve[-1] + error:
            return len(curve)
        return len(curve) - int(curve[::-1].argmax())

    @cached_property
    def accuracy(self) -> float:
        """Accuracy on held-out nodes after the chosen number of epochs."""
        curve = smooth(np.average(self.curves, axis=0, weights=self.sizes))
        return float(curve[min(self.epochs(), len(curve)) - 1])


def smooth(curve: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Average a curve over neighbouring epochs, over fewer of them at both ends.

    >>> smooth(np.array([0.0, 1.0]))
    array([0.5, 0.5])
    """
    half = SMOOTHING_EPOCHS // 2
    return np.array([curve[max(t - half, 0) : t + half + 1].mean() for t in range(len(curve))])


def cross_validate(system: System, nodes: LabelledNodes, on_fit: OnFit = lambda: None) -> Candidate:
    """Train a system on every fold, and score it on the held-out nodes after each epoch.

    Raises:
        CandidateFailed: If one of the fits fails.
    """
    curves, held_out_probabilities, last = [], [], []
    for fold in nodes.folds:
        scores: dict[int, float] = {}

        def record(epoch: Epoch, scores: dict[int, float] = scores) -> None:
            # A system with several fits starts again at epoch 1: the scores of the last fit count.
            scores[epoch.number] = epoch.validation_accuracy or 0.0

        fit = nodes.fit(system, nodes.task(fold, validate=True), FOLD_EPOCHS, record)
        curves.append([scores[t] for t in sorted(scores)] or [fit.validation_accuracy or 0.0])
        if not scores or nodes.metric is not None:
            last.append(fit.predict_proba()[fold.held_out])
        if not scores:
            held_out_probabilities.append(last[-1])
        on_fit()
    sizes = np.array([fold.held_out.size for fold in nodes.folds])
    return Candidate(
        system,
        np.array(curves, dtype=np.float64),
        sizes,
        tuple(held_out_probabilities),
        _metric_score(nodes, last),
    )


def _metric_score(nodes: LabelledNodes, predictions: Sequence[Probabilities]) -> float | None:
    """Mean score over the draws; the folds of a draw are scored together.

    A fold alone may hold no label of a rare class.
    """
    if nodes.metric is None:
        return None
    scores = []
    for draw in sorted({fold.draw for fold in nodes.folds}):
        numbers = [k for k, fold in enumerate(nodes.folds) if fold.draw == draw]
        held = np.concatenate([nodes.folds[k].held_out for k in numbers])
        probabilities = np.concatenate([predictions[k] for k in numbers])
        scores.append(nodes.metric(probabilities, nodes.labels[held]))
    return float(np.mean(scores))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for labelled nodes by fits that did not see their labels.

    Args:
        nodes: Numbers of the nodes, ascending.
        labels: True classes of these nodes.
        probabilities: Class probabilities of these nodes, before calibration.
        importance: Weight of each node in a mean that stands for the whole graph; the mean of the
            weights is 1.
    """

    nodes: Indices
    labels: Indices
    probabilities: Probabilities
    importance: npt.NDArray[np.float64]
    variance: float = 0.0
    """Variance of the mean accuracy that is due to unknown shares of the classes."""

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether the most probable class of each node is the true one."""
        return np.asarray(self.probabilities.argmax(axis=1) == self.labels)


def held_out(candidate: Candidate, nodes: LabelledNodes, on_fit: OnFit = lambda: None) -> HeldOut:
    """Predict each labelled node once by a fit that does not see its label.

    Raises:
        CandidateFailed: If one of the fits fails.
    """
    probabilities = np.zeros((nodes.graph.n, len(nodes.classes)))
    folds = nodes.first_draw
    for k, fold in enumerate(folds):
        if candidate.held_out_probabilities:
            probabilities[fold.held_out] = candidate.held_out_probabilities[k]
        else:
            overlaps = [np.isin(other.held_out, fold.held_out).any() for other in nodes.folds]
            epochs = candidate.epochs(without=np.flatnonzero(overlaps))
            fit = nodes.fit(candidate.system, nodes.task(fold, validate=False), epochs)
            probabilities[fold.held_out] = fit.predict_proba()[fold.held_out]
        on_fit()
    numbers = np.sort(np.concatenate([fold.held_out for fold in folds]))
    held = probabilities[numbers]
    return HeldOut(numbers, nodes.labels[numbers], held, np.ones(numbers.size))
