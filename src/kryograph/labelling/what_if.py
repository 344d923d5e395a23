"""What-if questions: the prediction of a node after a change of edges, features or labels.

Edges and features are changed in the graph of the fit, and the fitted system predicts again. It is
not trained again, so that the change of the prediction is due to this change alone. A label that is
withdrawn or given can only act by training: the system is fitted again with the same seed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from kryograph.errors import UsageError, unknown
from kryograph.graph import UNKNOWN, Features, Graph
from kryograph.labelling.node_names import node_name, node_number
from kryograph.labelling.table_columns import columns_named, stored_recipe, value_of_cell
from kryograph.systems.base import Probabilities
from kryograph.text import quoted, quoted_list

if TYPE_CHECKING:
    from kryograph.labelling.labelled_graph import LabelledGraph


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The prediction of a node before and after a change.

    Args:
        node: Name of the node.
        classes: Names of all classes.
        before: Calibrated probabilities before the change, C.
        after: The same after the change.
        changes: Sentences on what was changed.
        refitted: Whether the system was fitted again; otherwise only its prediction was computed
            again.
        notes: Sentences on what the new prediction does not take into account.
    """

    node: str
    classes: tuple[str, ...]
    before: Probabilities
    after: Probabilities
    changes: tuple[str, ...]
    refitted: bool
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Convert to values for JSON; probabilities by the names of the classes."""
        names = self.classes
        return {
            "node": self.node,
            "changes": list(self.changes),
            "refitted": self.refitted,
            "predicted_before": names[int(self.before.argmax())],
            "predicted_after": names[int(self.after.argmax())],
            "before": dict(zip(names, self.before.tolist(), strict=True)),
            "after": dict(zip(names, self.after.tolist(), strict=True)),
            "notes": list(self.notes),
        }


def predict_changed(
    labelled: LabelledGraph,
    node: str | int,
    *,
    without_edge: Sequence[str | int] = (),
    values: Mapping[str, str] | None = None,
    without_feature: Sequence[str] = (),
    without_label: Sequence[str | int] = (),
    label_as: Mapping[str | int, str] | None = None,
) -> WhatIf:
    """Predict a node after changes, which may be combined.

    Args:
        labelled: The labelled graph.
        node: Name or number of the node.
        without_edge: Neighbours of the node; the edges to them are removed.
        values: New values of columns of the table for this node, as text, by column. Without a
            table columns are called "feature 0", "feature 1", ….
        without_feature: Columns, or single features such as "word gene", that are set to zero for
            all nodes: for a word or a category its absence, for a number the mean.
        without_label: Nodes whose given label is withdrawn; the system is fitted again.
        label_as: Classes that are given to nodes as their labels, by node; the system is fitted
            again.

    Raises:
        UsageError: If nothing is changed, a name is unknown, or the system cannot predict a
            changed graph.
    """
    number = node_number(labelled.graph, node)
    changes: list[str] = []
    notes: list[str] = []
    graph = _without_edges(labelled.graph, number, without_edge, changes)
    for column, value in (values or {}).items():
        graph = _with_value(labelled, graph, number, column, value, changes, notes)
    dropped = [f for name in without_feature for f in columns_named(labelled, name)]
    changes += [f"without {quoted(name)} in all nodes" for name in without_feature]
    labels = _changed_labels(labelled, without_label, label_as or {}, changes)
    if not changes:
        raise UsageError("Nothing is changed: name an edge, a value, a feature or a label.")
    before = labelled.probabilities[number]
    if labels is not None:
        graph = _with_features(graph, without_columns(graph.features, dropped))
        after = labelled.refitted(graph, labels, suggestions=0).probabilities[number]
    else:
        model = labelled.model
        prepared = model.prepared(graph)
        prepared = _with_features(prepared, without_columns(prepared.features, dropped))
        raw = model.system.apply_changed(
            model.weights, model.prepared(labelled.graph), prepared, len(labelled.classes)
        )
        after = labelled.calibration.probabilities(raw)[number]
        kept = model.system.not_recomputed(model.weights)
        if kept:
            notes.append(
                f"{quoted_list(kept)}: this part of the pool cannot be computed again, so its "
                "prediction stays as it was."
            )
    name = node_name(labelled.graph, number)
    refitted = labels is not None
    return WhatIf(name, labelled.classes, before, after, tuple(changes), refitted, tuple(notes))


def _without_edges(
    graph: Graph, node: int, others: Sequence[str | int], changes: list[str]
) -> Graph:
    """Remove the edges between a node and some of its neighbours."""
    if not others:
        return graph
    adjacency = sp.lil_array(graph.adjacency)
    near = graph.adjacency[[node]].indices.tolist()
    for other in others:
        number = node_number(graph, other)
        if number not in near:
            names = quoted_list(node_name(graph, u) for u in near[:10])
            more = ", …" if len(near) > 10 else ""
            known = f"its neighbours are {names}{more}" if near else "it has no neighbour"
            raise UsageError(
                f"{quoted(node_name(graph, node))} has no edge to "
                f"{quoted(node_name(graph, number))}: {known}."
            )
        adjacency[node, number] = adjacency[number, node] = 0
        changes.append(f"without the edge to {quoted(node_name(graph, number))}")
    return Graph(adjacency.tocsr(), graph.features, graph.names, graph.cleaning)


def _with_value(
    labelled: LabelledGraph,
    graph: Graph,
    node: int,
    column: str,
    value: str,
    changes: list[str],
    notes: list[str],
) -> Graph:
    """Give a node another value in one column of its table."""
    if stored_recipe(labelled) is None:
        features = columns_named(labelled, column)
        try:
            entries = np.array([float(value)])
        except ValueError:
            raise UsageError(f"{quoted(column)} is a number, not {quoted(value)}.") from None
        if not np.isfinite(entries).all():
            raise UsageError(f"{quoted(column)} must be finite; it is {quoted(value)}.")
    else:
        features, entries, own_notes = value_of_cell(labelled, column, value)
        notes += own_notes
    changes.append(f"{column} = {value}")
    return _with_features(graph, with_row_entries(graph.features, node, features, entries))


def with_row_entries(
    x: Features, row: int, columns: Sequence[int], entries: np.ndarray
) -> Features:
    """Copy a matrix and replace some entries of one row."""
    if isinstance(x, sp.csr_array):
        changed = sp.lil_array(x)
        changed[row, list(columns)] = entries
        return sp.csr_array(changed.tocsr())
    copy = np.array(x)
    copy[row, list(columns)] = entries
    return copy


def without_columns(x: Features, columns: Collection[int]) -> Features:
    """Copy a matrix and set some columns to zero."""
    if not columns:
        return x
    kept = np.ones(x.shape[1])
    kept[list(columns)] = 0.0
    return sp.csr_array(x @ sp.diags_array(kept)) if isinstance(x, sp.csr_array) else x * kept


def _with_features(graph: Graph, features: Features) -> Graph:
    return Graph(graph.adjacency, features, graph.names, graph.cleaning)


def _changed_labels(
    labelled: LabelledGraph,
    without_label: Sequence[str | int],
    label_as: Mapping[str | int, str],
    changes: list[str],
) -> np.ndarray | None:
    """Return the given labels after the change; None if none of them is changed."""
    if not without_label and not label_as:
        return None
    graph, labels = labelled.graph, labelled.given_labels.copy()
    for node in without_label:
        number = node_number(graph, node)
        if labels[number] == UNKNOWN:
            raise UsageError(
                f"{quoted(node_name(graph, number))} has no given label to withdraw: predicted "
                "labels are not learned from."
            )
        labels[number] = UNKNOWN
        changes.append(f"without the label of {quoted(node_name(graph, number))}")
    for node, label in label_as.items():
        number = node_number(graph, node)
        if label not in labelled.classes:
            raise unknown("class", label, labelled.classes)
        labels[number] = labelled.classes.index(label)
        changes.append(f"{quoted(node_name(graph, number))} labelled as {quoted(label)}")
    return labels
