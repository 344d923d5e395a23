"""Suggestions: which nodes to label next, and why.

A label is most useful where many uncertain nodes are near. Let u_j be the uncertainty of node j
(one minus the lead of its most probable class) and R the random walk. The score of node i is
Σ_j (R²)_{ji} u_j, larger if the nearest labelled node is far. Nodes are chosen one by one; each
choice lowers the uncertainty around it, so that the next node lies elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.operators import operator
from kryograph.systems.base import Probabilities
from kryograph.text import plural

MAX_HOPS_SCORED = 5
"""Number of hops to the nearest label from which on more hops do not raise the score."""


@dataclass(frozen=True)
class Suggestion:
    """A node whose label would be useful.

    Args:
        node: Number of the node.
        first: Number of its most probable class.
        second: Number of its second most probable class.
        lead: Difference of the probabilities of the two classes.
        hops: Number of edges to the nearest labelled node; None if no such node can be reached.
        similar: Number of unlabelled nodes within two hops that are predicted as the first class.
    """

    node: int
    first: int
    second: int
    lead: float
    hops: int | None
    similar: int

    def why(self, classes: tuple[str, ...]) -> str:
        """State the reason for the suggestion in words; `classes` are the names of all classes."""
        doubt = f"{classes[self.first]} or {classes[self.second]}"
        certainty = "uncertain" if self.lead < 0.5 else "rather sure"
        if self.hops is None:
            distance = "no labelled node can be reached"
        else:
            distance = f"{plural(self.hops, 'hop')} from the nearest label"
        return f"{certainty} ({doubt}); {distance}; {plural(self.similar, 'similar node')} nearby"


def suggest_nodes(
    graph: Graph, labels: Indices, probabilities: Probabilities, count: int = 20
) -> list[Suggestion]:
    """Choose the unlabelled nodes whose labels would be most useful, the best one first.

    Args:
        graph: The graph.
        labels: N class numbers, `UNKNOWN` for unlabelled nodes.
        probabilities: Class probabilities of all nodes.
        count: Largest number of suggestions.
    """
    unlabelled = labels == UNKNOWN
    order = np.argsort(-probabilities, axis=1, kind="stable")
    first, second = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    rows = np.arange(graph.n)
    lead = probabilities[rows, first] - probabilities[rows, second]
    hops = hops_to_labels(graph, labels)
    distance_factor = 0.5 + 0.5 * np.minimum(hops, MAX_HOPS_SCORED) / MAX_HOPS_SCORED
    uncertainty = np.where(unlabelled, 1 - lead, 0.0)
    available = unlabelled.copy()
    transposed = operator(graph, "rw").matrix.T.tocsr()
    one_hop = operator(graph, "affinity").matrix
    suggestions = []
    for _ in range(min(count, int(unlabelled.sum()))):
        gathered = transposed @ (transposed @ uncertainty)
        node = int(np.where(available, gathered * distance_factor, -1.0).argmax())
        near = (one_hop[[node]] @ one_hop).indices
        similar = unlabelled[near] & (first[near] == first[node]) & (near != node)
        suggestions.append(
            Suggestion(
                node=node,
                first=int(first[node]),
                second=int(second[node]),
                lead=float(lead[node]),
                hops=int(hops[node]) if np.isfinite(hops[node]) else None,
                similar=int(similar.sum()),
            )
        )
        available[node] = False
        uncertainty[near] *= 0.5
        uncertainty[node] = 0.0
    return suggestions


def hops_to_labels(graph: Graph, labels: Indices) -> npt.NDArray[np.float64]:
    """Number of edges between each node and the nearest labelled one; infinite without a path."""
    labelled = np.flatnonzero(labels != UNKNOWN)
    if labelled.size == 0:
        return np.full(graph.n, np.inf)
    hops: npt.NDArray[np.float64] = dijkstra(
        graph.adjacency, directed=False, unweighted=True, indices=labelled, min_only=True
    )
    return hops
