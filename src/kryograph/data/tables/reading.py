"""Reading of a person's tables: from files or objects to a graph, its labels and a plan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from kryograph.data.tables.columns import check_names, plan_columns, recognise_parts
from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.kinds import ColumnKind
from kryograph.data.tables.labels import likely_unknown
from kryograph.data.tables.node_labels import NodeLabels, find_labels
from kryograph.data.tables.opening import Session, open_edges, open_table
from kryograph.data.tables.options import NO_WEIGHT, Reading, TableOptions
from kryograph.data.tables.parts import GraphParts, match_tables, whole_graph
from kryograph.data.tables.plan import Plan
from kryograph.data.tables.recipe import Recipe, learn
from kryograph.data.tables.sheet import RawGraph, Sheet, SplitMasks
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Features, Graph, Indices
from kryograph.text import OnProgress, ignore_progress, plural, quoted


@dataclass(frozen=True, eq=False)
class Tables:
    """A graph that was read from a person's tables."""

    graph: Graph
    """The graph with the ids as names, in the order of the node table."""
    labels: Indices
    """N class numbers, `UNKNOWN` where the label is not known."""
    classes: tuple[str, ...]
    """Names of the classes, sorted (as numbers if they are)."""
    columns: Recipe
    notes: tuple[str, ...]
    """Sentences on what was changed or left out."""
    label_source: str
    """Place of the labels, such as "column 'topic' of nodes.csv"."""
    plan: Plan
    """What became of every column of every table."""
    masks: SplitMasks | None = None
    sheet: Sheet | None = None
    """Table of the nodes, a row for each node; None unless it is to be kept."""


def read_tables(
    edges: object,
    nodes: object = None,
    labels: object = None,
    *,
    options: TableOptions | None = None,
    columns: Recipe | None = None,
    as_dataset: bool = False,
    keep_sheet: bool = False,
    progress: OnProgress = ignore_progress,
    **flags: Any,
) -> Tables:
    """Read a graph from tables, or from a file or an object that holds a whole graph.

    All faults of the tables are raised as one `UsageError`.

    Args:
        edges: Table of edges, several of them (a list), a whole graph, or None. A table is a path
            to a file of any format of `FILE_FORMATS`, an object with an Arrow stream (pandas,
            polars, DuckDB, pyarrow) or a dictionary of arrays. A whole graph is a path, a PyTorch
            Geometric `Data`, a networkx graph, a SciPy matrix or a `Graph`.
        nodes: Table of nodes; if None, the nodes are those that have edges.
        labels: Table of labels, with a row for each decision; the last one of a node counts.
        options: Roles and kinds of columns, and rules; None stands for `TableOptions(**flags)`.
        columns: Recipe of a model, if the features are computed for that model.
        as_dataset: Read a data set: if no label is named, the column called 'label', 'class' or the
            like is taken; labels that the file hides from training are read too, and repeated edges
            keep their largest weight.
        keep_sheet: Keep the cells of the table of nodes, which features are made from.
        progress: Called now and then with a stage and the fraction of it that is done.
        flags: Fields of `TableOptions`, if `options` is None: `label="topic", text=["title"]`.
    """
    named = TableOptions(**flags) if options is None else options
    session = Session(named, columns, as_dataset, progress)
    parts, label_table = _read_parts(session, edges, nodes, labels)
    node_labels = find_labels(parts, label_table, session)
    check_names(session, parts, label_table)
    node_kinds, edge_kinds = recognise_parts(session, parts, node_labels)
    rule = _repeat(session, parts)
    plan_columns(session, parts, node_labels, node_kinds, edge_kinds, rule)
    session.faults.raise_if_any(session.plan)
    session.progress("features", 0.0)
    _release(parts)
    recipe, features, notes = _features(session, parts, node_labels, node_kinds, edge_kinds)
    graph = _graph(session, parts, features)
    session.progress("features", 1.0)
    return Tables(
        graph,
        node_labels.labels.numbers,
        node_labels.labels.classes,
        recipe,
        (*session.notes, *_edge_notes(graph, rule), *notes),
        node_labels.source,
        session.plan,
        None if parts.whole is None else parts.whole.masks,
        parts.nodes.sheet if keep_sheet else None,
    )


def _read_parts(
    session: Session, edges: object, nodes: object, labels: object
) -> tuple[GraphParts, Any]:
    """Open all tables and match them; also returns the table of labels."""
    edge_inputs = open_edges(edges)
    if not edge_inputs and nodes is None:
        raise UsageError("Pass a table of edges, a table of nodes, or both.")
    session.progress("edges", 0.0)
    alone = len(edge_inputs) + (nodes is not None) == 1
    opened = [open_table(one, "edges", session, alone=alone) for one in edge_inputs]
    session.progress("nodes", 0.0)
    pa.default_memory_pool().release_unused()
    node_table = None
    if nodes is not None:
        node_table = open_table(nodes, "nodes", session, alone=alone)
        session.progress("nodes", 0.5)
    label_table = None if labels is None else open_table(labels, "labels", session, alone=False)
    whole = [table for table in (*opened, node_table) if isinstance(table, RawGraph)]
    parts = None
    if whole:
        parts = whole_graph(whole[0], session)
    else:
        tables = [table for table in opened if table is not None]
        complete = len(tables) == len(opened) and (nodes is None or node_table is not None)
        if complete or node_table is not None:
            read = [table for table in tables if not isinstance(table, RawGraph)]
            assert not isinstance(node_table, RawGraph)
            parts = match_tables(read if complete else None, node_table, session)
    session.progress("edges", 1.0)
    if parts is None:
        session.faults.raise_if_any(session.plan)
        raise AssertionError("tables without nodes are a fault")
    return parts, label_table


