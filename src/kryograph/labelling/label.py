"""Label every node of a graph from the labels of some: learn, pool, calibrate, suggest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError, unknown
from kryograph.explain.contributions import AdditiveForm
from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.labelling.answer import answer_by_choice, answer_by_pool
from kryograph.labelling.calibration import Calibration, calibrate, check_labels_of_classes
from kryograph.labelling.candidates import TriedSystem
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.disputes import Dispute, find_disputes
from kryograph.labelling.explanation import Explanation, explain_node
from kryograph.labelling.quality import Baseline, ClassQuality, Quality, measure_quality
from kryograph.labelling.suggestions import Suggestion, suggest_nodes
from kryograph.labelling.what_if import WhatIf, predict_changed
from kryograph.model import Model
from kryograph.systems import System
from kryograph.systems.base import Probabilities
from kryograph.systems.pool import HEADS, NETWORKS, PoolSettings, PoolSystem
from kryograph.text import OnProgress, ignore_progress, plural, quoted, quoted_list
from kryograph.training.purpose import Purpose, rarer_class

if TYPE_CHECKING:
    from kryograph.data.tables import Plan
    from kryograph.data.tables.recipe import Recipe


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
        feature_names: Names of the features, such as "colour = red"; None if they have none.
        positive: Number of the class by which nodes are ranked; None unless there are two classes.
        plan: What became of every column of the tables; None if the graph was not read from tables.
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
    feature_names: tuple[str, ...] | None = None
    positive: int | None = None
    plan: Plan | None = None

    @cached_property
    def sets(self) -> npt.NDArray[np.bool_]:
        """Mask N × C of the classes in the prediction set of each node."""
        return self.calibration.sets(self.probabilities)

    @cached_property
    def quality(self) -> Quality:
        """Accuracy, baseline, quality of each class and ranking, by held-out labels."""
        calibrated = self.calibration.probabilities(self.held_out.probabilities)
        return measure_quality(
            self.held_out, self.given_labels, calibrated, self.probabilities, self.positive
        )

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """Accuracy expected on other nodes, and the ends of Wilson's 95 % interval.

        It is the share of held-out labels that are predicted correctly. Where the labels are
        balanced by design, classes count by their estimated frequency; the interval is wider then.
        """
        estimate = self.quality.accuracy
        return estimate.value, estimate.low, estimate.high

    @property
    def baseline(self) -> Baseline:
        """The most frequent class, and the accuracy of always answering it."""
        return self.quality.baseline

    @property
    def per_class(self) -> dict[str, ClassQuality]:
        """Support, precision and recall of each class, by its name."""
        return dict(zip(self.classes, self.quality.per_class, strict=True))

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes of the share of held-out labels that are predicted correctly."""
        return self.quality.balanced_accuracy

    @cached_property
    def disputed(self) -> tuple[Dispute, ...]:
        """Given labels that held-out predictions doubt, the most doubtful one first."""
        held = self.held_out
        calibrated = self.calibration.probabilities(held.probabilities)
        return find_disputes(held.nodes, held.labels, calibrated)

    @property
    def pooled(self) -> bool:
        """Whether several systems give the answer together."""
        return isinstance(self.model.system, PoolSystem)

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
            **self.quality.as_dict(self.classes),
            "disputed": [
                {
                    "node": self.graph.names[one.node] if self.graph.names else str(one.node),
                    "given": self.classes[one.label],
                    "predicted": self.classes[one.predicted],
                    "probability": one.probability,
                }
                for one in self.disputed
            ],
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
            "coverage_by": "all" if self.calibration.class_thresholds is None else "class",
        }

    @cached_property
    def additive(self) -> AdditiveForm:
        """Form in which the log-odds of every node, before calibration, are a sum."""
        return self.model.additive(self.graph)

    def explain(self, node: str | int, against: str | None = None, top: int = 10) -> Explanation:
        """Explain why a node is predicted as its class; see `explain_node`."""
        return explain_node(self, node, against, top)

    def what_if(self, node: str | int, **changes: Any) -> WhatIf:
        """Predict a node after a change of edges, features or labels; see `predict_changed`."""
        return predict_changed(self, label_nodes, node, **changes)

    def save(self, folder: Path) -> None:
        """Write the model as a new folder, for `kryograph predict` if it has a recipe."""
        self.model.save(folder)


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
    labels = np.asarray(labels)
    if np.unique(labels[labels != UNKNOWN]).size < 2:
        raise UsageError("There must be labels of at least two classes.")
    number = _positive_number(positive, classes)
    purpose = Purpose(metric, class_weight, number)
    purpose.check(len(classes))
    if coverage_by == "class":  # before the work; fewer labels may be held out than there are
        check_labels_of_classes(labels[labels != UNKNOWN], classes, coverage)
    original, rule = graph, None
    if recipe is None:
        graph, rule = normalised(original)
    if systems is None:
        members = " + ".join((*HEADS, *NETWORKS) if budget > 0 else HEADS)
        settings = PoolSettings(
            members=members,
            metric=metric,
            positive=number,
            class_weight=class_weight,
            labels=label_design,
        )
        systems = [PoolSystem(settings)]
    if len(systems) == 1 and isinstance(systems[0], PoolSystem):  # it holds labels out by itself
        task = Task.labelled(graph, labels, tuple(classes))
        answer = answer_by_pool(systems[0], task, seed, search, budget, progress)
    else:
        answer = answer_by_choice(
            systems, graph, labels, tuple(classes), purpose, seed, search, progress
        )
    held, fit = answer.held_out, answer.fit
    if coverage_by == "class":
        check_labels_of_classes(held.labels, classes, coverage)
    calibration = calibrate(
        held.probabilities, held.labels, coverage, held.importance, by_class=coverage_by == "class"
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
        suggestions=tuple(suggest_nodes(graph, labels, probabilities, suggestions)),
        balanced=answer.balanced,
        notes=(*answer.notes, *_notes_of_single_labels(labels, classes)),
        feature_names=None if recipe is None else recipe.features,
        positive=extra.get("positive"),
    )
    warning = labelled.quality.warning(labelled.classes)
    return replace(labelled, notes=(*labelled.notes, warning)) if warning else labelled


def _positive_number(positive: str | None, classes: Sequence[str]) -> int:
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
