"""Label every node of a graph from the labels of some: learn, pool, calibrate, suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kryograph.errors import KryographError, UsageError
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.labelling.calibration import Calibration, calibrate
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
from kryograph.labelling.suggestions import Suggestion, suggest_nodes
from kryograph.model import Model
from kryograph.stats import balanced_accuracy, wilson_interval
from kryograph.systems import Fit, System
from kryograph.systems.base import Probabilities
from kryograph.systems.pool import HEADS, NETWORKS, PoolSettings, PoolSystem
from kryograph.text import OnProgress, ignore_progress, percent, plural, quoted_list
from kryograph.threads import adapt_threads, on_free_cores
from kryograph.training.folds import NONE_HELD_OUT, draw_folds

if TYPE_CHECKING:
    from kryograph.data.tables.recipe import Recipe

MAX_NODES_FOR_ALL_FOLDS = 50_000
"""In a larger graph a network is tried on the first fold only, because every fold costs a fit."""

FEW_LABELS = 60
"""Up to this number of labels the folds are drawn three times, because one draw says little."""


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with a prediction for every node; the result of `label_nodes`.

    Args:
        graph: The graph.
        given_labels: The labels that were known: N class numbers, `UNKNOWN` elsewhere.
        classes: Names of the classes.
        candidates: The systems that were tried. Those of a pool come by descending weight;
            otherwise the chosen one is first, the others follow by descending accuracy.
        held_out: Predictions for known labels by models that have not seen them.
        model: The final model. It was trained on every known label and holds the calibration.
        epochs: Number of epochs of the final fit; 0 for a closed form.
        probabilities: Calibrated class probabilities, N × C.
        calibration: Temperature and threshold of the prediction sets.
        suggestions: Nodes to label next, the best one first.
        balanced: Whether the numbers of labels of the classes are taken for a design, which says
            nothing about how frequent the classes are.
        notes: Sentences about what was assumed, and about systems that were left out.
    """

    graph: Graph
    given_labels: Indices
    classes: tuple[str, ...]
    candidates: tuple[TriedSystem, ...]
    held_out: HeldOut
    model: Model
    epochs: int
    probabilities: Probabilities
    calibration: Calibration
    suggestions: tuple[Suggestion, ...]
    balanced: bool = False
    notes: tuple[str, ...] = ()

    @cached_property
    def sets(self) -> npt.NDArray[np.bool_]:
        """Mask N × C of the classes in the prediction set of each node."""
        return self.calibration.sets(self.probabilities)

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """Accuracy expected on other nodes, and the ends of Wilson's 95 % interval.

        It is the share of held-out labels that are predicted correctly. Where the labels are
        balanced by design, classes count by their estimated frequency; the interval is wider then.
        """
        weights = self.held_out.importance
        effective = weights.sum() ** 2 / (weights**2).sum()
        share = min(float(self.held_out.right @ weights / weights.sum()), 1.0)
        # As many labels as have this variance together with that of the classes' shares.
        smooth = (share * effective + 2) / (effective + 4)
        spread = smooth * (1 - smooth)
        effective = spread / (spread / effective + self.held_out.variance)
        return wilson_interval(share * effective, effective)

    @property
    def pooled(self) -> bool:
        """Whether several systems give the answer together."""
        return isinstance(self.model.system, PoolSystem)

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes of the share of held-out labels that are predicted correctly."""
        return balanced_accuracy(self.held_out.probabilities, self.held_out.labels)

    def as_dict(self) -> dict[str, Any]:
        """Sizes, choice and accuracy as values for JSON; accuracies are fractions."""
        share, low, high = self.accuracy
        system = self.model.system
        return {
            "nodes": self.graph.n,
            "edges": self.graph.edges,
            "features": self.graph.features.shape[1],
            "labels": int((self.given_labels != UNKNOWN).sum()),
            "classes": list(self.classes),
            "system": system.name,
            "settings": system.settings.as_dict(),
            "epochs": self.epochs,
            "held_out_accuracy": {
                "mean": share,
                "ci95": [low, high],
                "n": len(self.held_out.nodes),
            },
            "held_out_balanced_accuracy": self.balanced_accuracy,
            "labels_taken_as": "balanced" if self.balanced else "as drawn",
            "candidates": [
                {
                    "system": candidate.system.name,
                    "settings": candidate.system.settings.as_dict(),
                    "accuracy": candidate.accuracy,
                    "weight": candidate.weight,
                }
                for candidate in self.candidates
            ],
            "temperature": self.calibration.temperature,
            "coverage": self.calibration.coverage,
        }

    def save(self, folder: Path) -> None:
        """Write the model as a new folder.

        `kryograph predict` accepts the folder if a recipe was given to `label_nodes`.
        """
        self.model.save(folder)


@dataclass(frozen=True, eq=False)
class _Answer:
    """A fitted system with its held-out predictions."""

    system: System
    fit: Fit
    held_out: HeldOut
    tried: tuple[TriedSystem, ...]
    notes: tuple[str, ...]
    balanced: bool = False


@on_free_cores()
def label_nodes(
    graph: Graph,
    labels: Indices,
    classes: Sequence[str],
    *,
    recipe: Recipe | None = None,
    systems: Sequence[System] | None = None,
    search: float | None = None,
    budget: float = 0.0,
    metric: str = "accuracy",
    label_design: str = "guess",
    coverage: float = 0.9,
    seed: int = 0,
    suggestions: int = 100,
    progress: OnProgress = ignore_progress,
) -> LabelledGraph:
    """Label every node of a graph from the labels of some.

    A system that cannot be trained is left out with a note.

    Args:
        graph: The whole graph.
        labels: N class numbers, `UNKNOWN` for the nodes to be labelled.
        classes: Names of the classes.
        recipe: How the features were made (`Tables.columns`). It is stored with the model, so that
            `kryograph predict` can make the features of other tables. Without it, the features
            are made from those of the graph by the rule of `kryograph.features`.
        systems: The systems to choose from; None means the default pool.
        search: Time in seconds to search better settings; None means no search.
        budget: Seconds that networks may take together as members of the pool, by prediction.
            With 0 the pool has heads only.
        metric: "accuracy" or "balanced-accuracy": what the pool is made for.
        label_design: "as drawn" if the labels say how frequent the classes are, "balanced" if
            their numbers are a design, "guess" to take equal numbers for a design.
        coverage: Probability with which a prediction set shall hold the true class.
        seed: Determines folds, weights and dropout.
        suggestions: Number of nodes to suggest for labelling.
        progress: Called after every fit.

    Raises:
        KryographError: If no system can be trained. The error of a single system is its own.
    """

    def report(stage: str, share: float) -> None:
        adapt_threads()
        progress(stage, share)

    labels = np.asarray(labels)
    if np.unique(labels[labels != UNKNOWN]).size < 2:
        raise UsageError("There must be labels of at least two classes.")
    original, rule = graph, None
    if recipe is None:
        graph, rule = normalised(original)
    if systems is None:
        members = " + ".join((*HEADS, *NETWORKS) if budget > 0 else HEADS)
        settings = PoolSettings(members=members, metric=metric, labels=label_design)
        systems = [PoolSystem(settings)]
    if len(systems) == 1 and isinstance(systems[0], PoolSystem):  # it holds labels out by itself
        task = Task.labelled(graph, labels, tuple(classes))
        answer = _pool(systems[0], task, seed, search, budget, report)
    else:
        answer = _choose(systems, graph, labels, tuple(classes), seed, search, report)
    held, fit = answer.held_out, answer.fit
    calibration = calibrate(held.probabilities, held.labels, coverage, held.importance)
    extra: dict[str, Any] = {
        "calibration": asdict(calibration),
        "seed": seed,
        "epochs": fit.epochs,
    }
    if recipe is not None:
        extra = {"columns": recipe.to_json(), **extra}
    probabilities = calibration.probabilities(fit.predict_proba())
    return LabelledGraph(
        graph=original,
        given_labels=labels,
        classes=tuple(classes),
        candidates=answer.tried,
        held_out=held,
        model=Model.of(answer.system, fit, graph=original, rule=rule, **extra),
        epochs=fit.epochs,
        probabilities=probabilities,
        calibration=calibration,
        suggestions=tuple(suggest_nodes(graph, labels, probabilities, suggestions)),
        balanced=answer.balanced,
        notes=(*answer.notes, *_notes_of_single_labels(labels, classes)),
    )


def _notes_of_single_labels(labels: Indices, classes: Sequence[str]) -> list[str]:
    """Say which classes the held-out accuracy knows nothing about."""
    single = np.flatnonzero(np.bincount(labels[labels != UNKNOWN], minlength=len(classes)) == 1)
    if not single.size:
        return []
    names = quoted_list(classes[c] for c in single.tolist())
    return [
        f"{plural(single.size, 'class', 'classes')} with a single label, which is never held out: "
        f"{names}. The held-out accuracy says nothing about such a class."
    ]


def _pool(
    pool: PoolSystem,
    task: Task,
    seed: int,
    search: float | None,
    budget: float,
    progress: OnProgress,
) -> _Answer:
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
    if fit.transductive_gain is not None and fit.transductive_gain > 0:
        notes.append(
            "Parts of the pool know this graph only. On other graphs the rest predicts; on "
            f"held-out labels it is {percent(fit.transductive_gain)} points less accurate."
        )
    return _Answer(pool, fit, held, tried, tuple(notes), fit.balanced)


def _choose(
    systems: Sequence[System],
    graph: Graph,
    labels: Indices,
    classes: tuple[str, ...],
    seed: int,
    search: float | None,
    progress: OnProgress,
) -> _Answer:
    """Choose one of some systems by cross-validation, and fit it on all labels."""
    known = int((labels != UNKNOWN).sum())
    folds = draw_folds(labels, seed, 5, 3 if known <= FEW_LABELS else 1)
    folds = folds[: None if graph.n <= MAX_NODES_FOR_ALL_FOLDS else 1]
    nodes = LabelledNodes(graph, labels, classes, folds, seed)
    candidates, failures = _cross_validate_all(systems, nodes, progress)
    best = choose_candidate(candidates, known)
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
            best = choose_candidate(candidates, known)
    tried = [
        TriedSystem(
            candidate.system,
            candidate.accuracy,
            candidate.epochs() if candidate.curves.shape[1] > 1 else 0,
            float(candidate is best),
        )
        for candidate in candidates
    ]
    return _Answer(
        best.system,
        fit,
        held,
        tuple(sorted(tried, key=lambda one: (-one.weight, -one.accuracy))),
        tuple(f"{failure} It was left out." for failure in failures),
    )


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
