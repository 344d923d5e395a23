"""GraphML, GEXF and edge lists, as networkx writes them.

networkx reads GraphML and GEXF by the standard library's XML parser. A file that declares entities
is refused before, because a few lines of them can ask for all memory.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, contents, text_contents
from kryograph.data.tables.sheet import LARGEST_WHOLE, RawGraph, Sheet, text_column
from kryograph.errors import UsageError
from kryograph.text import quoted

_WEIGHT = re.compile(r"\{\s*(?:['\"]weight['\"]\s*:\s*([-+.\w]+))?\s*\}")


def read_xml(title: str, path: Path) -> RawGraph:
    """Read a file of the format "GraphML" or "GEXF"; attributes of nodes become columns."""
    data = text_contents(path)
    declared = re.search(rb"<!\s*(DOCTYPE|ENTITY)", data, re.IGNORECASE)
    if declared:
        line = data.count(b"\n", 0, declared.start()) + 1
        raise UsageError(
            f"{path}, line {line}: it declares a document type or entities, which no graph needs; "
            "it was not read."
        )
    try:
        import networkx
    except ImportError as error:  # pragma: no cover
        raise UsageError(f"{path} needs networkx: pip install networkx.") from error
    try:
        graph = getattr(networkx, f"read_{title.lower()}")(io.BytesIO(data))
    except Exception as error:  # the parser raises all kinds of errors for damaged files
        position = getattr(error, "position", None)
        where = f", line {position[0]}, column {position[1] + 1}" if position else ""
        reason = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UsageError(f"{path}{where}: it is damaged or not {title} ({reason}).") from error
    return from_networkx_graph(graph, path)


for _title in ("GraphML", "GEXF"):
    FILE_FORMATS.add(_title.lower(), FileFormat(_title, partial(read_xml, _title), whole=True))


def from_networkx_graph(graph: Any, path: Path | str) -> RawGraph:
    """Convert a networkx graph that was read from `path`; attributes become columns."""
    nodes = list(graph.nodes)
    ids = tuple(str(node).strip() for node in nodes)
    if not ids:
        raise UsageError(f"{path} has no nodes.")
    if "" in ids:
        raise UsageError(f"{path}: node {ids.index('') + 1} has an empty id.")
    if len(set(ids)) < len(ids):
        again = next(name for at, name in enumerate(ids) if name in ids[:at])
        raise UsageError(f"{path}: the node id {quoted(again)} occurs twice.")
    number = {node: at for at, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    pairs = np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2)
    weights = None
    if any("weight" in data for _, _, data in edges):
        weights = np.array([_weight(u, v, data, path) for u, v, data in edges])
    cells, unread = _attributes([(str(node), data) for node, data in graph.nodes(data=True)])
    sheet = Sheet(path, cells, len(ids), lambda row: f"node {quoted(ids[row])}")
    others = [(None, {k: v for k, v in data.items() if k != "weight"}) for _, _, data in edges]
    edge_cells, edge_unread = _attributes(others)
    edge_sheet = None
    if edge_cells:

        def edge_place(row: int) -> str:
            return f"edge {quoted(edges[row][0])} – {quoted(edges[row][1])}"

        edge_sheet = Sheet(path, edge_cells, len(edges), edge_place)
    left_out = dict.fromkeys((*unread, *edge_unread), "it is no number, text, date or vector")
    return RawGraph(ids, pairs.T, weights, sheet, edges=edge_sheet, unread=left_out)


def _weight(u: object, v: object, data: Mapping[str, Any], path: Path | str) -> float:
    value = data.get("weight", 1.0)
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = float("nan")
    if not 0 <= weight <= LARGEST_WHOLE:
        raise UsageError(
            f"{path}, edge {quoted(u)} – {quoted(v)}, column 'weight': {quoted(value)} is not a "
            "number of 0 or more."
        )
    return weight


def _attributes(
    records: Sequence[tuple[str | None, Mapping[str, Any]]],
) -> tuple[dict[str, Any], list[str]]:
    """Attributes of nodes or edges as columns; the cell of one that lacks an attribute is empty.

    What GEXF adds to each node (its label, its position in a drawing) is left out, except a label
    that differs from the id. Lists of numbers are vectors; truth values stay so. Also returns the
    names of the attributes that are left out.
    """
    values: dict[str, list[Any]] = {}
    unread: dict[str, None] = {}
    for row, (node, data) in enumerate(records):
        for name, value in data.items():
            if name == "label" and str(value) == node:
                continue
            if isinstance(value, dict) or (isinstance(value, list) and not _is_vector(value)):
                unread[str(name)] = None
                continue
            values.setdefault(str(name), [None] * len(records))[row] = value
    return {name: _column(cells) for name, cells in values.items()}, list(unread)


def _is_vector(value: list[Any]) -> bool:
    return len(value) > 0 and all(isinstance(number, int | float) for number in value)


def _column(cells: list[Any]) -> Any:
    """Build a column of truth values or vectors if all cells are such, else of text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return pa.chunked_array([pa.array(cells)])
    if kinds == {list}:
        return pa.chunked_array([pa.array(cells, type=pa.list_(pa.float64()))])
    spelled = ("" if cell is None else str(cell).encode(errors="replace") for cell in cells)
    return text_column([cell.decode() if isinstance(cell, bytes) else cell for cell in spelled])


def is_edge_list(path: Path) -> bool:
    """Whether a file is a list of edges with attributes in braces, as networkx writes it."""
    lines = contents(path, 1 << 16).splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    return first.rstrip().endswith(b"}") and b"{" in first


def read_edge_list(path: Path) -> Sheet:
    """Read a list of edges: two nodes on each line, then the attributes of the edge in braces."""
    lines, ends, records = [], [], list[tuple[None, Mapping[str, Any]]]()
    for at, line in enumerate(text_contents(path).decode("utf-8-sig").splitlines()):
        cells = line.split("#", 1)[0].split(None, 2)
        if len(cells) == 1:
            raise UsageError(f"{path}, line {at + 1}, column 1: an edge has two ends.")
        if cells:
            lines.append(at + 1)
            ends.append(cells[:2])
            attributes = cells[2].strip() if len(cells) > 2 else "{}"
            records.append((None, _edge_attributes(attributes, path, at + 1)))
    columns, _ = _attributes(records)
    if "weight" in columns:  # an edge without a weight has the weight 1
        weights = [str(record.get("weight", 1)) for _, record in records]
        columns["weight"] = text_column(weights)
    for at, name in enumerate(("target", "source")):
        columns = {name: text_column([pair[1 - at] for pair in ends]), **columns}
    return Sheet(path, columns, len(lines), lambda row: f"line {lines[row]}")


def _edge_attributes(attributes: str, path: Path, line: int) -> dict[str, Any]:
    """Read the attributes of an edge, which are written as a dictionary of Python."""
    simple = _WEIGHT.fullmatch(attributes)
    if simple:
        return {"weight": simple[1]} if simple[1] else {}
    try:
        value = ast.literal_eval(attributes)
        return {str(name): cell for name, cell in value.items()}
    except Exception as error:  # Python's parser raises all kinds of errors
        raise UsageError(
            f"{path}, line {line}, column 3: {quoted(attributes)} is not a dictionary of Python."
        ) from error
