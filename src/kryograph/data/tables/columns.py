"""Columns of matched tables: what each is used for, and its line in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kryograph.data.tables.faults import Faults
from kryograph.data.tables.kinds import ColumnKind, recognise_columns
from kryograph.data.tables.node_labels import NodeLabels, same_cells
from kryograph.data.tables.opening import Session
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.overlap import EdgeColumns
from kryograph.data.tables.parts import GraphParts
from kryograph.data.tables.plan import NOT_USED, Plan
from kryograph.data.tables.sheet import Sheet, near_columns
from kryograph.errors import UsageError
from kryograph.text import quoted

FEWEST_COPIES = 10
"""A column that equals the labels of at least this many nodes is a copy of them."""
EDGE_KINDS = ("number", "category", "boolean")
"""Kinds of columns of edges that become features of the nodes."""


def check_names(session: Session, parts: GraphParts, label_table: Any) -> None:
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


def recognise_parts(
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
    edge_kinds = recognise_columns(
        parts.edges, roles, options, session.faults, known, convert=False
    )
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
    if parts.whole is not None:
        title = f"{parts.whole.sheet.title}, edges"
        if parts.weights is not None:
            plan.add(title, "weight", "weight", f"repeated: {rule}")
        for name in () if parts.edges is None else parts.edges.names:
            add_attribute(title, name)
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
        for name, reason in parts.whole.unread.items():
            plan.add(sheet.title, name, NOT_USED, reason)


def plan_columns(
    session: Session,
    parts: GraphParts,
    node_labels: NodeLabels,
    node_kinds: Mapping[str, ColumnKind],
    edge_kinds: Mapping[str, ColumnKind],
    rule: str,
) -> None:
    """Add a line for every column of every table to the plan; `rule` is that for repeated edges."""
    _plan_edges(session.plan, parts, edge_kinds, session.options, rule)
    _plan_nodes(session.plan, parts, node_kinds, node_labels)
    session.plan.lines += node_labels.lines
