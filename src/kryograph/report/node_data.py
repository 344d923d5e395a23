"""Nodes: what the map of a page knows of each node, packed small.

Numbers are 16 bits each, in base64; places are rounded to a grid of 65,536 × 65,536.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.label import LabelledGraph
from kryograph.report.charts import SHAPES, class_colours, outline
from kryograph.report.html import shortened

NODES_SHOWN = 20_000
"""A map shows at most this many nodes."""

LISTED = 12
"""A prediction set of more classes is shown by its size alone."""

LONGEST_NAME = 120
NONE = 2**16 - 1
"""Stands for no class."""


def nodes_on_map(labelled: LabelledGraph, seed: int = 0) -> Indices:
    """Which nodes the map shows: all, or those suggested, labelled ones, and a random rest."""
    n = labelled.graph.n
    if n <= NODES_SHOWN:
        return np.arange(n)
    rank = np.random.default_rng(seed).permutation(n).astype(np.float64)
    known = np.flatnonzero(labelled.given != UNKNOWN)
    # Half of the map at most is for labelled nodes, however many there are.
    rank[known[np.argsort(rank[known])[: NODES_SHOWN // 2]]] -= n
    rank[[suggestion.node for suggestion in labelled.suggestions]] -= 2 * n
    return np.sort(np.argsort(rank, kind="stable")[:NODES_SHOWN])


def node_data(
    labelled: LabelledGraph, positions: npt.NDArray[np.floating], nodes: Indices
) -> dict[str, Any]:
    """What the script of the page is given of the nodes that the map shows."""
    probabilities = labelled.probabilities[nodes]
    said = np.full(labelled.graph.n, UNKNOWN)
    said[labelled.held_out.nodes] = labelled.held_out.probabilities.argmax(axis=1)
    sets, which = _sets(labelled.sets[nodes])
    names = labelled.graph.names
    return {
        "classes": [shortened(each) for each in labelled.classes],
        "colours": class_colours(len(labelled.classes)),
        "shapes": [outline(shape) for shape in SHAPES],
        "coverage": labelled.calibration.coverage,
        "names": [shortened(names[i], LONGEST_NAME) if names else str(i) for i in nodes.tolist()],
        "places": _packed(_on_grid(np.asarray(positions, dtype=np.float64)[nodes]).ravel()),
        "given": _packed(labelled.given[nodes] % 2**16),
        "predicted": _packed(probabilities.argmax(axis=1)),
        "probability": _packed(np.round(probabilities.max(axis=1) * 10_000)),
        "said": _packed(said[nodes] % 2**16),
        "sets": sets,
        "set": _packed(which),
    }


def _on_grid(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Places from 0 to 65,535, both axes on one scale, each in the middle."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    middle: npt.NDArray[np.float64] = (places - (low + high) / 2) / span * 65_535 + 32_767.5
    return middle


def _sets(member: npt.NDArray[np.bool_]) -> tuple[list[list[int] | int], Indices]:
    """The different prediction sets (of a large one its size), and each node's number of one."""
    sizes = member.sum(axis=1)
    kept = member & (sizes <= LISTED)[:, None]
    keys = np.concatenate([sizes[:, None], np.packbits(kept, axis=1)], axis=1)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    sets: list[list[int] | int] = [
        np.flatnonzero(member[i]).tolist() if sizes[i] <= LISTED else int(sizes[i]) for i in first
    ]
    return sets, which.reshape(-1)


def _packed(values: npt.NDArray[np.generic]) -> str:
    """As unsigned 16-bit numbers, low byte first."""
    return base64.b64encode(np.asarray(values).astype("<u2").tobytes()).decode("ascii")
