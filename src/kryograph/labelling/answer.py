"""The system that answers: a pool, or one of some systems, which cross-validation chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from kryograph.errors import KryographError, UsageError
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.labelling.candidates import TriedSystem, choose_candidate, search_settings
from kryograph.labelling.cross_validation import (
    Candidate,
    CandidateFailed,
    HeldOut,
    LabelledNodes,
    OnFit,
    cross_validate,
    held_out,
)
from kryograph.labelling.pool_search import search_pool
from kryograph.stats import Metric, balanced_accuracy, f1_score, precision_recall
from kryograph.systems import Fit, System
from kryograph.systems.base import Probabilities
from kryograph.systems.pool import PoolSystem
from kryograph.text import OnProgress, percent
from kryograph.training.folds import NONE_HELD_OUT, draw_folds
from kryograph.training.purpose import Purpose, rarer_class

MAX_NODES_FOR_ALL_FOLDS = 50_000
"""In a larger graph a network is tried on the first fold only, because every fold costs a fit."""

FEW_LABELS = 60
"""Up to this number of labels the folds are drawn three times, because one draw says little."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A fitted system with its held-out predictions."""

    system: System
    fit: Fit
    held_out: HeldOut
    tried: tuple[TriedSystem, ...]
    notes: tuple[str, ...]
    balanced: bool = False
    temperature: float | None = None
    """Temperature of the answer's probabilities; None if it must be learned."""


def answer_by_pool(
    pool: PoolSystem,
    task: Task,
    seed: int,
    search: float | None,
    budget: float,
    progress: OnProgress,
) -> Answer:
    """Fit the pool; its held-out predictions are its own."""
    if search is not None:
        pool = search_pool(pool, task, search, seed, lambda share: progress("searching", share))
    fit = pool.fit_pool(task, seed=seed, budget=budget, progress=progress)
    if not fit.nodes.size:
        raise UsageError(NONE_HELD_OUT)
    held = HeldOut(fit.nodes, task.labels[fit.nodes], fit.held_out, fit.importance, fit.variance)
    tried = tuple(TriedSystem(m.system, m.accuracy, m.epochs, m.weight) for m in fit.members)
    notes = list(fit.notes)
    if fit.balanced:
        notes.append(
            "The labels are taken as balanced by design: how frequent each class is was estimated "
            "from the predictions."
        )
    elif np.ptp(fit.importance) > 0:
        notes.append(
            "How frequent each class is was estimated from the labels and the predictions: it is "
            "not known how the labelled nodes were chosen. --random-labels says that they were "
            "drawn at random."
        )
    if pool.settings.metric in ("balanced-accuracy", "f1"):
        notes.append(
            f"The probabilities are made for {pool.settings.metric}: those of rare classes are "
            "raised, so that the most probable class is the best answer."
        )
    if fit.transductive_gain is not None and fit.transductive_gain > 0:
        notes.append(
            "Parts of the pool know this graph only. On other graphs the rest predicts; on "
            f"held-out labels it is {percent(fit.transductive_gain)} points less accurate."
        )
    # The pool has a temperature of its own already.
    return Answer(pool, fit, held, tried, tuple(notes), fit.balanced, temperature=1.0)


def answer_by_choice(
    systems: Sequence[System],
    graph: Graph,
    labels: Indices,
    classes: tuple[str, ...],
    purpose: Purpose,
    seed: int,
    search: float | None,
    progress: OnProgress,
) -> Answer:
    """Choose one of some systems by cross-validation, and fit it on all labels."""
    known = int((labels != UNKNOWN).sum())
    metric, behind = metric_for_choice(purpose, labels)
    folds = draw_folds(labels, seed, 5, 3 if known <= FEW_LABELS else 1)
    folds = folds[: None if graph.n <= MAX_NODES_FOR_ALL_FOLDS else 1]
    nodes = LabelledNodes(graph, labels, classes, folds, seed, metric)
    candidates, failures = _cross_validate_all(systems, nodes, progress)
    best = choose_candidate(candidates, behind)
    if search is not None:
        best = search_settings(
            best,
            search,
            seed,
            lambda method: cross_validate(method, nodes),
            lambda fraction: progress("searching", fraction),
        )
        if best not in candidates:
            candidates.append(best)
    while True:
        try:
            held, fit = _train(best, nodes, progress)
            break
        except CandidateFailed as failure:
            failures.append(failure)
            candidates.remove(best)
            _check_some_left(candidates, failures)
            best = choose_candidate(candidates, behind)
    tried = [
        TriedSystem(
            candidate.system,
            candidate.accuracy,
            candidate.epochs() if candidate.curves.shape[1] > 1 else 0,
            float(candidate is best),
        )
        for candidate in candidates
    ]
    return Answer(
        best.system,
        fit,
        held,
        tuple(sorted(tried, key=lambda one: (-one.weight, -one.accuracy))),
        tuple(f"{failure} It was left out." for failure in failures),
    )


def metric_for_choice(purpose: Purpose, labels: Indices) -> tuple[Metric | None, int]:
    """Return the metric of candidates (None: accuracy) and the number of labels behind it."""
    counts = np.bincount(labels[labels != UNKNOWN])
    if purpose.metric == "accuracy":
        return None, int(counts.sum())
    if purpose.metric == "balanced-accuracy":
        return balanced_accuracy, int(counts[counts > 0].min())
    positive = rarer_class(counts) if purpose.positive < 0 else purpose.positive
    if purpose.metric == "f1":
        return partial(f1_score, positive=positive), int(counts[positive])

    def average_precision(probabilities: Probabilities, known: Indices) -> float:
        if not (known == positive).any():
            return 0.0
        return precision_recall(probabilities[:, positive], known == positive).average_precision

    return average_precision, int(counts[positive])


def _cross_validate_all(
    systems: Sequence[System], nodes: LabelledNodes, progress: OnProgress
) -> tuple[list[Candidate], list[CandidateFailed]]:
    """Cross-validate each system; the candidates, and the failures of the others."""
    candidates, failures = [], []
    on_fit = _count_fits(progress, "choosing", len(systems) * len(nodes.folds))
    for method in systems:
        try:
            candidates.append(cross_validate(method, nodes, on_fit))
        except CandidateFailed as failure:
            failures.append(failure)
    _check_some_left(candidates, failures)
    return candidates, failures


def _train(best: Candidate, nodes: LabelledNodes, progress: OnProgress) -> tuple[HeldOut, Fit]:
    """Predict the held-out labels, then train on every known label."""
    held = held_out(best, nodes, _count_fits(progress, "checking", len(nodes.first_draw)))
    progress("training", 0.0)
    task = Task.labelled(nodes.graph, nodes.labels, nodes.classes)
    fit = nodes.fit(best.system, task, best.epochs())
    progress("training", 1.0)
    return held, fit


def _check_some_left(candidates: list[Candidate], failures: list[CandidateFailed]) -> None:
    if candidates:
        return
    if len(failures) == 1:
        raise failures[0].error
    reasons = " ".join(str(failure) for failure in failures)
    raise KryographError(f"None of the {len(failures)} systems could be trained. {reasons}")


def _count_fits(progress: OnProgress, stage: str, total: int) -> OnFit:
    """Report the start of a stage; return a function that reports one more finished fit."""
    numbers = count(1)
    progress(stage, 0.0)
    return lambda: progress(stage, next(numbers) / total)
