"""Data of the nodes on the page, in a compact form for its scripts.

Numbers are packed, most of them in 16 bits each, and written in base64; positions are rounded to a
grid of 65,536 × 65,536.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.labelling.node_ranking import node_ranks
from kryograph.report.charts import SHAPES, class_colours
from kryograph.report.html import shortened

MAX_NODES_ON_MAP = 20_000

MAX_CLASSES_LISTED = 12
"""Of a prediction set with more classes only the size is stored."""

MAX_NODE_NAME_LENGTH = 120

MAX_CLASSES_OF_NODE = 5
"""Probabilities of so many classes are stored for each node, the highest ones."""

MAX_NEIGHBOURS_LISTED = 12
"""Of a node with more neighbours on the page, those with the largest weights are stored."""

NO_CLASS = 2**16 - 1
"""Packed number that stands for "no class"."""


def nodes_on_map(labelled: LabelledGraph, seed: int = 0) -> Indices:
    """Nodes on the map: all, or the suggested ones, some labelled ones and a random sample."""
    n = labelled.graph.n
    if n <= MAX_NODES_ON_MAP:
        return np.arange(n)
    rank = np.random.default_rng(seed).permutation(n).astype(np.float64)
    known = np.flatnonzero(labelled.given_labels != UNKNOWN)
    # At most half of the nodes on the map have a given label.
    rank[known[np.argsort(rank[known])[: MAX_NODES_ON_MAP // 2]]] -= n
    rank[[suggestion.node for suggestion in labelled.suggestions]] -= 2 * n
    return np.sort(np.argsort(rank, kind="stable")[:MAX_NODES_ON_MAP])


def node_data(
    labelled: LabelledGraph, positions: npt.NDArray[np.floating], nodes: Indices
) -> dict[str, Any]:
    """JSON object for the script of the page; `positions` (N × 2) are those of all nodes.

    `nodes` are the indices of the nodes on the map.
    """
    probabilities = labelled.probabilities[nodes]
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :MAX_CLASSES_OF_NODE]
    shares = np.round(np.take_along_axis(probabilities, order, axis=1) * 10_000)
    answers = np.full(labelled.graph.n, UNKNOWN)
    answers[labelled.held_out.nodes] = labelled.held_out.probabilities.argmax(axis=1)
    sets, set_of_node = _sets(labelled.sets[nodes])
    names, positive = labelled.graph.names, labelled.positive
    return {
        "classes": [shortened(name) for name in labelled.classes],
        "colours": class_colours(len(labelled.classes)),
        "shapes": list(SHAPES.values()),
        "coverage": labelled.calibration.coverage,
        "names": [
            shortened(names[i], MAX_NODE_NAME_LENGTH) if names else str(i) for i in nodes.tolist()
        ],
        "longest_name": MAX_NODE_NAME_LENGTH,
        "positions": packed(on_grid(np.asarray(positions, dtype=np.float64)[nodes]).ravel()),
        "given": packed(labelled.given_labels[nodes] % 2**16),
        "predicted": packed(order[:, 0]),
        "probability": packed(shares[:, 0]),
        "others": packed(order[:, 1:].ravel()),
        "others_probability": packed(shares[:, 1:].ravel()),
        "held_out": packed(answers[nodes] % 2**16),
        "sets": sets,
        "set": packed(set_of_node),
        "positive": positive,
        "rank": None
        if positive is None
        else packed(node_ranks(labelled.probabilities[:, positive])[nodes], "<u4"),
        **_neighbours(labelled, nodes),
    }


def _neighbours(labelled: LabelledGraph, nodes: Indices) -> dict[str, str | None]:
    """Lists of neighbours, one after the other: those of node k of the page start at `starts[k]`.

    They are numbers of nodes on the page. The largest weights come first, then given labels.
    `weights` is None if all edges have the same; `degree` counts all neighbours.
    """
    adjacency = labelled.graph.adjacency
    edges = adjacency[nodes][:, nodes].tocoo()
    unlabelled = labelled.given_labels[nodes][edges.col] == UNKNOWN
    order = np.lexsort((edges.col, unlabelled, -edges.data, edges.row))
    rows = edges.row[order]
    first = np.searchsorted(rows, np.arange(len(nodes)))
    kept = np.arange(rows.size) - first[rows] < MAX_NEIGHBOURS_LISTED
    counts = np.bincount(rows[kept], minlength=len(nodes))
    weighted = np.ptp(adjacency.data) > 0 if adjacency.nnz else False
    return {
        "degree": packed(np.diff(adjacency.indptr)[nodes], "<u4"),
        "starts": packed(np.concatenate([[0], np.cumsum(counts)]), "<u4"),
        "neighbours": packed(edges.col[order][kept]),
        "weights": packed(edges.data[order][kept], "<f4") if weighted else None,
    }


def on_grid(positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Positions from 0 to 65,535; both axes have one scale, and the shorter one is centred."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = float((high - low).max()) or 1.0
    on_grid: npt.NDArray[np.float64] = (positions - (low + high) / 2) / span * 65_535 + 32_767.5
    return on_grid


def _sets(member: npt.NDArray[np.bool_]) -> tuple[list[list[int] | int], Indices]:
    """Distinct prediction sets (large ones as their size), and the index of every node's set."""
    sizes = member.sum(axis=1)
    kept = member & (sizes <= MAX_CLASSES_LISTED)[:, None]
    keys = np.concatenate([sizes[:, None], np.packbits(kept, axis=1)], axis=1)
    _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    sets: list[list[int] | int] = [
        np.flatnonzero(member[i]).tolist() if sizes[i] <= MAX_CLASSES_LISTED else int(sizes[i])
        for i in first
    ]
    return sets, index.reshape(-1)


def packed(values: npt.NDArray[np.generic], kind: str = "<u2") -> str:
    """Numbers as base64, low byte first; `kind` is a type of NumPy."""
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode("ascii")
