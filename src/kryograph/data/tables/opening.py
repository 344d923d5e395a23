"""Opening of tables: what a caller passes becomes a table or a whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.faults import Faults
from kryograph.data.tables.formats import format_of
from kryograph.data.tables.frames import open_object
from kryograph.data.tables.options import NO_WEIGHT, Reading, TableOptions
from kryograph.data.tables.plan import Plan
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.sheet import RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.text import OnProgress

Table: TypeAlias = CsvTable | Sheet
"""A table whose columns have names, or whose first row may be a header or data."""

ROLES = ("source", "target", "id", "label", "weight", "edge_type")
"""Options that name one column."""


@dataclass(eq=False)
class Session:
    """One reading of tables: how they are to be read, and what was noticed so far."""

    named: TableOptions
    """Options of the caller."""
    recipe: Recipe | None
    """Recipe of the model that the features are for; None if they are learned."""
    as_dataset: bool
    progress: OnProgress
    faults: Faults = field(default_factory=Faults)
    notes: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)

    @property
    def reading(self) -> Reading | None:
        """How the tables of the model were read."""
        return None if self.recipe is None else self.recipe.reading

    @property
    def options(self) -> TableOptions:
        """Options of the caller, with those of the model where the caller says nothing."""
        return self.named if self.reading is None else self.named.over(self.reading.options)

    def options_for(self, sheet: Sheet) -> TableOptions:
        """Options without the roles that only the model names and the table lacks."""
        if self.reading is None:
            return self.options
        known = (*sheet.names, None, NO_WEIGHT)
        gone: dict[str, Any] = {
            role: None
            for role in ROLES
            if getattr(self.named, role) is None and getattr(self.options, role) not in known
        }
        return replace(self.options, **gone)


def open_table(
    value: object, role: str, session: Session, *, alone: bool
) -> Table | RawGraph | None:
    """Open a table or a whole graph; None if it cannot be read, which is a fault.

    `role` is "edges", "nodes" or "labels"; `alone` says whether it is the only table of edges or of
    nodes, so that it may be a whole graph.
    """
    with session.faults.collected(str(value) if isinstance(value, str | Path) else role):
        table: Any = open_object(value, role, alone=alone)
        if isinstance(table, Path):
            table = _open_file(table, role, alone)
        if isinstance(table, RawGraph) and not alone:
            raise _not_alone(table.sheet.path, role)
        for sheet in (table.sheet, table.edges) if isinstance(table, RawGraph) else (table,):
            if isinstance(sheet, Sheet):
                sheet.missing = session.options.missing_words
        return table  # type: ignore[no-any-return]
    return None


def _open_file(path: Path, role: str, alone: bool) -> Table | RawGraph:
    format = format_of(path)
    if format.whole and not alone:
        raise _not_alone(path, role)
    read = format.read_edges if role == "edges" and format.read_edges else format.read
    table = read(path)
    if format.whole and not isinstance(table, RawGraph):
        raise UsageError(f"The reader of {format.title} must return a RawGraph.")
    if not format.whole and not isinstance(table, CsvTable | Sheet):
        raise UsageError(f"The reader of {format.title} must return a Sheet, or set `whole`.")
    return table


def _not_alone(path: Path | str, role: str) -> UsageError:
    if role == "labels":
        return UsageError(f"{path} holds a graph, not a table of labels.")
    return UsageError(f"{path} holds nodes and edges: pass it alone, without another table.")


def open_edges(value: object) -> list[object]:
    """List the tables of edges that a caller passes: one, several, or None."""
    inputs: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    return [table for table in inputs if table is not None]
