"""Label every node of a graph from the labels of some: learn, pool, calibrate, suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kryograph.errors import UsageError, check_known, unknown
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.labelling.answer import answer_by_choice, answer_by_pool
from kryograph.labelling.calibration import (
    COVERAGES_BY,
    calibrate,
    check_labels_of_classes,
)
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.suggestions import suggest_nodes
from kryograph.model import Model
from kryograph.systems import System
from kryograph.systems.pool import HEADS, NETWORKS, PoolSettings, PoolSystem
from kryograph.text import OnProgress, ignore_progress, plural, quoted, quoted_list
from kryograph.threads import adapt_threads, on_free_cores
from kryograph.training.purpose import Purpose, rarer_class

if TYPE_CHECKING:
    from kryograph.data.tables.recipe import Recipe


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
    positive: str | None = None,
    class_weight: str = "by metric",
    label_design: str = "guess",
    coverage: float = 0.9,
    coverage_by: str = "all",
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
        metric: One of `training.purpose.PURPOSES`: what the pool is made for, and by what
            candidates are chosen. "f1" and "average-precision" need two classes.
        positive: Name of the positive one of two classes, by which nodes are ranked; None for the
            rarer one.
        class_weight: "balanced" if all classes count alike in the log-loss of the pool, "none" if
            all labels do, "by metric" for "balanced" with balanced accuracy only.
        label_design: "as drawn" if the labels say how frequent the classes are, "balanced" if
            their numbers are a design, "guess" to take equal numbers for a design.
        coverage: Probability with which a prediction set shall hold the true class.
        coverage_by: "all" if this holds for all nodes together, "class" if for each class.
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
    number = positive_number(positive, classes)
    purpose = Purpose(metric, class_weight, number)
    check_purpose(labels, classes, purpose, coverage, coverage_by)
    original, rule = graph, None
    if recipe is None:
        graph, rule = normalised(original)
    if systems is None:
        members = " + ".join((*HEADS, *NETWORKS) if budget > 0 else HEADS)
        systems = [PoolSystem(PoolSettings(members=members, labels=label_design))]
    if len(systems) == 1 and isinstance(systems[0], PoolSystem):  # it holds labels out by itself
        task = Task.labelled(graph, labels, tuple(classes))
        answer = answer_by_pool(
            _with_purpose(systems[0], purpose), task, seed, search, budget, report
        )
    else:
        answer = answer_by_choice(
            systems, graph, labels, tuple(classes), purpose, seed, search, report
        )
    held, fit = answer.held_out, answer.fit
    if coverage_by == "class":
        check_labels_of_classes(held.labels, classes, coverage)
    calibration = calibrate(
        held.probabilities,
        held.labels,
        coverage,
        held.importance,
        temperature=answer.temperature,
        by_class=coverage_by == "class",
    )
    extra: dict[str, Any] = {
        "calibration": calibration.as_extra(),
        "seed": seed,
        "epochs": fit.epochs,
    }
    if len(classes) == 2:
        if number < 0:
            number = rarer_class(np.bincount(held.labels, held.importance, minlength=2))
        extra["positive"] = number
    if recipe is not None:
        extra = {"columns": recipe.to_json(), **extra}
    probabilities = calibration.probabilities(fit.predict_proba())
    labelled = LabelledGraph(
        graph=original,
        given_labels=labels,
        classes=tuple(classes),
        candidates=answer.tried,
        held_out=held,
        model=Model.of(answer.system, fit, graph=original, rule=rule, **extra),
        epochs=fit.epochs,
        probabilities=probabilities,
        calibration=calibration,
        suggestions=tuple(suggest_nodes(graph, labels, probabilities, suggestions, seed=seed)),
        balanced=answer.balanced,
        notes=(*answer.notes, *_notes_of_single_labels(labels, classes)),
        feature_names=None if recipe is None else recipe.features,
        positive=extra.get("positive"),
    )
    made_for = getattr(answer.system.settings, "metric", metric)
    warning = labelled.quality.warning(labelled.classes, made_for)
    return replace(labelled, notes=(*labelled.notes, warning)) if warning else labelled


def _with_purpose(pool: PoolSystem, purpose: Purpose) -> PoolSystem:
    """Copy a pool with the parts of the purpose that are not the defaults."""
    usual = asdict(Purpose("accuracy", "by metric", -1))
    changes = {key: value for key, value in asdict(purpose).items() if value != usual[key]}
    return PoolSystem(pool.settings.replace(changes), pool.operator)


def check_purpose(
    labels: Indices, classes: Sequence[str], purpose: Purpose, coverage: float, coverage_by: str
) -> None:
    """Raise an error if there are not the labels that the purpose and the coverage need."""
    if np.unique(labels[labels != UNKNOWN]).size < 2:
        raise UsageError("There must be labels of at least two classes.")
    purpose.check(len(classes))
    check_known("kind of coverage", coverage_by, COVERAGES_BY)
    if coverage_by == "class":  # fewer labels may be held out than there are
        check_labels_of_classes(labels[labels != UNKNOWN], classes, coverage)


def positive_number(positive: str | None, classes: Sequence[str]) -> int:
    """Number of the positive class; -1 for the rarer one, which is not known yet."""
    if positive is None:
        return -1
    if len(classes) != 2:
        raise UsageError(
            f"A positive class is one of two classes, and there are {len(classes)}: leave "
            f"{quoted(positive)} out."
        )
    if positive not in classes:
        raise unknown("class", positive, classes)
    return list(classes).index(positive)


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
