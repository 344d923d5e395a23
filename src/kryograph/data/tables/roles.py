"""Roles of columns, recognised by their names and contents, and headers.

The first row is a header if it cannot be data: it has a well-known name (source, target, id …) or
the name of a column that the user names, or words above columns of numbers, or ids that no other
table has.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.text import plural

SOURCE = (
    *("source", "src", "from", "sourceid", "fromid", "sourcenode", "fromnode", "fromnodeid"),
    *("start", "u", "node1", "id1", "nodea", "citing", "subject", "tail"),
)
TARGET = (
    *("target", "tgt", "dst", "dest", "destination", "to", "targetid", "toid", "targetnode"),
    *("tonode", "tonodeid", "end", "v", "node2", "id2", "nodeb", "cited", "object", "head"),
)
WEIGHT = ("weight", "weights", "edgeweight", "w", "strength")
ID = ("id", "nodeid", "node", "nodes", "key", "index", "nodename", "name", "vertex", "paperid")
LABEL = ("label", "labels", "class", "y", "target")
NODE_NAMES = (*ID, "label", "class", "title", "text")

HEADER_SAMPLE_ROWS = 100
"""Number of rows that decide whether a column holds numbers."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class EdgeColumns(NamedTuple):
    """Names of the columns of an edge table: its source and target, and its weight."""

    ends: tuple[str, str]
    weight: str | None


def plain(name: str) -> str:
    """Reduce the name of a column to lower-case letters and digits, for comparison.

    >>> plain("Node_ID")
    'nodeid'
    """
    return re.sub("[^a-z0-9]", "", name.lower())


def by_name(names: Sequence[str], known: Collection[str]) -> str | None:
    """Find the column with a name in `known`, the first in `known` if there are several."""
    spelled = {plain(name): name for name in reversed(names)}
    return next((spelled[name] for name in known if name in spelled), None)


def names_both_ends(names: Sequence[str]) -> bool:
    """Whether two of the names are well-known ones for the source and the target of an edge."""
    return None not in (by_name(names, SOURCE), by_name(names, TARGET))


def edges_have_header(lines: CsvTable, ids: Collection[str] | None) -> bool:
    """Whether an edge table has a header; `ids` are the cells of its first row that are nodes."""
    first = lines.first
    named = names_both_ends(first)
    if len(first) < 2 or lines.rows == 1:
        return named
    if named:
        return ids is None or not (first[0] in ids and first[1] in ids)
    if ids is not None and (first[0] in ids or first[1] in ids):
        return False
    if _words_above_numbers(lines, range(min(3, len(first)))):
        return True
    return ids is not None and not (_is_number(first[0]) and _is_number(first[1]))


def nodes_have_header(lines: CsvTable, named: Collection[str], edges: CsvTable | None) -> bool:
    """Whether a node table has a header; `named` are the columns that the user names."""
    first = lines.first
    if not all(_is_number(name) for name in named) or by_name(first, NODE_NAMES) is not None:
        return True  # without a header the columns' names are numbers
    if lines.rows == 1 or len(set(first)) < len(first):
        return False
    counted = [str(at) for at in range(len(first))]
    if len(first) > 2 and list(first[1:]) in (counted[:-1], counted[1:]) and not first[0].isdigit():
        return True  # pandas writes a data frame without names like this
    if _words_above_numbers(lines, range(len(first))):
        return True
    if any(_is_number(cell) for cell in first):
        return False
    return edges is None or not _names_nodes(lines, edges)


def _names_nodes(lines: CsvTable, edges: CsvTable) -> bool:
    """Whether the edges name a cell of the first row of a node table, so that this row is data."""
    cells = pa.array([cell for cell in lines.first if cell], type=pa.string())
    below = (ends.slice(1) for ends in end_columns(edges))
    if any(pc.any(pc.is_in(ends, value_set=cells)).as_py() for ends in below):
        return True
    # The first row of the edges may be a header; it counts if both its ends are nodes.
    ends = pa.array(edges.first[:2], type=pa.string())
    return any(pc.all(pc.is_in(ends, value_set=column)).as_py() for column in lines.columns)


