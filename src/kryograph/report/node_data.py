"""Data of the nodes on the page's map, in a compact form for its script.

Numbers have 16 bits each, in base64; positions are rounded to a grid of 65,536 × 65,536.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.charts import SHAPES, class_colours
from kryograph.report.html import shortened

MAX_NODES_ON_MAP = 20_000

MAX_CLASSES_LISTED = 12
"""Of a prediction set with more classes only the size is stored."""

MAX_NODE_NAME_LENGTH = 120

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
    answers = np.full(labelled.graph.n, UNKNOWN)
    answers[labelled.held_out.nodes] = labelled.held_out.probabilities.argmax(axis=1)
    sets, set_of_node = _sets(labelled.sets[nodes])
    names = labelled.graph.names
    return {
        "classes": [shortened(name) for name in labelled.classes],
        "colours": class_colours(len(labelled.classes)),
        "shapes": list(SHAPES.values()),
        "coverage": labelled.calibration.coverage,
        "names": [
            shortened(names[i], MAX_NODE_NAME_LENGTH) if names else str(i) for i in nodes.tolist()
        ],
        "positions": packed(on_grid(np.asarray(positions, dtype=np.float64)[nodes]).ravel()),
        "given": packed(labelled.given_labels[nodes] % 2**16),
        "predicted": packed(probabilities.argmax(axis=1)),
        "probability": packed(np.round(probabilities.max(axis=1) * 10_000)),
        "held_out": packed(answers[nodes] % 2**16),
        "sets": sets,
        "set": packed(set_of_node),
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


def packed(values: npt.NDArray[np.generic]) -> str:
    """Unsigned 16-bit numbers, low byte first, as base64."""
    return base64.b64encode(np.asarray(values).astype("<u2").tobytes()).decode("ascii")
