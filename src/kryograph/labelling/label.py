"""Label every node of a graph, given the labels of some: choose, train, calibrate, suggest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration, calibrate
from kryograph.labelling.candidates import (
    choose_candidate,
    default_candidates,
)
from kryograph.labelling.candidates import search_settings as searched
from kryograph.labelling.cross_validation import (
    Candidate,
    HeldOut,
    LabelledNodes,
    cross_validate,
    folds,
    held_out,
)
from kryograph.labelling.suggestions import Suggestion, suggest_nodes
from kryograph.model import Model
from kryograph.stats import wilson_interval
from kryograph.systems import System
from kryograph.systems.base import Probabilities
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

MAX_NODES_FOR_ALL_FOLDS = 50_000
"""In a graph of more nodes than this one part of the labels is held out instead of all in turn."""

FitProgress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, how many fits of it are done, and of how many."""


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph all of whose nodes have a prediction.

    Args:
        graph: What was labelled.
        given: The labels that were given, `UNKNOWN` elsewhere.
        classes: Their names.
        candidates: The systems that were tried; the first one was chosen, the others best first.
        held_out: What it said of given labels that it could not see (not calibrated).
        model: The final one, trained on every label, with its calibration.
        epochs: For how many epochs it was trained.
        raw: Its probabilities before calibration.
        calibration: Temperature and threshold.
        suggestions: Nodes to label next.
    """

    graph: Graph
    given: Indices
    classes: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    held_out: HeldOut
    model: Model
    epochs: int
    raw: Probabilities
    calibration: Calibration
    suggestions: tuple[Suggestion, ...]

    @cached_property
    def probabilities(self) -> Probabilities:
        """Calibrated, N × C."""
        return self.calibration.probabilities(self.raw)

    @cached_property
    def sets(self) -> npt.NDArray[np.bool_]:
        """Prediction sets, N × C."""
        return self.calibration.sets(self.probabilities)

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """That of held-out labels, with Wilson's 95 % interval."""
        return wilson_interval(int(self.held_out.right.sum()), len(self.held_out.nodes))


def label_nodes(
    graph: Graph,
    given: Indices,
    classes: Sequence[str],
    *,
    systems: Sequence[System] | None = None,
    search: float | None = None,
    coverage: float = 0.9,
    seed: int = 0,
    suggestions: int = 100,
    progress: FitProgress = ignore_progress,
) -> LabelledGraph:
    """Label every node.

    Args:
        graph: The whole graph.
        given: N class numbers, `UNKNOWN` for the nodes to be labelled.
        classes: Names of the classes.
        systems: What to choose from; the defaults if None.
        search: For how many seconds to look for better settings of the one that is chosen.
        coverage: How often a prediction set shall have the true class.
        seed: Fixes folds, weights and dropout.
        suggestions: How many nodes to suggest for labelling.
        progress: Told after every fit.
    """
    names, labels = tuple(classes), np.asarray(given)
    known = np.flatnonzero(labels != UNKNOWN)
    if np.unique(labels[known]).size < 2:
        raise UsageError("There must be labels of at least two classes.")
    parts = folds(labels, seed)
    data = LabelledNodes(
        graph, labels, names, parts if graph.n <= MAX_NODES_FOR_ALL_FOLDS else parts[:1], seed
    )
    tries = (
        default_candidates(known.size, len(names), search is not None)
        if systems is None
        else list(systems)
    )
    counter = _Counter(progress, len(tries) * len(data.folds), "choosing")
    found = [cross_validate(each, data, counter.step) for each in tries]
    best = choose_candidate(found, known.size)
    if search is not None:
        best = searched(
            best,
            search,
            seed,
            lambda each: cross_validate(each, data),
            lambda share: progress("searching", round(100 * share), 100),
        )
        found = [*(each for each in found if each is not best), best]
    ranked = sorted(found, key=lambda candidate: (candidate is not best, -candidate.accuracy))
    counter = _Counter(progress, len(data.first_draw), "checking")
    held = held_out(best, data, counter.step)
    calibration = calibrate(held.probabilities, held.labels, coverage)
    progress("training", 0, 1)
    conditions = Conditions(exactly(best.epochs()))
    fit = best.system.fit(data.whole(), seed=seed, conditions=conditions)
    progress("training", 1, 1)
    probabilities = calibration.probabilities(fit.predict_proba())
    return LabelledGraph(
        graph,
        labels,
        names,
        tuple(ranked),
        held,
        Model.of(best.system, fit),
        fit.epochs,
        fit.predict_proba(),
        calibration,
        tuple(suggest_nodes(graph, labels, probabilities, suggestions)),
    )


class _Counter:
    """Counts fits for the progress of a stage."""

    def __init__(self, progress: FitProgress, total: int, stage: str) -> None:
        self.progress, self.total, self.stage, self.done = progress, total, stage, 0
        progress(stage, 0, total)

    def step(self) -> None:
        self.done += 1
        self.progress(self.stage, self.done, self.total)
