"""Tables of edges: their columns, their ends and weights, and several tables as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.faults import Faults
from kryograph.data.tables.matching import NodeIds, absent_nodes, node_numbers
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.overlap import EdgeColumns, edge_columns
from kryograph.data.tables.roles import edges_have_header, ends_by_name
from kryograph.data.tables.sheet import LARGEST_WHOLE, Floats, Sheet, text_column
from kryograph.graph import Indices
from kryograph.text import plural, quoted

TABLE_COLUMN = "table"
"""Column that is added to the edges of several tables; it names the table."""


@dataclass(eq=False)
class EdgeTable:
    """A table of edges whose columns are known."""

    sheet: Sheet
    columns: EdgeColumns
    ends: tuple[Any, Any]
    """Ids of sources and targets, Arrow arrays of text."""
    weights: Floats | None
    """E numbers; None if the table has none."""


def edge_sheet(
    table: CsvTable | Sheet, ids: Any | None, options: TableOptions, notes: list[str]
) -> Sheet:
    """Find out whether a table of text has a header, and name its columns."""
    if isinstance(table, Sheet):
        return table
    known = None
    if ids is not None:
        cells = pa.array(table.first[:2], type=pa.string())
        known = set(cells.filter(pc.is_in(cells, value_set=ids)).to_pylist())
    roles = {options.source, options.target, options.weight, options.edge_type}
    named = {name for name in roles if name is not None}
    header = edges_have_header(table, named, known)
    if header and ends_by_name(table.first) is None and not named & set(table.first):
        first = ", ".join(quoted(cell) for cell in table.first[:3])
        notes.append(f"The first row of {table.path} ({first}) was taken as its header.")
    return table.sheet(header)


def read_ends(
    sheet: Sheet, options: TableOptions, ids: Any | None, faults: Faults
) -> EdgeTable | None:
    """Read the ends and weights of a table of edges; None if it has no ends, which is a fault."""
    with faults.collected(sheet.title):
        columns = edge_columns(sheet, options, ids)
        ends = sheet.text(columns.ends[0]), sheet.text(columns.ends[1])
        for name, cells in zip(columns.ends, ends, strict=True):
            empty = np.flatnonzero(np.asarray(pc.equal(cells, "")))
            if empty.size:
                what = "the id of a node is empty"
                fault = sheet.fault(int(empty[0]), name, what, empty.size - 1)
                faults.add(sheet.title, fault)
        weights = None
        with faults.collected(sheet.title):
            weights = _weights(sheet, columns.weight, options)
        return EdgeTable(sheet, columns, ends, weights)
    return None


def _weights(sheet: Sheet, name: str | None, options: TableOptions) -> Floats | None:
    """Read a column of weights; an empty or negative one is an error."""
    if name is None:
        return None
    column = sheet.numbers(name, required=True)
    assert column is not None
    if column.missing.size:
        what = "the weight is empty; --weight none leaves the weights out"
        raise sheet.fault(int(column.missing[0]), name, what, column.missing.size - 1)
    weights = column.dense()
    check_weights(weights, options, lambda row, what, more: sheet.fault(row, name, what, more))
    return weights


def check_weights(weights: Floats, options: TableOptions, fault: Any) -> None:
    """Raise an error if a weight is negative or tiny, or if it is 0 and that is not allowed.

    `fault(row, what, more)` builds the error.
    """
    bad = np.flatnonzero((weights < 1 / LARGEST_WHOLE) & (weights != 0))
    if bad.size:
        what = (
            f"the weight {weights[bad[0]]:g} is not positive; if the column is something else, "
            "say --weight none"
        )
        raise fault(int(bad[0]), what, bad.size - 1)
    zero = np.flatnonzero(weights == 0)
    if zero.size and options.choice("zero_weight") == "error":
        what = "the weight is 0; --zero-weight drop leaves such edges out"
        raise fault(int(zero[0]), what, zero.size - 1)


def drop_zero_weights(weights: Floats | None, pairs: Indices, notes: list[str]) -> None:
    """Mark the edges of weight 0 by the node numbers -1."""
    if weights is None:
        return
    zero = weights == 0
    if zero.any():
        pairs[:, zero] = -1
        count = plural(int(zero.sum()), "edge")
        notes.append(f"{count} of weight 0 left out; --zero-weight error refuses them.")


def match_edges(
    table: EdgeTable, nodes: NodeIds, options: TableOptions, faults: Faults, notes: list[str]
) -> tuple[Indices, list[str]]:
    """Look up the ends of the edges: 2 × E node numbers, -1 for edges that are left out.

    An end that is no node is a fault, unless such edges are dropped or such nodes added; those to
    add are returned, and have the numbers after those of `nodes`.
    """
    pairs = np.stack([node_numbers(cells, nodes, options) for cells in table.ends])
    bad = (pairs < 0).any(axis=0)
    if not bad.any():
        return pairs, []
    rule, count = options.choice("absent_nodes"), int(bad.sum())
    if rule == "error":
        # Empty ends are a fault of their own.
        filled = [np.asarray(pc.not_equal(cells, "")) for cells in table.ends]
        absent = np.where(filled, pairs, 0)
        if (absent < 0).any():
            fault = absent_nodes(table.sheet, table.columns.ends, table.ends, absent, nodes)
            faults.add(table.sheet.title, fault)
        return pairs, []
    if rule == "drop":
        pairs[:, bad] = -1
        notes.append(
            f"{plural(count, 'edge')} of {table.sheet.path} left out: {nodes.title} has no row for "
            "one of the nodes."
        )
        return pairs, []
    new: dict[str, int] = {}
    for column, row in np.argwhere(pairs.T < 0)[:, ::-1].tolist():
        name = table.ends[column][row].as_py()
        pairs[column, row] = new.setdefault(name, len(nodes.ids) + len(new))
    notes.append(
        f"{plural(len(new), 'node')} without a row in {nodes.title} added, without attributes."
    )
    return pairs, list(new)


def joined_tables(tables: Sequence[EdgeTable]) -> tuple[Sheet, Floats | None]:
    """Join several tables: their columns side by side by name, and the weights of all edges.

    The column `TABLE_COLUMN` names the table of each edge.
    """
    if len(tables) == 1:
        return tables[0].sheet, tables[0].weights
    sheets = [table.sheet for table in tables]
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for sheet in sheets for name in sheet.names):
        columns[name] = _joined(sheets, name)
    if TABLE_COLUMN not in columns:
        titles = [sheet.title.partition(".")[0] for sheet in sheets for _ in range(sheet.rows)]
        columns[TABLE_COLUMN] = text_column(titles)
    starts = np.cumsum([0, *(sheet.rows for sheet in sheets)])

    def place(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        return f"{sheets[at].place(row - int(starts[at]))} of {sheets[at].title}"

    path = " and ".join(sheet.title for sheet in sheets)
    joined = Sheet(
        path,
        columns,
        int(starts[-1]),
        place,
        decimal_comma=all(sheet.decimal_comma for sheet in sheets),
        missing=sheets[0].missing,
    )
    weights = None
    if any(table.weights is not None for table in tables):
        parts = (np.ones(t.sheet.rows) if t.weights is None else t.weights for t in tables)
        weights = np.concatenate(list(parts))
    return joined, weights


def _joined(sheets: Sequence[Sheet], name: str) -> Any:
    """Join a column of several tables; as text unless it has one type in all that have it."""
    kinds = {sheet.arrow_type(name) for sheet in sheets if name in sheet.names}
    kind = kinds.pop() if len(kinds) == 1 else None
    parts: list[Any] = []
    for sheet in sheets:
        if name not in sheet.names:
            parts.append(pa.nulls(sheet.rows, kind or pa.string()))
        else:
            column = sheet.columns[name] if kind is not None else sheet.text(name)
            parts += column.chunks
    return pa.chunked_array(parts, kind or pa.string())
