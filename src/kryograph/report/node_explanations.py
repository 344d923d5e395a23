"""Explanations of some nodes, computed in advance for the panel of the page."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kryograph.errors import KryographError, UsageError
from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.explanation_page import explanation_data

MAX_DOUBTFUL = 20
"""Number of unlabelled nodes that are explained: those with the lowest probabilities."""

MAX_DISPUTED = 20
"""Number of disputed labels whose nodes are explained."""

MAX_SECONDS = 2.0
"""No explanation begins later than this after the first, which prepares what all of them need.

Forty explanations for a graph of a few hundred nodes take half a second.
"""


@dataclass(frozen=True)
class NodeExplanations:
    """Explanations of nodes on the page.

    Args:
        data: What `explanation_data` returns, by the number of the node on the page.
        refusal: Sentence that says why there is none; None if there may be some.
    """

    data: dict[int, dict[str, Any]]
    refusal: str | None = None


def explain_nodes(
    labelled: LabelledGraph, nodes: Indices, seconds: float = MAX_SECONDS
) -> NodeExplanations:
    """Explain the most doubtful nodes and those whose labels are disputed.

    Args:
        labelled: The labelled graph.
        nodes: Numbers of the nodes on the page.
        seconds: Time after the first explanation at which no further one begins.
    """
    end = math.inf
    data: dict[int, dict[str, Any]] = {}
    for place in nodes_to_explain(labelled, nodes):
        if time.perf_counter() > end:
            break
        try:
            data[place] = explanation_data(labelled.explain(int(nodes[place])))
        except UsageError as error:
            return NodeExplanations({}, str(error))
        except KryographError:  # the parts of this node do not add up; `explain` says so
            pass
        end = min(end, time.perf_counter() + seconds)
    return NodeExplanations(data)


def nodes_to_explain(labelled: LabelledGraph, nodes: Indices) -> list[int]:
    """Numbers on the page of disputed and doubtful nodes, by turns; the first are most urgent."""
    place = {node: k for k, node in enumerate(nodes.tolist())}
    disputed = [place[one.node] for one in labelled.disputed if one.node in place][:MAX_DISPUTED]
    free = np.flatnonzero(labelled.given_labels[nodes] == UNKNOWN)
    doubt = labelled.probabilities[nodes[free]].max(axis=1)
    doubtful = free[np.argsort(doubt, kind="stable")[:MAX_DOUBTFUL]].tolist()
    turns = [pair for turn in zip(doubtful, disputed, strict=False) for pair in turn]
    return list(dict.fromkeys([*turns, *doubtful, *disputed]))
