"""Tables of an explanation: hops, neighbours, nodes, features, members, similar labelled nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from kryograph.explain.contributions import Contributions, Values
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.node_names import arrow_texts, node_name
from kryograph.text import plural

if TYPE_CHECKING:
    from kryograph.labelling.labelled_graph import LabelledGraph

NEAREST = 5
"""Number of labelled nodes that are listed as most similar."""

NO_FEATURE = "position in the graph"
"""Line for what the edges alone contribute."""

Lines: TypeAlias = list[tuple[str, float]]
"""Names and values of lines that stand for no single node or feature."""


def explanation_tables(
    labelled: LabelledGraph, node: int, parts: Contributions, top: int
) -> dict[str, pa.Table]:
    """Build the tables of an `Explanation` by the names of its fields."""
    others = _others(parts)
    return {
        "hops": _hop_table(parts.hops, others),
        "neighbours": _neighbour_table(labelled.graph, node, parts.neighbours, top, others),
        "nodes": _node_table(labelled, parts.nodes, top, others),
        "features": _feature_table(labelled, parts, top, others),
        "members": _member_table(parts),
        "given_nearest": _nearest_table(labelled, node),
    }


def _others(parts: Contributions) -> Lines:
    """The line for members of a pool that cannot be divided; none if there are none."""
    if not parts.others:
        return []
    names = ", ".join(dict.fromkeys(name.partition(":")[0] for name in parts.others))
    return [(f"members without an exact form: {names}", float(sum(parts.others.values())))]


def _hop_table(hops: Values, others: Lines) -> pa.Table:
    names = ["own features", *(plural(k, "hop") for k in range(1, hops.size))]
    rest = [None] * len(others)
    return pa.table(
        {
            "hop": pa.array([*range(hops.size), *rest], pa.int64()),
            "name": [*names, *(name for name, _ in others)],
            "log_odds": [*hops.tolist(), *(value for _, value in others)],
        }
    )


def _strongest(values: Values, top: int) -> tuple[list[int], float, int]:
    """Indices of the largest absolute values, the sum of the other values, and their number."""
    strongest = np.argsort(-abs(values), kind="stable")[:top]
    kept = strongest[values[strongest] != 0]
    rest = np.delete(values, kept)
    return kept.tolist(), float(rest.sum()), int(np.count_nonzero(rest))


def _lines(
    values: Values, top: int, noun: str, others: Lines
) -> tuple[list[int], list[str], list[float]]:
    """Indices of the lines by name; then names and values of the lines that sum others."""
    kept, rest, count = _strongest(values, top)
    sums = [(plural(count, f"other {noun}"), rest)] if count else []
    sums += others
    return kept, [name for name, _ in sums], [value for _, value in sums]


def _neighbour_table(graph: Graph, node: int, values: Values, top: int, others: Lines) -> pa.Table:
    """The node's own part first, then its neighbours."""
    through_edges = values.copy()
    through_edges[node] = 0.0
    kept, names, sums = _lines(through_edges, top, "neighbour", others)
    rest: list[Any] = [None] * len(names)
    own = [node_name(graph, u) for u in [node, *kept]]
    return pa.table(
        {
            "node": arrow_texts([*own, *rest]),
            "name": arrow_texts([f"{own[0]} (itself)", *own[1:], *names]),
            "weight": pa.array(
                [None, *(float(graph.adjacency[node, u]) for u in kept), *rest], pa.float64()
            ),
            "log_odds": pa.array([*values[[node, *kept]].tolist(), *sums], pa.float64()),
        }
    )


def _node_table(labelled: LabelledGraph, values: Values, top: int, others: Lines) -> pa.Table:
    kept, names, sums = _lines(values, top, "node", others)
    rest: list[Any] = [None] * len(names)
    own = [node_name(labelled.graph, u) for u in kept]
    labels = labelled.given_labels[kept].tolist()
    known = [None if c == UNKNOWN else labelled.classes[c] for c in labels]
    return pa.table(
        {
            "node": arrow_texts([*own, *rest]),
            "name": arrow_texts([*own, *names]),
            "given": arrow_texts([*known, *rest]),
            "log_odds": pa.array([*values[kept].tolist(), *sums], pa.float64()),
        }
    )


def _feature_table(
    labelled: LabelledGraph, parts: Contributions, top: int, others: Lines
) -> pa.Table:
    names, values = _by_name(labelled, parts.features)
    more = [(NO_FEATURE, float(parts.structure))] if parts.structure else []
    kept, sum_names, sums = _lines(values, top, "feature", more + others)
    rest: list[Any] = [None] * len(sum_names)
    own = [names[f] for f in kept]
    return pa.table(
        {
            "feature": arrow_texts([*own, *rest]),
            "name": arrow_texts([*own, *sum_names]),
            "log_odds": pa.array([*values[kept].tolist(), *sums], pa.float64()),
        }
    )


def _by_name(labelled: LabelledGraph, values: Values) -> tuple[list[str], Values]:
    """Names and contributions of the features; the entries of a vector are one feature."""
    if labelled.feature_names is None or not values.size:
        return [f"feature {f}" for f in range(values.size)], values
    numbers: dict[str, int] = {}
    owner = [numbers.setdefault(vector_name(name), len(numbers)) for name in labelled.feature_names]
    totals = np.zeros(len(numbers))
    np.add.at(totals, owner, values)
    return list(numbers), totals


def vector_name(feature: str) -> str:
    """Name of the vector of which a feature is an entry; other features keep their name.

    >>> vector_name("embedding[17]"), vector_name("age"), vector_name("tag = a[b]")
    ('embedding', 'age', 'tag = a[b]')
    """
    name, bracket, index = feature.removesuffix("]").rpartition("[")
    is_entry = bracket and feature.endswith("]") and index.isdecimal()
    return name if is_entry else feature


def _member_table(parts: Contributions) -> pa.Table:
    members = sorted(parts.members.items(), key=lambda pair: -abs(pair[1]))
    return pa.table(
        {
            "member": pa.array([name for name, _ in members], pa.string()),
            "log_odds": pa.array([float(value) for _, value in members], pa.float64()),
            "divided": pa.array([name not in parts.others for name, _ in members], pa.bool_()),
        }
    )


def _nearest_table(labelled: LabelledGraph, node: int) -> pa.Table:
    """The labelled nodes with the largest cosine of the hidden representation."""
    known = np.flatnonzero(labelled.given_labels != UNKNOWN)
    known = known[known != node]
    cosines = labelled.additive.similarity(node, known)
    nearest = np.argsort(-cosines, kind="stable")[:NEAREST]
    labels = labelled.given_labels[known[nearest]].tolist()
    return pa.table(
        {
            "node": arrow_texts([node_name(labelled.graph, u) for u in known[nearest].tolist()]),
            "label": arrow_texts([labelled.classes[c] for c in labels]),
            "similarity": pa.array(cosines[nearest].tolist(), pa.float64()),
        }
    )
