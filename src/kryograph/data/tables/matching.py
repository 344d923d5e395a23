"""A table of edges and a table of nodes, either of which may be missing, matched by their ids."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.formats import format_of
from kryograph.data.tables.node_table import refuse_many_categories
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.roles import (
    EdgeColumns,
    edge_columns,
    edges_have_header,
    end_columns,
    id_column,
    names_both_ends,
    nodes_have_header,
    spare_ids,
)
from kryograph.data.tables.sheet import (
    LARGEST_WHOLE,
    Floats,
    RawGraph,
    Sheet,
    whole_keys,
    without_zeros,
)
from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.text import OnProgress, plural, quoted

ID_SAMPLE_ROWS = 1000
"""Number of edges whose ends are looked up to recognise the column of ids of the node table."""


@dataclass(frozen=True)
class ColumnRequest:
    """Columns that the caller names, and the recipe of a model if it computes the features."""

    id: str | None
    label: str | None
    text: Collection[str]
    ignore: Collection[str]
    recipe: Recipe | None

    @property
    def recipe_id(self) -> str | None:
        """Column of ids in the tables that the model was trained on."""
        return None if self.recipe is None else self.recipe.id

    @property
    def not_ids(self) -> set[str]:
        """Columns that cannot be the column of ids."""
        known = () if self.recipe is None else (*self.recipe.used, self.recipe.label)
        return {name for name in (*self.text, *self.ignore, self.label, *known) if name is not None}

    @property
    def required(self) -> list[tuple[str, str]]:
        """Columns that the node table must have, each with its use, such as " of labels"."""
        label = [] if self.label is None else [(self.label, " of labels")]
        return [*label, *((name, " of text") for name in self.text)]

    def check(self, sheet: Sheet) -> None:
        """Raise an error if a required column is missing."""
        for name, what in self.required:
            sheet.require(name, what)


def read_two_tables(
    edges: Path | None, nodes: Path | None, request: ColumnRequest, progress: OnProgress
) -> RawGraph:
    """Read both tables and match them."""
    if nodes is None and request.required:
        name, what = request.required[0]
        raise UsageError(
            f"The column {quoted(name)}{what} must be in a table of nodes, and there is none."
        )
    notes: list[str] = []
    progress("edges", 0.0)
    edge_table = None if edges is None else _read_table(edges, edges=True)
    progress("edges", 0.5)
    progress("nodes", 0.0)
    sample = None if edge_table is None else _first_ends(edge_table, request.ignore)
    sheet = None
    id = None
    ids: Any = None
    if nodes is not None:
        sheet = _node_sheet(_read_table(nodes, edges=False), request, edge_table)
        request.check(sheet)
        progress("nodes", 0.5)
        id = _id(sheet, request, sample)
        if request.recipe is None:  # before anything is done that takes memory
            taken = request.not_ids | {id}
            refuse_many_categories(sheet, taken.union(spare_ids(sheet, taken)))
        ids = sheet.keys(id).combine_chunks()
        _check_ids(sheet, id, ids)
    progress("nodes", 1.0)
    if edge_table is None:
        assert sheet is not None
        no_edges = "There are no edges: every node stands alone."
        pairs = np.empty((2, 0), np.int64)
        return RawGraph(tuple(ids.to_pylist()), pairs, None, sheet, id, notes=(no_edges,))
    edge_sheet = _edge_sheet(edge_table, ids, notes)
    roles = edge_columns(edge_sheet, request.ignore)
    if roles.weight is not None:
        notes.append(f"The weights of the edges are in column {quoted(roles.weight)}.")
    weights = _weights(edge_sheet, roles)
    ends = [edge_sheet.text(name) for name in roles.ends]
    for name, cells in zip(roles.ends, ends, strict=True):
        empty = pc.index(cells, "").as_py()
        if empty >= 0:
            raise edge_sheet.fault(empty, name, "the id of a node is empty")
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


def _read_table(path: Path, *, edges: bool) -> CsvTable | Sheet:
    """Read a table of edges or of nodes."""
    format = format_of(path)
    table = (format.read_edges if edges and format.read_edges else format.read)(path)
    if not isinstance(table, CsvTable | Sheet):
        raise UsageError(f"The reader of {format.title} must return a Sheet, or set `whole`.")
    return table


def _first_ends(table: CsvTable | Sheet, ignore: Collection[str]) -> Any:
    """Ids of the ends of the first edges, as an Arrow array."""
    if isinstance(table, Sheet):
        names = edge_columns(table, ignore).ends
        cells = [table.keys(name).slice(0, ID_SAMPLE_ROWS) for name in names]
    else:
        first = min(1, table.rows - 1)  # the first row may be a header
        some = {
            str(at): ends.slice(first, ID_SAMPLE_ROWS) for at, ends in enumerate(end_columns(table))
        }
        sheet = Sheet(table.path, some, min(ID_SAMPLE_ROWS, table.rows - first), str)
        cells = [sheet.keys(name) for name in some]
    return pa.chunked_array([chunk for column in cells for chunk in column.chunks], pa.string())


def _node_sheet(
    table: CsvTable | Sheet, request: ColumnRequest, edges: CsvTable | Sheet | None
) -> Sheet:
    if isinstance(table, Sheet):
        return table
    edge_table = edges if isinstance(edges, CsvTable) else None
    ids = {name for name in (request.id, request.recipe_id) if name is not None}
    named = (request.not_ids | ids).difference(request.ignore)
    return table.sheet(nodes_have_header(table, named, edge_table))


def _id(sheet: Sheet, request: ColumnRequest, sample: Any) -> str:
    if request.id is not None:
        return sheet.require(request.id, " of ids")
    if request.recipe_id is not None and request.recipe_id in sheet.names:
        return request.recipe_id
    ends = sample if sample is not None and len(sample) else None
    return id_column(sheet, request.not_ids, ends)


def _check_ids(sheet: Sheet, id: str, ids: Any) -> None:
    empty = pc.index(ids, "").as_py()
    if empty >= 0:
        raise sheet.fault(empty, id, "the id is empty")
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    first: dict[str, int] = {}
    for row, name in enumerate(ids.to_pylist()):
        if name in first:
            place = sheet.place(first[name])
            raise sheet.fault(row, id, f"the node id {quoted(name)} occurs twice, first on {place}")
        first[name] = row


def _edge_sheet(table: CsvTable | Sheet, ids: Any, notes: list[str]) -> Sheet:
    if isinstance(table, Sheet):
        return table
    known = None
    if ids is not None:
        cells = pa.array(table.first[:2], type=pa.string())
        known = set(cells.filter(pc.is_in(cells, value_set=ids)).to_pylist())
    header = edges_have_header(table, known)
    if header and not names_both_ends(table.first):
        cells = ", ".join(quoted(cell) for cell in table.first[:3])
        notes.append(f"The first row of {table.path} ({cells}) was taken as its header.")
    return table.sheet(header)


def _weights(sheet: Sheet, roles: EdgeColumns) -> Floats | None:
    if roles.weight is None:
        return None
    column = sheet.numbers(roles.weight, required=True)
    assert column is not None
    if column.missing.size:
        raise sheet.fault(int(column.missing[0]), roles.weight, "the weight is empty")
    weights = column.dense()
    bad = np.flatnonzero(weights < 1 / LARGEST_WHOLE)
    if bad.size:
        row = int(bad[0])
        what = (
            f"the weight {weights[row]:g} is not positive; if the column is something else, leave "
            f"it out with --ignore {roles.weight}"
        )
        raise sheet.fault(row, roles.weight, what)
    return weights


def _matched(sheet: Sheet, roles: EdgeColumns, ends: list[Any], ids: Any, nodes: Sheet) -> Indices:
    """Look up the node numbers of the ends; an end that is not in the node table is an error."""

    def numbers(cells: Any) -> Any:
        rows = pc.index_in(cells, value_set=ids)
        if rows.null_count:  # 7.0 is 7, unless there is a node of that name
            rows = pc.coalesce(rows, pc.index_in(without_zeros(cells), value_set=ids))
        return rows.fill_null(-1).to_numpy()

    pairs = np.stack([numbers(cells) for cells in ends]).astype(np.int64)
    bad = np.flatnonzero((pairs < 0).any(axis=0))
    if bad.size:
        row = int(bad[0])
        at = int(pairs[0, row] >= 0)
        more = bad.size - 1
        others = f" ({plural(more, 'more edge')} like this)" if more else ""
        what = f"there is no node {quoted(ends[at][row].as_py())} in {nodes.path}{others}"
        raise sheet.fault(row, roles.ends[at], what)
    return pairs


def _by_appearance(ends: list[Any]) -> tuple[tuple[str, ...], Indices]:
    """List the nodes in the order in which the edges name them; also returns the edges."""
    both = pa.chunked_array([chunk for cells in ends for chunk in cells.chunks], pa.string())
    by_edge = np.arange(len(both)).reshape(2, -1).T.ravel()
    encoded = whole_keys(both).combine_chunks().take(pa.array(by_edge)).dictionary_encode()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    return tuple(encoded.dictionary.to_pylist()), codes.reshape(-1, 2).T
