"""A table of edges and a table of nodes, either of which may be missing, matched by their ids."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kryograph.data.tables.delimited import CsvTable, read_delimited
from kryograph.data.tables.feature_blocks import refuse_many_categories
from kryograph.data.tables.formats import Kind, kind_of, read_parquet
from kryograph.data.tables.networkx_files import is_edge_list, read_edge_list
from kryograph.data.tables.recipe import ReadProgress, Recipe
from kryograph.data.tables.roles import (
    SOURCE,
    TARGET,
    EdgeColumns,
    by_name,
    edge_columns,
    edges_have_header,
    end_columns,
    header_note,
    id_column,
    nodes_have_header,
    spare_ids,
)
from kryograph.data.tables.sheet import (
    LARGEST_WHOLE,
    Floats,
    RawGraph,
    Sheet,
    all_whole,
    whole_names,
)
from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.text import plural, quoted

ID_SAMPLE_ROWS = 1000
"""So many edges show which column of the node table has their ends."""


@dataclass(frozen=True)
class ColumnRequest:
    """The columns that somebody named, or that a model knows."""

    id: str | None
    id_known: str | None
    taken: frozenset[str]
    """Cannot be the ids."""
    ignore: frozenset[str]
    names: frozenset[str]
    required: tuple[tuple[str, str], ...]
    """Which the node table must have, each with what it is for."""
    learning: bool
    """Whether there is no model yet."""

    @classmethod
    def by(
        cls,
        id: str | None,
        label: str | None,
        text: Collection[str],
        ignore: Collection[str],
        columns: Recipe | None,
    ) -> ColumnRequest:
        """From the options of `read_tables`."""
        taken = {*text, *ignore} | ({label} if label is not None else set())
        known = None
        if columns is not None:
            taken |= {*columns.used, *({columns.label} if columns.label is not None else ())}
            known = columns.id
        names = taken | {name for name in (id, known) if name is not None}
        sets = frozenset(taken), frozenset(ignore), frozenset(names)
        labels = [(label, " of labels")] if label is not None else []
        required = (*labels, *((name, " of text") for name in text))
        return cls(id, known, *sets, required, learning=columns is None)

    def check(self, sheet: Sheet) -> None:
        """Raise an error if a column that must be there is not."""
        for name, what in self.required:
            sheet.require(name, what)


def read_two_tables(
    edges: Path | None, nodes: Path | None, asked: ColumnRequest, progress: ReadProgress
) -> RawGraph:
    """Read both tables and match them."""
    if nodes is None and asked.required:
        raise UsageError(
            f"The column {quoted(asked.required[0][0])}{asked.required[0][1]} must be in a table "
            "of "
            "nodes, and there is none."
        )
    notes: list[str] = []
    progress("edges", 0.0)
    edge_lines = None if edges is None else _read_table(edges, spaces=True)
    progress("edges", 0.5)
    progress("nodes", 0.0)
    sample = None if edge_lines is None else _first_ends(edge_lines, asked.ignore)
    sheet = None
    id = None
    ids: Any = None
    if nodes is not None:
        sheet = _node_sheet(_read_table(nodes, spaces=False), asked, edge_lines)
        asked.check(sheet)
        progress("nodes", 0.5)
        id = _id(sheet, asked, sample)
        if asked.learning:  # before anything is done that takes memory
            taken = asked.taken | {id}
            refuse_many_categories(sheet, taken.union(spare_ids(sheet, taken)))
        ids = sheet.keys(id).combine_chunks()
        _check_ids(sheet, id, ids)
    progress("nodes", 1.0)
    if edge_lines is None:
        assert sheet is not None
        notes.append("There are no edges: every node stands alone.")
        return RawGraph(
            tuple(ids.to_pylist()), np.empty((2, 0), np.int64), None, sheet, id, notes=tuple(notes)
        )
    edge_sheet = _edge_sheet(edge_lines, ids, notes)
    roles = edge_columns(edge_sheet, asked.ignore)
    if roles.weight is not None:
        notes.append(f"The weights of the edges are in column {quoted(roles.weight)}.")
    weights = _weights(edge_sheet, roles)
    ends = [edge_sheet.text(roles.source), edge_sheet.text(roles.target)]
    _check_ends(edge_sheet, roles, ends)
    if sheet is None:
        names, pairs = _by_appearance(ends)
        sheet = Sheet(edge_sheet.path, {}, len(names), lambda row: f"node {quoted(names[row])}")
    else:
        pairs = _matched(edge_sheet, roles, ends, ids, sheet)
        names = tuple(ids.to_pylist())
    progress("edges", 1.0)
    return RawGraph(
        names, pairs, weights, sheet, id, edge_names=edge_sheet.names, notes=tuple(notes)
    )


def _read_table(path: Path, *, spaces: bool) -> CsvTable | Sheet:
    kind = kind_of(path)
    if kind is Kind.PARQUET:
        return read_parquet(path)
    if spaces and is_edge_list(path):
        return read_edge_list(path)
    return read_delimited(path, spaces=spaces)


def _first_ends(table: CsvTable | Sheet, ignore: Collection[str]) -> Any:
    import pyarrow as pa

    if isinstance(table, Sheet):
        roles = edge_columns(table, ignore)
        cells = [table.keys(name).slice(0, ID_SAMPLE_ROWS) for name in (roles.source, roles.target)]
    else:
        first = min(1, table.rows - 1)  # perhaps a header
        some = {
            str(at): ends.slice(first, ID_SAMPLE_ROWS) for at, ends in enumerate(end_columns(table))
        }
        sheet = Sheet(table.path, some, min(ID_SAMPLE_ROWS, table.rows - first), str)
        cells = [sheet.keys(name) for name in some]
    return pa.chunked_array([chunk for column in cells for chunk in column.chunks], pa.string())


def _node_sheet(
    table: CsvTable | Sheet, asked: ColumnRequest, edges: CsvTable | Sheet | None
) -> Sheet:
    if isinstance(table, Sheet):
        return table
    lines = edges if isinstance(edges, CsvTable) else None
    return table.sheet(nodes_have_header(table, asked.names - asked.ignore, lines))


def _id(sheet: Sheet, asked: ColumnRequest, sample: Any) -> str:
    if asked.id is not None:
        return sheet.require(asked.id, " of ids")
    if asked.id_known is not None and asked.id_known in sheet.names:
        return asked.id_known
    return id_column(sheet, asked.taken, sample if sample is not None and len(sample) else None)


def _check_ids(sheet: Sheet, id: str, ids: Any) -> None:
    import pyarrow.compute as pc

    empty = pc.index(ids, "").as_py()
    if empty >= 0:
        raise sheet.fault(empty, id, "the id is empty")
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) == len(ids):
        return
    codes = np.asarray(encoded.indices)
    _, first = np.unique(codes, return_index=True)
    again = int(np.setdiff1d(np.arange(codes.size), first)[0])
    before = int(np.flatnonzero(codes == codes[again])[0])
    what = f"the node id {quoted(ids[again].as_py())} occurs twice, first on {sheet.place(before)}"
    raise sheet.fault(again, id, what)


def _edge_sheet(table: CsvTable | Sheet, ids: Any, notes: list[str]) -> Sheet:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(table, Sheet):
        return table
    known = None
    if ids is not None:
        cells = pa.array(table.first[:2], type=pa.string())
        known = set(cells.filter(pc.is_in(cells, value_set=ids)).to_pylist())
    header = edges_have_header(table, known)
    if header and None in (by_name(table.first, SOURCE), by_name(table.first, TARGET)):
        notes.append(header_note(table))
    return table.sheet(header)


def _weights(sheet: Sheet, roles: EdgeColumns) -> Floats | None:
    if roles.weight is None:
        return None
    found = sheet.numbers(roles.weight, required=True)
    assert found is not None
    if found.missing.size:
        raise sheet.fault(int(found.missing[0]), roles.weight, "the weight is empty")
    weights = np.zeros(found.n)
    weights[found.rows] = found.values
    bad = np.flatnonzero(weights < 1 / LARGEST_WHOLE)
    if bad.size:
        row = int(bad[0])
        what = (
            f"the weight {weights[row]:g} is not positive; if the column is something else, leave "
            f"it out with --ignore {roles.weight}"
        )
        raise sheet.fault(row, roles.weight, what)
    return weights


def _check_ends(sheet: Sheet, roles: EdgeColumns, ends: list[Any]) -> None:
    import pyarrow.compute as pc

    for name, cells in zip((roles.source, roles.target), ends, strict=True):
        empty = pc.index(cells, "").as_py()
        if empty >= 0:
            raise sheet.fault(empty, name, "the id of a node is empty")


def _matched(sheet: Sheet, roles: EdgeColumns, ends: list[Any], ids: Any, nodes: Sheet) -> Indices:
    """The node numbers of the ends; one that is in no row of the node table is an error."""
    import pyarrow.compute as pc

    def numbers(cells: Any) -> Any:
        found = pc.index_in(cells, value_set=ids)
        if found.null_count:  # 7.0 is 7, unless there is a node of that name
            found = pc.coalesce(found, pc.index_in(whole_names(cells), value_set=ids))
        return found.fill_null(-1).to_numpy()

    pairs = np.stack([numbers(cells) for cells in ends]).astype(np.int64)
    bad = np.flatnonzero((pairs < 0).any(axis=0))
    if bad.size:
        row = int(bad[0])
        at = int(pairs[0, row] >= 0)
        name = (roles.source, roles.target)[at]
        more = bad.size - 1
        others = f" ({plural(more, 'more edge')} like this)" if more else ""
        what = f"there is no node {quoted(ends[at][row].as_py())} in {nodes.path}{others}"
        raise sheet.fault(row, name, what)
    return pairs


def _by_appearance(ends: list[Any]) -> tuple[tuple[str, ...], Indices]:
    """The nodes in the order in which the edges name them, and the edges between them."""
    import pyarrow as pa

    both = pa.chunked_array([chunk for cells in ends for chunk in cells.chunks], pa.string())
    both = whole_names(both) if all_whole(both) else both
    encoded = both.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices, dtype=np.int64).reshape(2, -1)
    present, first = np.unique(codes.T.ravel(), return_index=True)
    order = present[np.argsort(first)]
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    return tuple(encoded.dictionary.take(pa.array(order)).to_pylist()), number[codes]
