"""Reading of a person's tables: from files or objects to a graph, its labels and a plan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.faults import Faults
from kryograph.data.tables.kinds import ColumnKind, recognise_columns
from kryograph.data.tables.labels import likely_unknown
from kryograph.data.tables.node_labels import NodeLabels, find_labels, same_cells
from kryograph.data.tables.opening import Session, open_edges, open_table
from kryograph.data.tables.options import NO_WEIGHT, Reading, TableOptions
from kryograph.data.tables.overlap import EdgeColumns
from kryograph.data.tables.parts import GraphParts, match_tables, whole_graph
from kryograph.data.tables.plan import NOT_USED, Plan
from kryograph.data.tables.recipe import Recipe, learn
from kryograph.data.tables.sheet import RawGraph, Sheet, SplitMasks, near_columns
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Features, Graph, Indices
from kryograph.text import OnProgress, ignore_progress, plural, quoted

FEWEST_COPIES = 10
"""A column that equals the labels of at least this many nodes is a copy of them."""
EDGE_KINDS = ("number", "category", "boolean")
"""Kinds of columns of edges that become features of the nodes."""


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
    _check_names(session, parts, label_table)
    node_kinds, edge_kinds = _recognise(session, parts, node_labels)
    rule = _repeat(session, parts)
    _plan_edges(session.plan, parts, edge_kinds, session.options, rule)
    _plan_nodes(session.plan, parts, node_kinds, node_labels)
    session.plan.lines += node_labels.lines
    session.faults.raise_if_any(session.plan)
    session.progress("features", 0.0)
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


def _check_names(session: Session, parts: GraphParts, label_table: Any) -> None:
    """Add a fault for each column that the caller names and no table has."""
    sheets = [sheet for sheet in (parts.nodes.sheet, parts.edges) if sheet is not None]
    sheets = [sheet for sheet in sheets if sheet.names]
    known = [name for sheet in sheets for name in sheet.names]
    known += getattr(label_table, "names", getattr(label_table, "first", ()))
    named = {name: f"--{kind}" for kind, names in session.named.kinds.items() for name in names}
    named |= dict.fromkeys(session.named.ignore, "--ignore")
    if session.named.edge_type is not None:
        named[session.named.edge_type] = "--edge-type"
    path = " and ".join(dict.fromkeys(str(sheet.path) for sheet in sheets)) or "The graph"
    for name, option in named.items():
        if name not in known:
            near = near_columns(name, known)
            have = "has" if len(sheets) < 2 else "have"
            fault = UsageError(f"{path} {have} no column {quoted(name)} for {option}{near}")
            session.faults.add(path, fault)


def _recognise(
    session: Session, parts: GraphParts, node_labels: NodeLabels
) -> tuple[dict[str, ColumnKind], dict[str, ColumnKind]]:
    """Recognise the columns of the nodes and those of the edges."""
    sheet, options, reading = parts.nodes.sheet, session.options, session.reading
    kinds = recognise_columns(
        sheet,
        {parts.id, node_labels.column},
        options,
        session.faults,
        None if reading is None else reading.kinds,
    )
    named = {name for names in options.kinds.values() for name in names}
    if session.recipe is None and not session.as_dataset:
        copies = [n for n, kind in kinds.items() if kind.kind and n not in named]
        _refuse_copies(sheet, copies, node_labels, session.faults)
    if parts.edges is None:
        return kinds, {}
    roles = {name for table in parts.tables for name in _edge_roles(table.columns)}
    known = None if reading is None else dict(reading.edge_kinds)
    if options.edge_type is not None and known is None:
        options = replace(options, category=(*options.category, options.edge_type))
    if options.edge_features is False:
        off = (name for name in parts.edges.names if name not in roles)
        return kinds, {name: ColumnKind(None, "--edge-features off") for name in off}
    edge_kinds = recognise_columns(parts.edges, roles, options, session.faults, known)
    for name, column in edge_kinds.items():
        if column.kind is not None and column.kind not in EDGE_KINDS:
            edge_kinds[name] = ColumnKind(None, f"{column.kind} of an edge is no feature of nodes")
    return kinds, edge_kinds


def _refuse_copies(sheet: Sheet, names: list[str], node_labels: NodeLabels, faults: Faults) -> None:
    """Add a fault for each column that repeats the labels: a feature that knows the answer."""
    if (node_labels.labels.numbers >= 0).sum() < FEWEST_COPIES:
        return
    for name in names:
        kind = sheet.arrow_type(name)
        nested = kind is not None and (pa.types.is_nested(kind) or pa.types.is_temporal(kind))
        if not nested and same_cells(sheet, name, node_labels):
            fault = UsageError(
                f"{sheet.path}, column {quoted(name)}: it repeats the labels, so it cannot be a "
                f"feature; leave it out with --ignore {name}."
            )
            faults.add(str(sheet.path), fault)


def _edge_roles(columns: EdgeColumns) -> dict[str, str]:
    """Role of the columns of an edge table that have one."""
    roles = {columns.ends[0]: "source", columns.ends[1]: "target"}
    return roles if columns.weight is None else {**roles, columns.weight: "weight"}


def _plan_edges(
    plan: Plan,
    parts: GraphParts,
    kinds: Mapping[str, ColumnKind],
    options: TableOptions,
    rule: str,
) -> None:
    """Add the columns of the tables of edges to the plan, in their order.

    `rule` is that for repeated edges.
    """

    def add_attribute(title: str, name: str) -> None:
        column = kinds[name]
        use = "edge type" if name == options.edge_type else column.kind
        how = "added up" if column.kind == "number" else "counted"
        details = [column.detail, f"{how} at each node" if column.kind else ""]
        plan.add(title, name, use or NOT_USED, ", ".join(filter(None, details)))

    for table in parts.tables:
        roles = _edge_roles(table.columns)
        for name in table.sheet.names:
            if name not in roles:
                add_attribute(table.sheet.title, name)
                continue
            detail = table.columns.reasons.get(name, "")
            if roles[name] == "weight":
                detail = f"{detail}; repeated edges: {rule}" if detail else f"repeated: {rule}"
            plan.add(table.sheet.title, name, roles[name], detail)
    if parts.whole is not None and parts.edges is not None:
        for name in parts.edges.names:
            add_attribute(f"{parts.edges.title}, edges", name)
    joined = [] if parts.edges is None or len(parts.tables) < 2 else parts.edges.names
    for name in joined:
        if not any(name in table.sheet.names for table in parts.tables) and parts.edges is not None:
            add_attribute(parts.edges.title, name)


def _plan_nodes(
    plan: Plan, parts: GraphParts, kinds: Mapping[str, ColumnKind], node_labels: NodeLabels
) -> None:
    """Add the columns of the table of nodes to the plan, in their order."""
    sheet = parts.nodes.sheet
    for name in sheet.names:
        if name == parts.id:
            plan.add(sheet.title, name, "id", parts.id_reason)
        elif name != node_labels.column:
            column = kinds[name]
            plan.add(sheet.title, name, column.kind or NOT_USED, column.detail)
        elif node_labels.sheet is sheet:
            plan.add(sheet.title, name, "label", node_labels.labels.counts)
        else:
            plan.add(sheet.title, name, NOT_USED, f"the labels are {node_labels.source}")
    if parts.whole is not None:
        for name in parts.whole.unread:
            plan.add(sheet.title, name, NOT_USED, "it is no number, text, date or vector")


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


def _repeat(session: Session, parts: GraphParts) -> str:
    """Find the rule by which repeated edges are merged."""
    default = "max" if session.as_dataset else "count" if parts.weights is None else "sum"
    return session.options.repeat or default


def _graph(session: Session, parts: GraphParts, features: Features) -> Graph:
    used = (parts.pairs >= 0).all(axis=0)
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
