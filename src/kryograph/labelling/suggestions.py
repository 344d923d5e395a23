"""Suggestions: which nodes to label next, and why.

A label tells most where many doubtful nodes are near. With u_j how doubtful the prediction of node
j is (one minus the lead of its most probable class) and R the random walk, node i gets
Σ_j (R²)_{ji} u_j, more if labelled nodes are far. Nodes are taken one by one; each takes away the
doubt around it, so that the next lies elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.operators import operator
from kryograph.systems.base import Probabilities

MAX_HOPS_SCORED = 5
"""From this many hops on, farther does not count as more."""


@dataclass(frozen=True)
class Suggestion:
    """A node worth a label.

    Args:
        node: Its number.
        first: The most probable class, by number.
        second: The one after that.
        lead: By how much the first is more probable.
        hops: To the nearest labelled node; None if none can be reached.
        similar: How many unlabelled nodes within two hops are predicted to be of the first class.
    """

    node: int
    first: int
    second: int
    lead: float
    hops: int | None
    similar: int

    def why(self, classes: tuple[str, ...]) -> str:
        """The reason, in words."""
        doubt = f"{classes[self.first]} or {classes[self.second]}"
        said = f"uncertain ({doubt})" if self.lead < 0.5 else f"rather sure ({doubt})"
        if self.hops is None:
            far = "no labelled node can be reached"
        else:
            far = f"{self.hops} hop{'s' * (self.hops != 1)} from the nearest label"
        return f"{said}; {far}; {self.similar:,} similar node{'s' * (self.similar != 1)} nearby"


def suggest_nodes(
    graph: Graph, given: Indices, probabilities: Probabilities, count: int = 20
) -> list[Suggestion]:
    """The nodes whose labels would tell most, best first."""
    free = given == UNKNOWN
    ordered = np.argsort(-probabilities, axis=1, kind="stable")
    first, second = ordered[:, 0], ordered[:, min(1, ordered.shape[1] - 1)]
    rows = np.arange(graph.n)
    lead = probabilities[rows, first] - probabilities[rows, second]
    hops = hops_to_labels(graph, given)
    away = 0.5 + 0.5 * np.minimum(hops, MAX_HOPS_SCORED) / MAX_HOPS_SCORED
    doubt = np.where(free, 1 - lead, 0.0)
    R = operator(graph, "rw").matrix
    back = R.T.tocsr()
    edges = graph.adjacency
    found = []
    for _ in range(min(count, int(free.sum()))):
        worth = np.where(free, (back @ (back @ doubt)) * away, -1.0)
        node = int(worth.argmax())
        one = neighbours(edges, np.array([node]))
        near = np.union1d(one, np.append(neighbours(edges, one), node))
        like = (given[near] == UNKNOWN) & (first[near] == first[node]) & (near != node)
        found.append(
            Suggestion(
                node,
                int(first[node]),
                int(second[node]),
                float(lead[node]),
                int(hops[node]) if np.isfinite(hops[node]) else None,
                int(like.sum()),
            )
        )
        free = free.copy()
        free[node] = False
        doubt[near] *= 0.5
        doubt[node] = 0.0
    return found


def neighbours(adjacency: sp.csr_array, nodes: Indices) -> Indices:
    """Those of any of the nodes."""
    found: Indices = np.unique(adjacency[nodes].indices).astype(np.int64)
    return found


def hops_to_labels(graph: Graph, given: Indices) -> npt.NDArray[np.float64]:
    """How many edges lie between each node and the nearest labelled one; infinite if no path."""
    labelled = np.flatnonzero(given != UNKNOWN)
    if labelled.size == 0:
        return np.full(graph.n, np.inf)
    hops: npt.NDArray[np.float64] = dijkstra(
        graph.adjacency, directed=False, unweighted=True, indices=labelled, min_only=True
    )
    return hops
