"""GraphParts: nodes and edges of a graph, matched by their ids, before features are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kryograph.data.tables.delimited import CsvTable
from kryograph.data.tables.edge_tables import (
    EdgeTable,
    check_weights,
    drop_zero_weights,
    edge_sheet,
    joined_tables,
    match_edges,
    read_ends,
)
from kryograph.data.tables.matching import NodeIds, nodes_of_edges, read_ids
from kryograph.data.tables.opening import Session, Table
from kryograph.data.tables.overlap import id_column, sample_edges
from kryograph.data.tables.roles import nodes_have_header
from kryograph.data.tables.sheet import Floats, RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.text import plural, quoted


@dataclass(eq=False)
class GraphParts:
    """Nodes and edges of a graph."""

    nodes: NodeIds
    pairs: Indices
    """2 × E node numbers, as listed; -1 for edges that are left out."""
    weights: Floats | None = None
    edges: Sheet | None = None
    """Table of the edges, E rows; None if there is none."""
    tables: list[EdgeTable] = field(default_factory=list)
    """Tables of which `edges` was joined."""
    id: str | None = None
    """Column of the ids; None if the nodes have no table."""
    id_reason: str = ""
    whole: RawGraph | None = None
    """The graph, if it was read as a whole."""


def whole_graph(graph: RawGraph, session: Session) -> GraphParts:
    """Take nodes and edges from a whole graph."""
    pairs, weights, sheet = graph.pairs.copy(), graph.weights, graph.sheet
    if weights is not None:
        # Readers refuse other faults, but leave zeros to the options.
        def fault(row: int, what: str, more: int) -> UsageError:
            others = f" ({plural(more, 'more edge')} like this)" if more else ""
            ends = " – ".join(quoted(graph.ids[node]) for node in graph.pairs[:, row])
            return UsageError(f"{sheet.path}, edge {ends}: {what}{others}.")

        with session.faults.collected(sheet.title):
            check_weights(weights, session.options, fault)
        drop_zero_weights(weights, pairs, session.notes)
    session.notes += graph.notes
    ids = NodeIds(pa.array(graph.ids, pa.string()), sheet, str(sheet.path))
    return GraphParts(ids, pairs, weights, graph.edges, whole=graph)


def match_tables(
    edge_tables: Sequence[Table] | None, table: Table | None, session: Session
) -> GraphParts | None:
    """Match tables of edges with the table of nodes, which may be missing.

    None if there are no nodes. `edge_tables` is None if some of them could not be read: then the
    nodes stand alone, so that their table can be looked at.
    """
    parts = None
    if table is not None:
        parts = _read_nodes(table, edge_tables or (), session)
        if parts is None:
            return None
        if edge_tables is not None and not edge_tables:
            session.notes.append("There are no edges: every node stands alone.")
    session.progress("nodes", 1.0)
    ids = None if parts is None else parts.nodes.ids
    known = []
    for edge_table in edge_tables or ():
        with session.faults.collected(str(edge_table.path)):
            sheet = edge_sheet(edge_table, ids, session.options, session.notes)
            sheet.missing = session.options.missing_words
            read = read_ends(sheet, session.options_for(sheet), ids, session.faults)
            known += [] if read is None else [read]
    if not known or len(known) < len(edge_tables or ()):
        return parts
    session.progress("edges", 0.5)
    joined, weights = joined_tables(known)
    if parts is None:
        sources, targets = (
            pa.chunked_array([chunk for one in known for chunk in one.ends[end].chunks])
            for end in (0, 1)
        )
        parts = GraphParts(*nodes_of_edges(joined, (sources, targets), session.options))
    else:
        parts.nodes, parts.pairs = _matched(known, parts.nodes, session)
    parts.weights, parts.edges, parts.tables = weights, joined, known
    drop_zero_weights(weights, parts.pairs, session.notes)
    return parts


def _read_nodes(table: Table, edges: Sequence[Table], session: Session) -> GraphParts | None:
    """Name the columns of the node table, and read its ids; None if it has none."""
    options, used = session.options, () if session.recipe is None else session.recipe.used
    with session.faults.collected(str(table.path)):
        sheet = table
        if isinstance(sheet, CsvTable):
            first = edges[0] if edges and isinstance(edges[0], CsvTable) else None
            named = {options.id, options.label, *options.text, *used}
            sheet = sheet.sheet(nodes_have_header(sheet, {n for n in named if n}, first))
            sheet.missing = options.missing_words
        options = session.options_for(sheet)
        if options.id is not None:
            id, reason = sheet.require(options.id, " of ids"), ""
        else:
            kinds = {name for names in options.kinds.values() for name in names}
            not_ids = {options.label, *kinds, *options.ignore, *used}
            sample = sample_edges(edges[0], options) if edges else None
            id, reason = id_column(sheet, {name for name in not_ids if name}, sample)
        ids = read_ids(sheet, id, options, session.faults, session.notes)
        return GraphParts(ids, np.empty((2, 0), np.int64), id=id, id_reason=reason)
    return None


def _matched(
    tables: Sequence[EdgeTable], nodes: NodeIds, session: Session
) -> tuple[NodeIds, Indices]:
    """Look up the ends of all edges; nodes may be added."""
    parts = []
    for table in tables:
        options, faults, notes = session.options, session.faults, session.notes
        pairs, new = match_edges(table, nodes, options, faults, notes)
        parts.append(pairs)
        nodes = with_nodes(nodes, new)
    return nodes, np.concatenate(parts, axis=1)


def with_nodes(nodes: NodeIds, new: Sequence[str]) -> NodeIds:
    """Add nodes that have no row; all their cells are empty."""
    if not new:
        return nodes
    ids = pa.concat_arrays([nodes.ids, pa.array(new, pa.string())])
    sheet = nodes.sheet.with_empty_rows([f"node {quoted(name)}" for name in new])
    return NodeIds(ids, sheet, nodes.title)
