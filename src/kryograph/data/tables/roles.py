"""Names of columns that say what they hold, and headers of tables of text.

The first row is a header if it cannot be data: it has a well-known name (source, target, id …) or
the name of a column that the user names, or words above columns of numbers, or ids that no other
table has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.sheet import Sheet

SOURCE = (
    *("source", "src", "from", "sourceid", "fromid", "sourcenode", "fromnode", "fromnodeid"),
    *("start", "u", "node1", "id1", "nodea", "citing", "subject", "tail"),
    *("payer", "sender", "follower", "caller"),
)
TARGET = (
    *("target", "tgt", "dst", "dest", "destination", "to", "targetid", "toid", "targetnode"),
    *("tonode", "tonodeid", "end", "v", "node2", "id2", "nodeb", "cited", "object", "head"),
    *("payee", "receiver", "recipient", "followee", "followed", "callee"),
)
WEIGHT = ("weight", "weights", "edgeweight", "w", "strength")
ID = ("id", "nodeid", "node", "nodes", "key", "index", "nodename", "name", "vertex", "paperid")
LABEL = ("label", "labels", "class", "y", "target")
NODE_NAMES = (*ID, "label", "class", "title", "text")

END_WORDS = (
    *(("from", "to"), ("source", "target"), ("src", "dst"), ("source", "destination")),
    *(("src", "dest"), ("src", "tgt"), ("src", "target"), ("payer", "payee")),
    *(("sender", "receiver"), ("sender", "recipient"), ("buyer", "seller")),
    *(("follower", "followee"), ("follower", "followed"), ("citing", "cited")),
    *(("parent", "child"), ("caller", "callee"), ("start", "end"), ("origin", "destination")),
    *(("left", "right"), ("1", "2"), ("a", "b")),
)
"""Words in the names of a source and of its target, such as "src_id" and "dst_id"."""

HEADER_SAMPLE_ROWS = 100
"""Number of rows that decide whether a column holds numbers."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


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


def words_of(name: str) -> tuple[str, ...]:
    """Split the name of a column into lower-case words.

    >>> words_of("fromAccount_ID")
    ('from', 'account', 'id')
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return tuple(re.findall(r"[a-z]+|[0-9]+", spaced.lower()))


def ends_by_name(names: Sequence[str]) -> tuple[str, str] | None:
    """Find the two ends of an edge by well-known names, alone or as a part of both names.

    >>> ends_by_name(["tx_id", "to_account", "from_account"])
    ('from_account', 'to_account')
    """
    source, target = by_name(names, SOURCE), by_name(names, TARGET)
    if source is not None and target is not None:
        return source, target
    words = {name: words_of(name) for name in names}
    for first, second in END_WORDS:
        for name in names:
            if first not in words[name] or len(words[name]) == 1:
                continue
            at = words[name].index(first)
            partner = (*words[name][:at], second, *words[name][at + 1 :])
            for other in names:
                if words[other] == partner:
                    return name, other
    return None


def is_id_name(name: str) -> bool:
    """Whether the name of a column says that it holds ids, such as "key" or "user_id"."""
    return plain(name) in ID or words_of(name)[-1:] in (("id",), ("key",), ("uuid",))


def edges_have_header(lines: CsvTable, named: Collection[str], ids: Collection[str] | None) -> bool:
    """Whether an edge table has a header.

    `named` are the columns that the user names, `ids` the cells of its first row that are nodes.
    """
    first = lines.first
    if any(name in first and not _is_number(name) for name in named):
        return True
    both = ends_by_name(first)
    if len(first) < 2 or lines.rows == 1:
        return both is not None
    if both is not None:
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
    ends = ends_by_name(lines.first)
    return lines.columns[:2] if ends is None else [columns[name] for name in ends]


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
