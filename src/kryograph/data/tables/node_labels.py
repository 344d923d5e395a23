"""NodeLabels: the labels of the nodes of a graph, wherever the tables have them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.labels import (
    Labels,
    label_columns,
    last_labels,
    read_labels,
)
from kryograph.data.tables.matching import absent_nodes, node_numbers
from kryograph.data.tables.opening import Session, Table
from kryograph.data.tables.parts import GraphParts, with_nodes
from kryograph.data.tables.plan import NOT_USED, PlanLine
from kryograph.data.tables.roles import LABEL, by_name, nodes_have_header
from kryograph.data.tables.sheet import RawGraph, Sheet, text_column
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.text import plural, quoted


@dataclass
class NodeLabels:
    """Labels of the nodes, and where they were read."""

    labels: Labels
    source: str
    """Place of the labels, such as "column 'topic' of nodes.csv"."""
    column: str | None = None
    """Column of the labels; None if there is none."""
    sheet: Sheet | None = None
    """Table with that column, a row for each node."""
    lines: list[PlanLine] = field(default_factory=list)
    """Plan of a table of labels."""


def find_labels(parts: GraphParts, table: Table | RawGraph | None, session: Session) -> NodeLabels:
    """Read the labels from their own table if there is one, else from the node table.

    With a table of labels, nodes may be added to the parts.
    """
    result = NodeLabels(Labels(np.empty(0, np.int64), ()), str(parts.nodes.sheet.path))
    if table is not None:
        with session.faults.collected(str(getattr(table, "path", "labels"))):
            _read_table(_named(table, session), parts, session, result)
    else:
        sheet = parts.nodes.sheet
        name = _label_column(parts, session)
        if name is not None and name in sheet.columns:
            if parts.whole is not None:
                _hide_labels(sheet, name, parts.whole, session)
            result.column, result.sheet = name, sheet
            result.source = f"column {quoted(name)} of {sheet.path}"
    if result.column is not None and result.sheet is not None:
        # A model does not need the labels of its tables, so that their faults do not matter.
        unneeded = session.recipe is not None and session.named.label is None and table is None
        group = str(result.sheet.path)
        with suppress(UsageError) if unneeded else session.faults.collected(group):
            result.labels = read_labels(result.sheet, result.column, session.options)
            if session.recipe is None and not session.as_dataset:
                session.notes += result.labels.notes
    if result.labels.numbers.size != parts.nodes.sheet.rows:
        numbers = np.full(parts.nodes.sheet.rows, UNKNOWN)
        result.labels = Labels(numbers, result.labels.classes)
    result.lines = [
        PlanLine(line.table, line.column, line.use, result.labels.counts)
        if line.use == "label"
        else line
        for line in result.lines
    ]
    return result


def _named(table: Table | RawGraph, session: Session) -> Sheet:
    """Name the columns of a table of labels."""
    assert not isinstance(table, RawGraph), "a graph is refused when it is opened"
    if isinstance(table, CsvTable):
        names = {name for name in (session.options.id, session.options.label) if name}
        table = table.sheet(nodes_have_header(table, names, None))
        table.missing = session.options.missing_words
    return table


def _read_table(sheet: Sheet, parts: GraphParts, session: Session, result: NodeLabels) -> None:
    """Match a table of labels with the nodes."""
    columns = label_columns(sheet, session.options, parts.id, parts.nodes.ids)
    cells = sheet.keys(columns.id)
    rows = node_numbers(cells, parts.nodes, session.options)
    bad = np.flatnonzero(rows < 0)
    rule = session.options.choice("absent_nodes")
    if bad.size and rule == "error":
        fault = absent_nodes(sheet, (columns.id,), (cells,), rows[None], parts.nodes)
        session.faults.add(str(sheet.path), fault)
    elif bad.size and rule == "drop":
        session.notes.append(
            f"{plural(bad.size, 'row')} of {sheet.path} left out: {parts.nodes.title} has no such "
            "node."
        )
    elif bad.size:
        new = list(dict.fromkeys(cells.take(bad).to_pylist()))
        parts.nodes = with_nodes(parts.nodes, new)
        rows = node_numbers(cells, parts.nodes, session.options)
    table, notes = last_labels(sheet, columns, rows, parts.nodes.sheet)
    session.notes += notes
    result.column, result.sheet = columns.label, table
    result.source = f"column {quoted(columns.label)} of {sheet.path}"
    uses = {columns.id: "id", columns.label: "label"}
    result.lines = [
        PlanLine(sheet.title, name, uses[name])
        if name in uses
        else PlanLine(sheet.title, name, NOT_USED, "only ids and labels are read here")
        for name in sheet.names
    ]


def _label_column(parts: GraphParts, session: Session) -> str | None:
    """Column of the node table that holds the labels; one that the caller names must be there."""
    sheet, named = parts.nodes.sheet, session.named.label
    if named is not None:
        if parts.whole is None and parts.id is None:
            fault = UsageError(
                f"The column {quoted(named)} of labels must be in a table of nodes or of labels, "
                "and there is none: pass --nodes or --labels."
            )
            session.faults.add(str(sheet.path), fault)
            return None
        with session.faults.collected(str(sheet.path)):
            return sheet.require(named, " of labels")
        return None
    if parts.whole is not None and parts.whole.label is not None:
        return parts.whole.label
    if session.as_dataset:
        return by_name([name for name in sheet.names if name != parts.id], LABEL)
    return None if session.recipe is None else session.recipe.label


def _hide_labels(sheet: Sheet, name: str, graph: RawGraph, session: Session) -> None:
    """Empty the label cells of nodes that the file does not give for training."""
    if graph.known is None or session.as_dataset or name != graph.label:
        return
    cells = sheet.text(name).to_pylist()
    known = zip(cells, graph.known.tolist(), strict=True)
    sheet.columns[name] = text_column([cell if use else "" for cell, use in known])
    session.notes.append(
        f"The labels of {sheet.path} are those of its training nodes; labels of its other nodes "
        "were not read."
    )


def same_cells(first: Sheet, name: str, labels: NodeLabels) -> bool:
    """Whether a column equals the labels on all nodes whose label is known."""
    if labels.sheet is None or labels.column is None:
        return False
    ours = first.keys(name).combine_chunks()
    theirs = labels.sheet.keys(labels.column).combine_chunks()
    known = pc.not_equal(theirs, "")
    return bool(pc.all(pc.equal(ours, theirs).filter(known)).as_py())
