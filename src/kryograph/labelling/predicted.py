"""PredictedGraph: the predictions for the nodes of a graph, as a record and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kryograph.data.tables.recipe import Recipe
from kryograph.errors import UsageError, unknown
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.calibration import Calibration, positive_class
from kryograph.labelling.node_names import arrow_texts, node_names
from kryograph.labelling.node_ranking import node_ranks
from kryograph.model import Model
from kryograph.systems.base import Probabilities

if TYPE_CHECKING:
    from kryograph.data.tables import Plan, Tables

FRAMES = ("arrow", "pandas", "polars")
"""Kinds of tables that predictions are converted to."""


@dataclass(frozen=True, eq=False)
class PredictedGraph:
    """Predictions for the nodes of a graph.

    Args:
        graph: The graph.
        classes: Names of the classes.
        probabilities: Calibrated class probabilities, N × C.
        sets: Mask N × C of the classes in the prediction set of each node.
        given_labels: N class numbers of labels that were known, `UNKNOWN` elsewhere; None if the
            model was fitted on another graph.
        positive: Number of the class by which nodes are ranked; None unless there are two classes.
        plan: What became of the columns of the tables; None if the graph was not read from tables.
        notes: Sentences about how the tables were read.
    """

    graph: Graph
    classes: tuple[str, ...]
    probabilities: Probabilities
    sets: npt.NDArray[np.bool_]
    given_labels: Indices | None = None
    positive: int | None = None
    plan: Plan | None = None
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Indices:
        """Number of the most probable class of each node."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def table(self) -> pa.Table:
        """Return the columns of predictions.csv as an Arrow table; sets are lists of names."""
        names, best = arrow_texts(self.classes), self.best
        columns: dict[str, Any] = {"id": arrow_texts(node_names(self.graph))}
        if self.given_labels is not None:
            known = pa.array(self.given_labels, mask=self.given_labels == UNKNOWN)
            columns["given"] = names.take(known)
        columns["predicted"] = names.take(pa.array(best))
        columns["probability"] = np.take_along_axis(self.probabilities, best[:, None], 1)[:, 0]
        columns["set"] = self._sets(names)
        columns |= {f"p({c})": self.probabilities[:, k] for k, c in enumerate(self.classes)}
        if self.positive is not None:
            columns["p_rank"] = node_ranks(self.probabilities[:, self.positive])
        return pa.table(columns)

    def predictions(self, as_: str = "arrow") -> Any:
        """Return the table of predictions as one of `FRAMES`; pandas or polars must be installed.

        Raises:
            UsageError: If the library is not installed.
        """
        if as_ not in FRAMES:
            raise unknown("kind of table", as_, FRAMES)
        table = self.table()
        try:
            if as_ == "pandas":
                return table.to_pandas()
            if as_ == "polars":
                import polars

                return polars.from_arrow(table)
        except ImportError:
            raise UsageError(f"{as_} is not installed: pip install {as_}.") from None
        return table

    def rows(self) -> list[list[str]]:
        """Return the rows of predictions.csv, the heading first; probabilities have six digits."""
        heading = [
            "id",
            "predicted",
            "probability",
            "set",
            *(f"p({name})" for name in self.classes),
        ]
        rows = [heading]
        columns = (node_names(self.graph), self.best.tolist(), self.probabilities, self.sets)
        for name, c, chances, members in zip(*columns, strict=True):
            numbers = [f"{p:.6f}" for p in chances]
            listed = " | ".join(compress(self.classes, members))
            rows.append([name, self.classes[c], numbers[c], listed, *numbers])
        if self.given_labels is not None:
            names = (*self.classes, "")  # the last one stands for UNKNOWN, which is -1
            _insert(rows, 1, ["given", *(names[c] for c in self.given_labels.tolist())])
        if self.positive is not None:
            ranks = node_ranks(self.probabilities[:, self.positive]).tolist()
            _insert(rows, len(heading), ["p_rank", *map(str, ranks)])
        return rows

    def _sets(self, names: pa.Array) -> pa.Array:
        ends = np.concatenate([[0], np.cumsum(self.sets.sum(axis=1))]).astype(np.int32)
        members = names.take(pa.array(np.nonzero(self.sets)[1]))
        return pa.ListArray.from_arrays(pa.array(ends), members)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Offer the table to every library that reads Arrow streams."""
        return self.table().__arrow_c_stream__(requested_schema)


def model_recipe(model: Model) -> Recipe:
    """Return how the features of a model are made from tables.

    Raises:
        UsageError: If the model was fitted on a graph that was not read from tables.
    """
    if "columns" not in model.extra:
        raise UsageError(
            "The model does not know how features are made from tables: pass "
            "recipe=tables.columns to label_nodes, or use Model.predict_proba in Python."
        )
    return Recipe.from_json(model.extra["columns"])


def predict_tables(model: Model, tables: Tables) -> PredictedGraph:
    """Predict the nodes of tables that were read by the recipe of a model."""
    calibration = Calibration.from_extra(model.extra)
    probabilities = calibration.probabilities(model.predict_proba(tables.graph))
    return PredictedGraph(
        graph=tables.graph,
        classes=model.classes,
        probabilities=probabilities,
        sets=calibration.sets(probabilities),
        positive=positive_class(model.extra, len(model.classes)),
        plan=tables.plan,
        notes=tables.notes,
    )


def _insert(rows: list[list[str]], at: int, column: Sequence[str]) -> None:
    for row, cell in zip(rows, column, strict=True):
        row.insert(at, cell)