def end_columns(lines: CsvTable) -> list[Any]:
    """Columns of an edge table that seem to hold the ends, with the first row."""
    columns = dict(zip(reversed(lines.first), reversed(lines.columns), strict=True))
    named = [by_name(lines.first, SOURCE), by_name(lines.first, TARGET)]
    return lines.columns[:2] if None in named else [columns[name] for name in named if name]


def edge_columns(sheet: Sheet, ignore: Collection[str]) -> EdgeColumns:
    """Find source, target and weight by their names; otherwise they are the first columns.

    A third column with a name of its own, such as "year", is not a weight.
    """
    names = [name for name in sheet.names if name not in ignore]
    if len(names) > 2 and is_row_number(sheet, names[0]):
        names = names[1:]
    if len(names) < 2:
        raise UsageError(
            f"{sheet.path} has {plural(len(names), 'column')}; edges need two, source and target "
            "(separated by comma, tab or semicolon)."
        )
    source, target = by_name(names, SOURCE), by_name(names, TARGET)
    if source is None or target is None:
        source, target = names[:2]
    weight = by_name(names, WEIGHT)
    if weight in (source, target):
        weight = None
    others = [name for name in names if name not in (source, target)]
    if weight is None and others and others[0].isdigit():
        third = sheet.numbers(others[0])
        if third is not None and third.missing.size < sheet.rows:
            weight = others[0]
    return EdgeColumns((source, target), weight)


def id_column(sheet: Sheet, taken: Collection[str], ends: Any | None) -> str:
    """Find the column of ids: one with a well-known name, or the first with unique values.

    If there are edges, it must also hold the ends of the first ones (`ends`, an Arrow array).
    """
    names = [name for name in sheet.names if name not in taken]
    if not names:
        raise UsageError(f"{sheet.path} has no column left for the ids of the nodes.")
    spelled = {plain(name): name for name in reversed(names)}
    named = [spelled[name] for name in ID if name in spelled]

    def fits(name: str) -> bool:
        if ends is None:
            return True
        return bool(pc.all(pc.is_in(ends, value_set=sheet.keys(name).combine_chunks())).as_py())

    fitting = itertools.chain(
        (name for name in named if fits(name)),
        (name for name in names[:50] if fits(name) and _unique(sheet, name)),
    )
    return next(fitting, named[0] if named else names[0])


def spare_ids(sheet: Sheet, taken: Collection[str | None]) -> list[str]:
    """Columns that only name or number the nodes again, and therefore are not features."""
    return [
        name
        for name in sheet.names
        if name not in taken
        and (is_row_number(sheet, name) or (sheet.rows > 1 and plain(name) in ID))
        and _unique(sheet, name)
    ]


def _unique(sheet: Sheet, name: str) -> bool:
    return len(pc.unique(sheet.keys(name))) == sheet.rows


def is_row_number(sheet: Sheet, name: str) -> bool:
    """Whether a nameless column only counts the rows."""
    if not re.fullmatch(r"column \d+", name):
        return False
    cells = sheet.text(name)
    start = cells[0].as_py()
    return start in ("0", "1") and cells.to_pylist() == [
        str(at) for at in range(int(start), int(start) + sheet.rows)
    ]


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _words_above_numbers(lines: CsvTable, columns: range) -> bool:
    """Whether most columns of numbers have a first cell that is not a number."""
    votes = 0
    for at in columns:
        below = lines.columns[at].slice(1, HEADER_SAMPLE_ROWS).to_pylist()
        filled = [cell.strip() for cell in below if cell.strip()]
        if lines.first[at] and filled and all(_is_number(cell) for cell in filled):
            votes += -1 if _is_number(lines.first[at]) else 1
    return votes > 0
