from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.cross_validation import HeldOut
from kryograph.report.facts import (
    components,
    confusion,
    degree_bins,
    degrees,
    homophily,
    most_frequent,
    set_sizes,
)
from tests.report.labelled_graphs import fitted

# A path of four, a pair, and a node alone.
GRAPH = Graph.from_edges([[0, 1, 2, 4], [1, 2, 3, 5]], n=7)


def test_degrees_and_components_of_a_graph_that_can_be_counted() -> None:
    assert degrees(GRAPH).tolist() == [1, 2, 2, 1, 1, 1, 0]
    assert components(GRAPH) == 3
    assert degree_bins(degrees(GRAPH)) == [("0", 1), ("1", 4), ("2", 2)]


def test_homophily_counts_edges_between_labelled_nodes_once() -> None:
    given = np.array([0, 0, 1, UNKNOWN, 1, 1, 0])
    assert homophily(GRAPH, given) == (pytest.approx(2 / 3), 3)
    assert homophily(GRAPH, np.full(7, UNKNOWN)) == (None, 0)


def test_every_node_is_in_one_bin_of_degrees() -> None:
    many = np.arange(1000)
    bins = degree_bins(many)
    assert sum(count for _, count in bins) == 1000
    assert bins[-1] == ("513–1,024", 487)


def test_confusion_of_answers_that_can_be_counted() -> None:
    labelled = fitted(classes=3)
    given = np.full(300, UNKNOWN)
    given[:5] = [0, 0, 0, 1, 2]
    answers = np.eye(3)[[0, 0, 1, 1]]  # of nodes 0 to 3; class 2 was not asked about
    held = HeldOut(np.arange(4), given[:4], answers, np.ones(4))
    labelled = replace(labelled, given_labels=given, held_out=held)
    assert confusion(labelled).tolist() == [[2, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_sizes_of_sets_are_those_of_nodes_without_a_label() -> None:
    labelled = fitted()
    sizes = set_sizes(labelled)
    assert len(sizes) == 4
    assert sizes.sum() == 260
    wide = replace(labelled, calibration=replace(labelled.calibration, threshold=0.0))
    assert set_sizes(wide).tolist() == [0, 0, 0, 260]


def test_the_most_frequent_keep_their_order() -> None:
    assert most_frequent(np.array([5, 1, 9, 5]), 3).tolist() == [0, 2, 3]
