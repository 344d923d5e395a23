"""Explanation: why a node is predicted as one class and not as another, as sums that add up.

The number that is explained is the log-odds ln(p_c / p_d) of two calibrated probabilities, those of
`predictions.csv` before rounding. `kryograph.explain` has the mathematics.

Hops, neighbours, nodes and features are four divisions of the same number: the lines of each of
them and the intercept add up to the log-odds. Lines that are not listed by name are summed in one
line, and so is what members of a pool add that cannot be divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kryograph.errors import KryographError, UsageError, unknown
from kryograph.explain.contributions import Contributions, floored
from kryograph.features import is_identity
from kryograph.graph import Graph
from kryograph.labelling.explanation_tables import explanation_tables
from kryograph.labelling.node_names import node_name, node_number
from kryograph.text import quoted, quoted_list

if TYPE_CHECKING:
    from kryograph.labelling.labelled_graph import LabelledGraph

LARGEST_GAP = 1e-4
"""Largest difference of the sum and the log-odds, relative to the log-odds if they exceed 1."""

SMALLEST_CALIBRATED = 1e-12
"""Smallest probability that calibration knows."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a node is predicted as one class and not as another.

    In each of the four tables the column `log_odds` and the intercept add up to the log-odds, and
    `name` describes a line. The other columns are null in lines that sum several.

    Args:
        node: Name of the node.
        classes: The class that is explained and the class that it is compared with.
        probabilities: Their calibrated probabilities.
        log_odds: Logarithm of the quotient of the probabilities.
        intercept: Log-odds if all features in reach were zero.
        hops: Table with a line for each number of hops: hop, name, log_odds.
        neighbours: Table by the edge on which the contribution arrives: node, name, weight,
            log_odds. The node's own line has its own name and no weight.
        nodes: Table of the nodes whose features contribute: node, name, given (its given label or
            null), log_odds.
        features: Table of the features that contribute: feature, name, log_odds.
        members: Table of the members of a pool: member, log_odds, divided (whether its
            contributions are among the lines by name); without lines if there is no pool.
        given_nearest: Table of the most similar labelled nodes: node, label, similarity. They are
            no reasons.
        gap: Sum of a table and the intercept, less the log-odds.
        notes: Sentences about this node.
    """

    node: str
    classes: tuple[str, str]
    probabilities: tuple[float, float]
    log_odds: float
    intercept: float
    hops: pa.Table
    neighbours: pa.Table
    nodes: pa.Table
    features: pa.Table
    members: pa.Table
    given_nearest: pa.Table
    gap: float
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Convert to values for JSON; tables become lists of objects."""
        values = vars(self)
        return {
            name: value.to_pylist()
            if isinstance(value, pa.Table)
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in values.items()
        }


def explain_node(
    labelled: LabelledGraph, node: str | int, against: str | None = None, top: int = 10
) -> Explanation:
    """Explain the prediction of a node.

    Args:
        labelled: The labelled graph.
        node: Name of the node, or its number.
        against: Name of the class to compare with; None for the second most probable one.
        top: Number of lines by name in the tables of neighbours, nodes and features.

    Raises:
        UsageError: If there is no such node or class, or no exact explanation for the system.
        KryographError: If the parts do not add up to the log-odds.
    """
    graph, number = labelled.graph, node_number(labelled.graph, node)
    if top < 1:
        raise UsageError(f"At least one line must be listed by name, not {top}.")
    first, second = _classes(labelled, number, against)
    parts, notes = _parts(labelled, number, first, second)
    pair = labelled.probabilities[number, [first, second]]
    log_odds = float(np.log(max(pair[0], 1e-300)) - np.log(max(pair[1], 1e-300)))
    gap = parts.total - log_odds
    if not abs(gap) <= LARGEST_GAP * max(1.0, abs(log_odds)):
        raise KryographError(
            f"The parts of the explanation of {quoted(node_name(graph, number))} add up to "
            f"{parts.total:.6g}, but the log-odds are {log_odds:.6g}: there is no exact "
            "explanation of this prediction."
        )
    return Explanation(
        node=node_name(graph, number),
        classes=(labelled.classes[first], labelled.classes[second]),
        probabilities=(float(pair[0]), float(pair[1])),
        log_odds=log_odds,
        intercept=float(parts.intercept),
        **explanation_tables(labelled, number, parts, top),
        gap=gap,
        notes=(*notes, *_notes(graph, number, parts)),
    )


def _classes(labelled: LabelledGraph, node: int, against: str | None) -> tuple[int, int]:
    """Numbers of the predicted class and of the class that it is compared with."""
    order = np.argsort(-labelled.probabilities[node], kind="stable")
    first = int(order[0])
    if against is None:
        return first, int(order[1])
    if against not in labelled.classes:
        raise unknown("class", against, labelled.classes)
    second = labelled.classes.index(against)
    if second == first:
        raise UsageError(
            f"{quoted(against)} is the predicted class of {quoted(node_name(labelled.graph, node))}"
            ": compare it with another class."
        )
    return first, second


def _parts(
    labelled: LabelledGraph, node: int, first: int, second: int
) -> tuple[Contributions, list[str]]:
    """Contributions to the log-odds of the calibrated probabilities."""
    form, t = labelled.additive, labelled.calibration.temperature
    logs = form.log_probabilities(node)
    raw = form.contributions(node, first, second).scaled(1 / t)
    parts = floored(raw, logs, first, second, SMALLEST_CALIBRATED, t)
    notes = []
    if parts is not raw:
        notes.append(
            f"The model gives {quoted(labelled.classes[second])} a probability below "
            f"{SMALLEST_CALIBRATED:g}, which counts as that; all contributions are scaled with it."
        )
    if is_identity(labelled.graph.features):  # a feature says which node it is, nothing else
        alone = parts.structure + float(parts.features.sum())
        parts = replace(parts, features=np.zeros(0), structure=alone)
    return parts, notes


def _notes(graph: Graph, node: int, parts: Contributions) -> list[str]:
    name = quoted(node_name(graph, node))
    notes = []
    if not parts.nodes.any():
        notes.append(
            f"There is only the intercept: neither {name} nor a node in its reach has features."
        )
    elif graph.adjacency.indptr[node] == graph.adjacency.indptr[node + 1]:
        notes.append(f"{name} has no neighbour: only its own features contribute.")
    if parts.others:
        names = quoted_list(parts.others)
        noun = "Member" if len(parts.others) == 1 else "Members"
        notes.append(f"{noun} without an exact form, one line in each table: {names}.")
    return notes
