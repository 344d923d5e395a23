"""Graphs as networkx writes them: GraphML and GEXF, which hold everything, and lists of edges.

networkx reads the first two, by the standard library's XML parser; a file that declares entities
is refused before, since a few lines of them can ask for all memory.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kryograph.data.tables.formats import Kind, contents, encoding_fault
from kryograph.data.tables.sheet import LARGEST_WHOLE, RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.text import quoted

_WEIGHT = re.compile(r"\{\s*(?:['\"]weight['\"]\s*:\s*([-+.\w]+))?\s*\}")


def read_xml(path: Path, kind: Kind) -> RawGraph:
    """Read GraphML or GEXF, with the nodes' attributes as columns."""
    data = contents(path)
    wrong = encoding_fault(data, path)
    if wrong is not None:
        raise wrong
    declared = re.search(rb"<!\s*(DOCTYPE|ENTITY)", data, re.IGNORECASE)
    if declared:
        line = data.count(b"\n", 0, declared.start()) + 1
        raise UsageError(
            f"{path}, line {line}: it declares a document type or entities, which no graph needs; "
            "it was not read."
        )
    networkx = _networkx(path)
    reader = networkx.read_graphml if kind is Kind.GRAPHML else networkx.read_gexf
    return _networkx_raw_graph(_read(reader, data, path, kind.value), path)


def _networkx(path: Path) -> Any:
    try:
        import networkx
    except ImportError as error:  # pragma: no cover
        raise UsageError(f"{path} needs networkx: pip install networkx.") from error
    return networkx


def _read(reader: Callable[[io.BytesIO], Any], data: bytes, path: Path, kind: str) -> Any:
    try:
        return reader(io.BytesIO(data))
    except Exception as error:  # whatever a wrong file makes the parser stumble over
        position = getattr(error, "position", None)
        where = f", line {position[0]}, column {position[1] + 1}" if position else ""
        said = (str(error).splitlines() or [""])[0] or type(error).__name__
        raise UsageError(f"{path}{where}: it is damaged or not {kind} ({said}).") from error


def _networkx_raw_graph(graph: Any, path: Path) -> RawGraph:
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

    def place(row: int) -> str:
        return f"node {quoted(ids[row])}"

    sheet = Sheet(path, _attributes(graph), len(ids), place)
    return RawGraph(ids, pairs.T, weights, sheet)


def _weight(u: object, v: object, data: Mapping[str, Any], path: Path) -> float:
    given = data.get("weight", 1.0)
    try:
        weight = float(given)
    except (TypeError, ValueError):
        weight = float("nan")
    if not 1 / LARGEST_WHOLE <= weight <= LARGEST_WHOLE:
        raise UsageError(
            f"{path}, edge {quoted(u)} – {quoted(v)}, column 'weight': {quoted(given)} is not a "
            "positive number."
        )
    return weight


def _attributes(graph: Any) -> dict[str, Any]:
    """The nodes' attributes as columns of text; where a node lacks one the cell is empty.

    What GEXF knows of each node beside its attributes (its label, its place in a picture) is left
    out unless it says more than the id.
    """
    import pyarrow as pa

    cells: dict[str, list[str]] = {}
    for row, (node, data) in enumerate(graph.nodes(data=True)):
        for name, value in data.items():
            if isinstance(value, (dict, list)) or (name == "label" and str(value) == str(node)):
                continue
            column = cells.setdefault(str(name), [""] * len(graph))
            column[row] = "" if value is None else _utf8(value)
    return {
        name: pa.chunked_array([pa.array(column, type=pa.string())])
        for name, column in cells.items()
    }


def _utf8(value: object) -> str:
    return str(value).encode(errors="replace").decode()


def is_edge_list(path: Path) -> bool:
    """Whether a file is a list of edges with attributes in braces, as networkx writes it."""
    lines = contents(path, 1 << 16).splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    return first.rstrip().endswith(b"}") and b"{" in first


def read_edge_list(path: Path) -> Sheet:
    """Read such a list: on each line two nodes and, in braces, what is known of the edge."""
    import pyarrow as pa

    data = contents(path)
    wrong = encoding_fault(data, path)
    if wrong is not None:
        raise wrong
    rows: list[tuple[int, str, str, str]] = []
    for at, line in enumerate(data.decode("utf-8-sig").splitlines()):
        cells = line.split("#", 1)[0].split(None, 2)
        if len(cells) == 1:
            raise UsageError(f"{path}, line {at + 1}, column 1: an edge has two ends.")
        if cells:
            attributes = cells[2].strip() if len(cells) > 2 else "{}"
            rows.append((at + 1, cells[0], cells[1], _edge_weight(attributes, path, at + 1)))
    lines, sources, targets, weights = zip(*rows, strict=True)
    columns = {"source": sources, "target": targets}
    if set(weights) != {"1"}:
        columns["weight"] = weights
    arrays = {name: pa.chunked_array([pa.array(cells)]) for name, cells in columns.items()}
    return Sheet(path, arrays, len(rows), lambda row: f"line {lines[row]}")


def _edge_weight(attributes: str, path: Path, line: int) -> str:
    """The weight, as it is written; 1 if there is none."""
    simple = _WEIGHT.fullmatch(attributes)
    if simple:
        return simple[1] or "1"
    try:
        found = ast.literal_eval(attributes)
        return str(found.get("weight", 1))
    except Exception as error:  # whatever Python's parser makes of it
        raise UsageError(
            f"{path}, line {line}, column 3: {quoted(attributes)} is not a dictionary of Python."
        ) from error
