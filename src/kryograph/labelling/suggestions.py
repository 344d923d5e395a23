"""Suggestions: which nodes to label next, and why.

`choose_nodes` of `suggestion_rules` chooses the nodes; here they get their reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from kryograph.basis import Basis
from kryograph.graph import UNKNOWN, Graph, Indices
from kryograph.labelling.suggestion_rules import DEFAULT_RULE, choose_nodes
from kryograph.operators import operator
from kryograph.systems.base import Probabilities
from kryograph.text import plural


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
    graph: Graph,
    labels: Indices,
    probabilities: Probabilities,
    count: int = 20,
    *,
    basis: Basis | None = None,
    among: Indices | None = None,
    rule: str = DEFAULT_RULE,
    seed: int = 0,
) -> list[Suggestion]:
    """Choose the unlabelled nodes whose labels would be most useful, the best one first.

    Args:
        graph: The graph.
        labels: N class numbers, `UNKNOWN` for unlabelled nodes.
        probabilities: Class probabilities of all nodes, N × C.
        count: Largest number of suggestions.
        basis: Basis of the graph; None computes what the rule needs, which takes most of the time.
        among: Numbers of the nodes that may be suggested; None for all unlabelled ones.
        rule: A key of `suggestion_rules.SUGGESTION_RULES`.
        seed: Determines random nodes, and the sample of nodes that is compared in a graph of more
            than `MOST_COMPARED` nodes.
    """
    if count < 1:
        return []
    basis = Basis(graph) if basis is None else basis
    nodes = choose_nodes(
        basis, labels, probabilities, count, among=among, rule=rule, seed=seed
    ).tolist()
    unlabelled = labels == UNKNOWN
    order = np.argsort(-probabilities, axis=1, kind="stable")
    first, second = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    hops = hops_to_labels(graph, labels)
    one_hop = operator(graph, "affinity").matrix
    suggestions = []
    for node in nodes:
        near = (one_hop[[node]] @ one_hop).indices
        similar = unlabelled[near] & (first[near] == first[node]) & (near != node)
        lead = probabilities[node, first[node]] - probabilities[node, second[node]]
        suggestions.append(
            Suggestion(
                node=node,
                first=int(first[node]),
                second=int(second[node]),
                lead=float(lead),
                hops=int(hops[node]) if np.isfinite(hops[node]) else None,
                similar=int(similar.sum()),
            )
        )
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