def _features(
    session: Session,
    parts: GraphParts,
    node_labels: NodeLabels,
    kinds: Mapping[str, ColumnKind],
    edge_kinds: Mapping[str, ColumnKind],
) -> tuple[Recipe, Features, list[str]]:
    """Make the features: learn a recipe, or apply that of a model. Also returns notes."""
    sheet, ids = parts.nodes.sheet, parts.nodes.names
    if session.recipe is not None:
        known = None
        if parts.edges is not None:
            known = EdgeAttributes(parts.pairs, parts.edges, {})
        features, notes = session.recipe.apply(sheet, ids, session.progress, known)
        return session.recipe, features, notes
    used = {name: column.kind for name, column in kinds.items() if column.kind is not None}
    used_edges = {n: column.kind for n, column in edge_kinds.items() if column.kind is not None}
    unused = [name for name in sheet.names if name not in used]
    options = session.options
    weight = NO_WEIGHT
    if parts.tables:
        source, target = parts.tables[0].columns.ends
        weights = (table.columns.weight for table in parts.tables)
        weight = next((name for name in weights if name is not None), NO_WEIGHT)
        options = replace(options, source=source, target=target)
    options = replace(
        options,
        id=parts.id,
        label=node_labels.column,
        weight=weight,
        repeat=_repeat(session, parts),
        number=(),
        category=(),
        text=(),
        vector=(),
    )
    attributes = None
    if parts.edges is not None and used_edges:
        attributes = EdgeAttributes(parts.pairs, parts.edges, used_edges)
    return learn(
        sheet,
        ids,
        id=parts.id,
        label=node_labels.column,
        kinds=used,
        edges=attributes,
        unused=set(unused) - {parts.id, node_labels.column},
        progress=session.progress,
        reading=Reading(options, used, used_edges),
    )


def _release(parts: GraphParts) -> None:
    """Forget the ends of the edges, which are numbers now: they are much text."""
    for table in parts.tables:
        nothing = pa.chunked_array([], pa.string())
        table.ends = (nothing, nothing)
        for name in table.columns.ends:
            for sheet in (table.sheet, parts.edges):
                if sheet is not None:
                    sheet.columns.pop(name, None)
    pa.default_memory_pool().release_unused()


def _repeat(session: Session, parts: GraphParts) -> str:
    """Find the rule by which repeated edges are merged."""
    default = "max" if session.as_dataset else "count" if parts.weights is None else "sum"
    return session.options.repeat or default


def _graph(session: Session, parts: GraphParts, features: Features) -> Graph:
    used = (parts.pairs >= 0).all(axis=0)
    # Read-only features are not copied by the graph.
    for array in (
        (features.data, features.indices, features.indptr)
        if isinstance(features, sp.csr_array)
        else (features,)
    ):
        array.setflags(write=False)
    return Graph.from_edges(
        parts.pairs[:, used],
        len(parts.nodes.ids),
        weights=None if parts.weights is None else parts.weights[used],
        features=features,
        names=parts.nodes.names,
        repeat=_repeat(session, parts),
    )


def _edge_notes(graph: Graph, rule: str) -> list[str]:
    # Most files list an edge once: no note is needed.
    changes = str(replace(graph.cleaning, one_way=0))
    if graph.cleaning.repeated:
        changes += f" (weight: {rule})"
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    notes = [f"{changes}."] if changes else []
    return [*notes, f"{plural(alone, 'node')} without an edge."] if alone else notes


def check_for_fit(tables: Tables) -> None:
    """Raise an error unless there are labels of two classes, and nodes without a label."""
    known = tables.labels != UNKNOWN
    source = tables.label_source
    if tables.columns.label is None and not known.any():
        raise UsageError(
            f"Which column of {source} has the labels? Say --label NAME, or pass a table of labels "
            "with --labels."
        )
    if not known.any():
        raise UsageError(f"There are no labels in {source}: label at least one node of each class.")
    if len(tables.classes) == 1:
        raise UsageError(
            f"All labels in {source} are {quoted(tables.classes[0])}: there must be two classes."
        )
    if known.all():
        likely = likely_unknown(tables.classes)
        advice = "Leave the cells of nodes empty whose label is not known."
        if likely:
            advice = (
                f"If {quoted(likely[0])} means that the label is not known, add "
                f"--unknown-label {shlex.quote(likely[0])}."
            )
        raise UsageError(
            f"All {known.size:,} nodes have a label in {source}: nothing is left to predict. "
            f"{advice}"
        )
