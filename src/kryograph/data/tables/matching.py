"""Ids: the nodes that the rows of a table name, and why some of them are not among the nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.faults import Faults
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.overlap import ENOUGH
from kryograph.data.tables.sheet import Sheet, whole_keys, without_zeros
from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.text import plural, quoted

PADDING, SPACE = r"^0+(.)", r"\s+"
_NEAR = (
    ("zeros", PADDING, False),
    ("upper and lower case", "", True),
    ("white space", SPACE, False),
    ("upper and lower case and white space", SPACE, True),
)
"""Spellings of ids that are compared: what differs, a pattern to remove, and whether case counts as
equal."""


@dataclass(frozen=True, eq=False)
class NodeIds:
    """Ids of the nodes, from the node table or, without one, from the edges."""

    ids: Any
    """Arrow array of text, all different."""
    sheet: Sheet
    """Attributes of the nodes, a row for each."""
    title: str
    """Place of the ids in messages: a file, or "the edges"."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the ids as text, in order."""
        return tuple(self.ids.to_pylist())


def spelled_ids(cells: Any, options: TableOptions) -> Any:
    """Spell ids as they are compared: without leading zeros if --id-pad strip is set."""
    if options.choice("id_pad") == "exact":
        return cells
    return pc.replace_substring_regex(cells, PADDING, r"\1")


def read_ids(
    sheet: Sheet, id: str, options: TableOptions, faults: Faults, notes: list[str]
) -> NodeIds:
    """Read the ids of a node table; empty and repeated ones are faults."""
    keys = sheet.keys(id).combine_chunks()
    empty = np.flatnonzero(np.asarray(pc.equal(keys, "")))
    if empty.size:
        row = int(empty[0])
        what = "the id is empty" + _missing_word(sheet, id, row)
        faults.add(sheet.title, sheet.fault(row, id, what, empty.size - 1))
    ids = spelled_ids(keys, options)
    filled = len(ids) - empty.size
    if pc.count_distinct(ids).as_py() - bool(empty.size) != filled:
        _add_repeated(sheet, id, keys, ids, faults)
    folded = _folded(ids, SPACE, True)
    alike = pc.count_distinct(ids).as_py() - pc.count_distinct(folded).as_py()
    if alike:
        notes.append(
            f"{plural(alike, 'id')} of {sheet.path} differ from another one in upper and lower "
            f"case or white space only, such as {_alike(ids, folded)}; they are different nodes."
        )
    return NodeIds(ids, sheet, str(sheet.path))


def _add_repeated(sheet: Sheet, id: str, keys: Any, ids: Any, faults: Faults) -> None:
    first: dict[str, int] = {}
    bad = []
    for row, name in enumerate(ids.to_pylist()):
        if name and first.setdefault(name, row) != row:
            bad.append(row)
    row = bad[0]
    before = first[ids[row].as_py()]
    place = sheet.place(before)
    name = keys[row].as_py()
    what = f"the node id {quoted(name)} occurs twice, first on {place}; keep one row of each node"
    if re.fullmatch(r"[+-]?\d+\.\d+[eE]\+?\d+", name):
        what = (
            f"the node id {quoted(name)} occurs twice, first on {place}; it looks like a number "
            "that a spreadsheet rounded: export the column as text"
        )
    if keys[row].as_py() != keys[before].as_py():
        what = (
            f"--id-pad strip makes one id of {quoted(keys[before].as_py())}, on {place}, and "
            f"{quoted(keys[row].as_py())}"
        )
    faults.add(sheet.title, sheet.fault(row, id, what, len(bad) - 1))


def nodes_of_edges(
    sheet: Sheet, ends: tuple[Any, Any], options: TableOptions
) -> tuple[NodeIds, Indices]:
    """List the nodes in the order in which the edges name them; also returns the edges, 2 × E."""
    both = pa.chunked_array([chunk for cells in ends for chunk in cells.chunks], pa.string())
    by_edge = np.arange(len(both)).reshape(2, -1).T.ravel()
    keys = spelled_ids(whole_keys(both), options)
    encoded = keys.combine_chunks().take(pa.array(by_edge)).dictionary_encode()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    names = encoded.dictionary
    nodes = Sheet(sheet.path, {}, len(names), lambda row: f"node {quoted(names[row].as_py())}")
    return NodeIds(names, nodes, "the edges"), codes.reshape(-1, 2).T


