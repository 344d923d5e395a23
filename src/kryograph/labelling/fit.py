"""Label every node of a graph, given the labels of some: choose, train, calibrate, suggest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration, calibrate
from kryograph.labelling.choice import Candidate, HeldOut, held_out, tried
from kryograph.labelling.folds import Given, folds
from kryograph.labelling.search import search as searched
from kryograph.labelling.suggestions import Suggestion, suggest
from kryograph.model import Model
from kryograph.systems import System, system
from kryograph.systems.base import Probabilities
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

ENOUGH = 15
"""From this many labels for each class on, a network needs no help from prototypes."""

NETWORKS = " + ".join(3 * ["truncated-krylov"])
"""The mean of three fits: one is a point or two better or worse by chance, three are not."""

LARGE = 50_000
"""In a graph of more nodes than this one part of the labels is held out instead of all in turn."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, how many fits of it are done, and of how many."""


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody."""


@dataclass(frozen=True, eq=False)
class Labelled:
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
        return wilson(int(self.held_out.right.sum()), len(self.held_out.nodes))


def wilson(right: int, n: int) -> tuple[float, float, float]:
    """A share and its 95 % interval by Wilson's score.

    >>> [round(value, 3) for value in wilson(8, 10)]
    [0.8, 0.49, 0.943]
    """
    z = 1.959964
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return share, max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def default_candidates(labels: int, classes: int, search: bool = False) -> list[System]:
    """What is tried when nothing is asked for: first networks if there are labels enough.

    Before a search it is one network: its settings are what is searched for.
    """
    network = system("truncated-krylov") if search else system("blend", {"members": NETWORKS})
    first = [network] if labels >= ENOUGH * classes else []
    return [*first, system("blend"), system("prototypes", {"rounds": 5})]


def chosen(candidates: Sequence[Candidate], labels: int) -> Candidate:
    """The first, unless another is better by half a standard error of a share of the labels.

    The best of several that differ by chance is no better than the first; this keeps to what was
    good on other graphs until there is some evidence against it.
    """
    first = candidates[0]
    best = max(candidates, key=lambda candidate: candidate.accuracy)
    margin = 0.5 * math.sqrt(first.accuracy * (1 - first.accuracy) / labels)
    return best if best.accuracy > first.accuracy + margin else first


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
    progress: Progress = silent,
) -> Labelled:
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
    data = Given(graph, labels, names, parts if graph.n <= LARGE else parts[:1], seed)
    tries = (
        default_candidates(known.size, len(names), search is not None)
        if systems is None
        else list(systems)
    )
    counter = _Counter(progress, len(tries) * len(data.folds), "choosing")
    found = [tried(each, data, counter.step) for each in tries]
    best = chosen(found, known.size)
    if search is not None:
        best = searched(
            best,
            search,
            seed,
            lambda each: tried(each, data),
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
    return Labelled(
        graph,
        labels,
        names,
        tuple(ranked),
        held,
        Model.of(best.system, fit),
        fit.epochs,
        fit.predict_proba(),
        calibration,
        tuple(suggest(graph, labels, probabilities, suggestions)),
    )


class _Counter:
    """Counts fits for the progress of a stage."""

    def __init__(self, progress: Progress, total: int, stage: str) -> None:
        self.progress, self.total, self.stage, self.done = progress, total, stage, 0
        progress(stage, 0, total)

    def step(self) -> None:
        self.done += 1
        self.progress(self.stage, self.done, self.total)
