"""LabelledGraph: a graph with a prediction for every node, and what is done with it next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from kryograph.data.tables import read_tables
from kryograph.explain.contributions import AdditiveForm
from kryograph.files import replaced
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.candidates import TriedSystem
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.disputes import Dispute, find_disputes
from kryograph.labelling.explanation import Explanation, explain_node
from kryograph.labelling.node_names import node_number
from kryograph.labelling.predicted import PredictedGraph, model_recipe, predict_tables
from kryograph.labelling.quality import Baseline, ClassQuality, Quality, measure_quality
from kryograph.labelling.suggestions import Suggestion
from kryograph.labelling.table_columns import stored_recipe
from kryograph.labelling.what_if import WhatIf, predict_changed
from kryograph.model import Model
from kryograph.systems.base import Probabilities
from kryograph.systems.pool import PoolSystem
from kryograph.text import percent, plural

if TYPE_CHECKING:
    from kryograph.data.tables import Plan


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

    def __repr__(self) -> str:
        known = int((self.given_labels != UNKNOWN).sum())
        share, low, high = self.accuracy
        return (
            f"LabelledGraph({plural(self.graph.n, 'node')}, {plural(self.graph.edges, 'edge')}, "
            f"{plural(known, 'label')} of {plural(len(self.classes), 'class', 'classes')}, "
            f"held-out accuracy {percent(share)} % ({percent(low)} to {percent(high)}) by "
            f"{self.model.system.name})"
        )

    @cached_property
    def sets(self) -> npt.NDArray[np.bool_]:
        """Mask N × C of the classes in the prediction set of each node."""
        return self.calibration.sets(self.probabilities)

    @property
    def labels_taken_as(self) -> str:
        """Meaning of the numbers of labels for how frequent the classes are.

        "balanced" if they are a design and say nothing, "as drawn" if they say all, and "uncertain"
        if the shares of the classes are estimated from labels and predictions together.
        """
        if self.balanced:
            return "balanced"
        return "as drawn" if np.ptp(self.held_out.importance) == 0 else "uncertain"

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

        It is the share of held-out labels that are predicted correctly. Where the shares of the
        classes are estimated, classes count by them, and the interval is wider.
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
    def predicted(self) -> PredictedGraph:
        """The predictions alone, in the form that `predict` has for other graphs."""
        return PredictedGraph(
            graph=self.graph,
            classes=self.classes,
            probabilities=self.probabilities,
            sets=self.sets,
            given_labels=self.given_labels,
            positive=self.positive,
            plan=self.plan,
            notes=self.notes,
        )

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
            "labels_taken_as": self.labels_taken_as,
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
            "plan": None if self.plan is None else self.plan.as_dicts(),
            "notes": list(self.notes),
        }

    @cached_property
    def additive(self) -> AdditiveForm:
        """Form in which the log-odds of every node, before calibration, are a sum."""
        return self.model.additive(self.graph)

    def explain(self, node: str | int, against: str | None = None, top: int = 10) -> Explanation:
        """Explain why a node is predicted as its class; see `explain_node`."""
        return explain_node(self, node, against, top)

    def what_if(
        self,
        node: str | int,
        *,
        without_edge: Sequence[str | int] = (),
        values: Mapping[str, str] | None = None,
        without_feature: Sequence[str] = (),
        without_label: Sequence[str | int] = (),
        label_as: Mapping[str | int, str] | None = None,
    ) -> WhatIf:
        """Predict a node after a change of edges, features or labels; see `predict_changed`."""
        return predict_changed(
            self,
            node,
            without_edge=without_edge,
            values=values,
            without_feature=without_feature,
            without_label=without_label,
            label_as=label_as,
        )

    def predictions(self, as_: str = "arrow") -> Any:
        """Return a table with a row for each node: "arrow", "pandas" or "polars"."""
        return self.predicted.predictions(as_)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the predictions to every library that reads Arrow streams."""
        return self.predicted.__arrow_c_stream__(requested_schema)

    def predict(self, edges: object, nodes: object = None, **flags: Any) -> PredictedGraph:
        """Predict the nodes of other tables, which are read as those of the fit were.

        See `read_tables` for the arguments.

        Raises:
            UsageError: If the graph of the fit was not read from tables, or the tables have faults.
        """
        return predict_tables(
            self.model, read_tables(edges, nodes, columns=model_recipe(self.model), **flags)
        )

    def add_labels(self, labels: Mapping[str | int, str], **arguments: Any) -> LabelledGraph:
        """Give labels to further nodes, by name or number, and fit again with the same settings.

        A class that is new comes after the others. `arguments` are those of `label_nodes`.
        """
        classes = tuple(dict.fromkeys((*self.classes, *labels.values())))
        numbers = self.given_labels.copy()
        for node, name in labels.items():
            numbers[node_number(self.graph, node)] = classes.index(name)
        return self.refitted(self.graph, numbers, classes, **arguments)

    def refitted(
        self,
        graph: Graph,
        labels: Indices,
        classes: tuple[str, ...] | None = None,
        **arguments: Any,
    ) -> LabelledGraph:
        """Fit the same system again with the same seed, on a changed graph or with other labels."""
        from kryograph.labelling.label import label_nodes

        same: dict[str, Any] = {
            "recipe": stored_recipe(self),
            "systems": [self.model.system],
            "budget": math.inf,
            "coverage": self.calibration.coverage,
            "coverage_by": "all" if self.calibration.class_thresholds is None else "class",
            "seed": int(self.model.extra["seed"]),
        }
        again = label_nodes(graph, labels, classes or self.classes, **(same | arguments))
        return replace(again, plan=self.plan)

    def report(self, path: Path | str | None = None) -> str:
        """Return the page as the text of one HTML file, and write it to `path` if there is one."""
        from kryograph.report.fit_page import page_of

        page = page_of(self)
        if path is not None:
            with replaced(Path(path)) as new:
                new.write_text(page, encoding="utf-8")
        return page

    def save(self, folder: Path | str) -> None:
        """Write the folder of a fit, which `load_run` and the command line read."""
        from kryograph.labelling.run_folder import check_fit_output, write

        check_fit_output(Path(folder), overwrite=False, folder=True)
        write(Path(folder), self, self.report())

    def to_pyg(self) -> Any:
        """Return the graph as a PyTorch Geometric `Data`.

        y are the predicted classes, train_mask marks the given labels, and `probabilities` are the
        calibrated ones, N × C.
        """
        data = self.graph.to_pyg()
        data.y = torch.from_numpy(self.predicted.best)
        data.train_mask = torch.from_numpy(self.given_labels != UNKNOWN)
        data.probabilities = torch.from_numpy(self.probabilities)
        return data
