"""Names of nodes: from a name to a number and back, and as an Arrow array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kryograph.errors import UsageError, near_misses
from kryograph.graph import Graph
from kryograph.text import quoted

MOST_NAMES_COMPARED = 20_000
"""Among more names only those with the same beginning are compared with an unknown one."""


def node_number(graph: Graph, node: str | int) -> int:
    """Number of the node with a name; a number is checked and returned."""
    if isinstance(node, int | np.integer):
        if not 0 <= node < graph.n:
            raise UsageError(f"There is no node {node}: nodes are 0 to {graph.n - 1}.")
        return int(node)
    if graph.names is None:
        if node.isdecimal() and int(node) < graph.n:
            return int(node)
        raise UsageError(f"There is no node {quoted(node)}: nodes are 0 to {graph.n - 1}.")
    if node in graph.names:
        return graph.names.index(node)
    names: Sequence[str] = graph.names
    if len(names) > MOST_NAMES_COMPARED:
        names = [name for name in names if name[:2].lower() == node[:2].lower()]
    near = near_misses(node, names[:MOST_NAMES_COMPARED])
    hint = f": did you mean {' or '.join(map(quoted, near))}?" if near else "."
    raise UsageError(f"There is no node {quoted(node)}{hint}")


def node_name(graph: Graph, node: int) -> str:
    """Name of a node; its number as text without names."""
    return graph.names[node] if graph.names is not None else str(node)


def node_names(graph: Graph) -> Sequence[str]:
    """Names of all nodes; their numbers as text without names."""
    return graph.names or [str(node) for node in range(graph.n)]


def arrow_texts(values: Sequence[str | None]) -> pa.Array:
    """Build an Arrow array of texts; it has no lone surrogates, which become question marks."""
    clean = [None if v is None else v.encode("utf-8", "replace").decode("utf-8") for v in values]
    return pa.array(clean, pa.string())