def node_numbers(cells: Any, nodes: NodeIds, options: TableOptions) -> Indices:
    """Look up the node numbers of ids; -1 for one that is no node."""
    cells = spelled_ids(cells, options)
    rows = pc.index_in(cells, value_set=nodes.ids)
    if rows.null_count:  # 7.0 is 7, unless there is a node of that name
        rows = pc.coalesce(rows, pc.index_in(without_zeros(cells), value_set=nodes.ids))
    return np.asarray(rows.fill_null(-1).to_numpy(), dtype=np.int64)


def absent_nodes(
    sheet: Sheet, columns: tuple[str, ...], cells: tuple[Any, ...], numbers: Indices, nodes: NodeIds
) -> UsageError:
    """Build the error for rows that name nodes that there are not; near misses are named first.

    `numbers` are the node numbers of the cells, a row for each column, -1 where there is none.
    """
    bad = np.flatnonzero((numbers < 0).any(axis=0))
    row = int(bad[0])
    at = int((numbers[:, row] < 0).argmax())
    noun = "edge" if len(columns) == 2 else "row"
    missing = pc.unique(
        pa.concat_arrays(
            [
                cells[end].combine_chunks().filter(pa.array(numbers[end] < 0))
                for end in range(len(columns))
            ]
        )
    )
    if bad.size == sheet.rows:
        does = "misses its nodes" if sheet.rows == 1 else "miss their nodes"
        start = f"All {plural(bad.size, noun)} of {sheet.path} {does} in {nodes.title}."
        if sheet.rows == 1:
            start = f"The only {noun} of {sheet.path} {does} in {nodes.title}."
        place = f"{sheet.place(row).capitalize()}, column {quoted(columns[at])},"
        start += f" {place} names {quoted(cells[at][row].as_py())}."
    else:
        more = f" ({plural(bad.size - 1, f'more {noun}')} like this)" if bad.size > 1 else ""
        what = f"there is no node {quoted(cells[at][row].as_py())} in {nodes.title}"
        start = f"{str(sheet.fault(row, columns[at], what)).removesuffix('.')}{more}."
    return UsageError(f"{start} {_near_miss(missing, sheet, nodes) or _advice(noun)}")


def _advice(noun: str) -> str:
    return (
        "Add --absent-nodes add to read them as nodes without attributes, or --absent-nodes drop "
        f"to leave the {noun}s out."
    )


def _near_miss(missing: Any, sheet: Sheet, nodes: NodeIds) -> str:
    """Say in what the missing ids differ from those of nodes; "" if there is nothing near."""
    for difference, pattern, case in _NEAR:
        ours, theirs = _folded(missing, pattern, case), _folded(nodes.ids, pattern, case)
        at = pc.index_in(ours, value_set=theirs)
        if len(missing) - at.null_count < ENOUGH * len(missing):
            continue
        row = pc.index(pc.is_valid(at), True).as_py()
        here, node = quoted(missing[row].as_py()), quoted(nodes.ids[at[row].as_py()].as_py())
        files = nodes.title, str(sheet.path)
        if difference == "zeros":
            padded, bare = (node, here) if len(node) > len(here) else (here, node)
            first, second = files if padded == node else files[::-1]
            return (
                f"Ids in {first} are padded with zeros ({padded}), in {second} not ({bare}): add "
                "--id-pad strip."
            )
        return (
            f"Ids in {files[0]} and {files[1]} differ in {difference} ({node} and {here}): write "
            "them alike."
        )
    return ""


def _folded(cells: Any, pattern: str, case: bool) -> Any:
    if case:
        cells = pc.utf8_lower(cells)
    if not pattern:
        return cells
    return pc.replace_substring_regex(cells, pattern, r"\1" if "(" in pattern else "")


def _alike(ids: Any, folded: Any) -> str:
    first: dict[str, str] = {}
    for name, plain in zip(ids.to_pylist(), folded.to_pylist(), strict=True):
        if first.setdefault(plain, name) != name:
            return f"{quoted(first[plain])} and {quoted(name)}"
    return ""


def _missing_word(sheet: Sheet, name: str, row: int) -> str:
    """Explain an empty id whose cell holds a word that counts as empty."""
    column = sheet.columns[name]
    cell = str(column[row].as_py() or "").strip() if hasattr(column, "chunks") else ""
    words = ",".join(word for word in sheet.missing if word != cell)
    return f": {quoted(cell)} counts as empty, unless you say --missing {words!r}" if cell else ""
