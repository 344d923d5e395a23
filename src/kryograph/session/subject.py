"""Subject: the graph that is labelled in a session, and what a person sees of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables import Sheet, Tables
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.sheet import NumberColumn
from kryograph.errors import UsageError
from kryograph.features import is_identity, normalised
from kryograph.graph import Graph, Indices
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.node_names import node_names
from kryograph.labelling.table_columns import stored_recipe
from kryograph.systems import System
from kryograph.text import quoted

MOST_FIELDS = 40
"""Largest number of columns or features of a node on the page."""

MANY_NUMBERS = 20
"""Of more columns of numbers than this, those with a zero are not displayed."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A graph to label.

    Args:
        graph: The graph.
        labels: Labels that are known already, N class numbers or `UNKNOWN`.
        classes: Names of the classes.
        recipe: How the features were made from tables; None if the graph had them.
        sheet: Table of the nodes as it was read; None if it is not there.
        hidden: Columns of the sheet that are not displayed: ids and labels.
        feature_names: Names of the features; None if they have none.
        system: The system of a finished run; None for the default of `fit`.
    """

    graph: Graph
    labels: Indices
    classes: tuple[str, ...]
    recipe: Recipe | None = None
    sheet: Sheet | None = None
    hidden: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    system: System | None = None

    @classmethod
    def of_run(cls, labelled: LabelledGraph) -> Subject:
        """Take graph, labels and system of a finished run."""
        return cls(
            labelled.graph,
            labelled.given_labels,
            labelled.classes,
            stored_recipe(labelled),
            feature_names=labelled.feature_names,
            system=labelled.model.system,
        )

    @classmethod
    def of_tables(cls, tables: Tables, label: str | None) -> Subject:
        """Take graph and labels of tables; `label` is the column of labels that was named."""
        recipe = tables.columns
        return cls(
            tables.graph,
            tables.labels,
            tables.classes,
            recipe,
            None if tables.sheet is None else _readable(tables.sheet),
            tuple(name for name in (recipe.id, recipe.label, label) if name is not None),
            recipe.features,
        )

    def with_classes(self, classes: Sequence[str]) -> Subject:
        """Add classes after those that there are; repeated names count once.

        Raises:
            UsageError: If there are fewer than two classes then.
        """
        names = tuple(dict.fromkeys((*self.classes, *classes)))
        if len(names) < 2:
            known = f"only {quoted(names[0])}" if names else "no labels"
            raise UsageError(
                f"There must be at least two classes, and there are {known}: name them with "
                "--classes a,b,c."
            )
        return replace(self, classes=names)

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the nodes, or their numbers as text."""
        return node_names(self.graph)

    @cached_property
    def features_graph(self) -> Graph:
        """The graph with the features that `kryograph fit` would learn from."""
        return normalised(self.graph)[0] if self.recipe is None else self.graph

    def fields(self, node: int) -> list[tuple[str, str]]:
        """Names and values of what is known of a node: cells of its table, else its features."""
        sheet = self.sheet
        lines = self._features(node) if sheet is None else self._cells(sheet, node)
        return lines[:MOST_FIELDS]

    def _cells(self, sheet: Sheet, node: int) -> list[tuple[str, str]]:
        numbers = sum(isinstance(column, NumberColumn) for column in sheet.columns.values())
        lines = []
        for name in sheet.names:
            if name in self.hidden:
                continue
            text = _cell(sheet, name, node)
            is_number = isinstance(sheet.columns[name], NumberColumn)
            if text and not (is_number and text == "0" and numbers > MANY_NUMBERS):
                lines.append((name, text))
        return lines

    def _features(self, node: int) -> list[tuple[str, str]]:
        x = self.graph.features
        if is_identity(x):
            return []
        row = x[[node]].toarray()[0] if isinstance(x, sp.csr_array) else np.asarray(x[node])
        strongest = np.argsort(-abs(row), kind="stable")[:MOST_FIELDS]
        return [(self.feature_name(f), f"{row[f]:.3g}") for f in strongest.tolist() if row[f]]

    def feature_name(self, number: int) -> str:
        """Name of a feature; its number in words without names."""
        names = self.feature_names
        return f"feature {number}" if names is None else names[number]


def _readable(sheet: Sheet) -> Sheet:
    """Leave out columns of numbers that nobody reads: of many, those that are mostly not zero.

    They are vectors, such as embeddings, and would take much memory for the whole session.
    """
    numbers = {n: c for n, c in sheet.columns.items() if isinstance(c, NumberColumn)}
    if len(numbers) <= MANY_NUMBERS:
        return sheet
    dense = {name for name, column in numbers.items() if 2 * column.rows.size > column.n}
    kept = {name: column for name, column in sheet.columns.items() if name not in dense}
    return Sheet(sheet.path, kept, sheet.rows, sheet.place, missing=sheet.missing)


def _cell(sheet: Sheet, name: str, row: int) -> str:
    """Text of a cell; "" if it is empty or is not text."""
    column = sheet.columns[name]
    if isinstance(column, NumberColumn):
        value = column.values[column.rows == row]
        number = float(value[0]) if value.size else 0.0
        return "" if np.isnan(number) else f"{number:.6g}"
    one = Sheet(sheet.path, {name: column.slice(row, 1)}, 1, sheet.place, missing=sheet.missing)
    try:
        return str(one.text(name)[0].as_py())
    except UsageError:  # a list of numbers, which nobody reads
        return ""
