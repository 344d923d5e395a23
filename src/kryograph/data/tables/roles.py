"""Which column is what, and whether the first row is a header: what a person would see at once.

A header is a first row that cannot be data: it has a well-known name in it (source, target, id …),
or the name of a column that was asked for, or words above columns of numbers, or ids that no other
table knows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.text import plural, quoted

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
NODE_NAMES = (*ID, "label", "class", "title", "text")

HEADER_SAMPLE_ROWS = 100
"""How many rows are looked at to say what a column is like."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class EdgeColumns:
    """The names of the columns of an edge table."""

    source: str
    target: str
    weight: str | None


def plain(name: str) -> str:
    """A column's name as it is compared: small letters and digits only.

    >>> plain("Node_ID")
    'nodeid'
    """
    return re.sub("[^a-z0-9]", "", name.lower())


def by_name(names: Sequence[str], known: Collection[str]) -> str | None:
    """The column whose name is well known; the best known if several are."""
    spelled = {plain(name): name for name in reversed(names)}
    return next((spelled[name] for name in known if name in spelled), None)


def edges_have_header(lines: CsvTable, ids: Collection[str] | None) -> bool:
    """Whether an edge table has a header, given the ids of the node table, if there is one."""
    first = lines.first
    named = by_name(first, SOURCE) is not None and by_name(first, TARGET) is not None
    if len(first) < 2 or lines.rows == 1:
        return named
    if named:
        return ids is None or not (first[0] in ids and first[1] in ids)
    if ids is not None and (first[0] in ids or first[1] in ids):
        return False
    if _words_above_numbers(lines, range(min(3, len(first)))):
        return True
    return ids is not None and not (_is_number(first[0]) and _is_number(first[1]))


def nodes_have_header(lines: CsvTable, asked: Collection[str], edges: CsvTable | None) -> bool:
    """Whether a node table has a header, given the columns that somebody named, and the edges."""
    first = lines.first
    if not all(_is_number(name) for name in asked) or by_name(first, NODE_NAMES) is not None:
        return True  # without a header the columns' names are numbers
    if lines.rows == 1 or len(set(first)) < len(first):
        return False
    counted = [str(at) for at in range(len(first))]
    if len(first) > 2 and list(first[1:]) in (counted[:-1], counted[1:]) and not first[0].isdigit():
        return True  # as a data frame without names is written
    if _words_above_numbers(lines, range(len(first))):
        return True
    if any(_is_number(cell) for cell in first):
        return False
    return edges is None or not _names_nodes(lines, edges)


def _names_nodes(lines: CsvTable, edges: CsvTable) -> bool:
    """Whether edges mention the first row of a node table, so that it is data."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pa.array([cell for cell in lines.first if cell], type=pa.string())
    for ends in end_columns(edges):
        if pc.any(pc.is_in(ends.slice(1), value_set=cells)).as_py():
            return True
    # Or the first edge does, whose other end is then a node too: it is no header itself.
    ends = pa.array(edges.first[:2], type=pa.string())
    return any(pc.all(pc.is_in(ends, value_set=column)).as_py() for column in lines.columns)


def end_columns(lines: CsvTable) -> list[Any]:
    """The columns of an edge table that seem to hold the ends, the first row included."""
    names = lines.first
    found = [by_name(names, SOURCE), by_name(names, TARGET)]
    at = [0, 1] if None in found else [names.index(name) for name in found if name is not None]
    return [lines.columns[column] for column in at if column < len(lines.columns)]


def edge_columns(sheet: Sheet, ignore: Collection[str]) -> EdgeColumns:
    """Source, target and weight: by well-known names, else the first columns.

    A third column that has a name of its own, such as a year, is no weight.
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
    return EdgeColumns(source, target, weight)


def id_column(sheet: Sheet, taken: Collection[str], ends: Any | None) -> str:
    """The column of ids: with a well-known name, or the first whose values are unique.

    If there are edges it must also hold the first ones' ends (`ends`, a short Arrow array).
    """
    import pyarrow.compute as pc

    names = [name for name in sheet.names if name not in taken]
    if not names:
        raise UsageError(f"{sheet.path} has no column left for the ids of the nodes.")
    spelled = {plain(name): name for name in reversed(names)}
    named = [spelled[name] for name in ID if name in spelled]

    def fits(name: str) -> bool:
        if ends is None:
            return True
        keys = sheet.keys(name)
        return bool(pc.all(pc.is_in(ends, value_set=keys.combine_chunks())).as_py())

    for name in named:
        if fits(name):
            return name
    if named and ends is None:
        return named[0]
    for name in names[:50]:
        if fits(name) and _unique(sheet, name):
            return name
    return named[0] if named else names[0]


def spare_ids(sheet: Sheet, taken: Collection[str | None]) -> list[str]:
    """Columns that name or number the nodes once more; features they are not."""
    return [
        name
        for name in sheet.names
        if name not in taken
        and (is_row_number(sheet, name) or (sheet.rows > 1 and plain(name) in ID))
        and _unique(sheet, name)
    ]


def _unique(sheet: Sheet, name: str) -> bool:
    import pyarrow.compute as pc

    return len(pc.unique(sheet.keys(name))) == sheet.rows


def is_row_number(sheet: Sheet, name: str) -> bool:
    """Whether a nameless column does nothing but count the rows."""
    if not re.fullmatch(r"column \d+", name):
        return False
    cells = sheet.text(name)
    start = cells[0].as_py()
    if start not in ("0", "1"):
        return False
    counted = range(int(start), int(start) + sheet.rows)
    return all(cell == str(at) for cell, at in zip(cells.to_pylist(), counted, strict=True))


def header_note(lines: CsvTable) -> str:
    """That an unusual first row was taken for the names of the columns."""
    shown = ", ".join(quoted(cell) for cell in lines.first[:3])
    return f"The first row of {lines.path} ({shown}) was taken as its header."


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _words_above_numbers(lines: CsvTable, columns: range) -> bool:
    """Whether columns of numbers start with something else, more of them than do not."""
    votes = 0
    for at in columns:
        below = [
            cell.strip() for cell in lines.columns[at].slice(1, HEADER_SAMPLE_ROWS).to_pylist()
        ]
        given = [cell for cell in below if cell]
        if lines.first[at] and given and all(_is_number(cell) for cell in given):
            votes += -1 if _is_number(lines.first[at]) else 1
    return votes > 0
