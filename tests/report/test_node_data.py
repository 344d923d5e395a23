from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.node_data import (
    MAX_CLASSES_OF_NODE,
    MAX_NODES_ON_MAP,
    NO_CLASS,
    node_data,
    nodes_on_map,
)
from tests.report.labelled_graphs import embedded_nodes, fitted, large, lopsided, page_of, places


def data_of(labelled: LabelledGraph, **changes: Any) -> dict[str, Any]:
    positions = changes.get("positions", places(labelled))
    return node_data(labelled, positions, nodes_on_map(labelled))


def unpacked(packed: str, kind: str = "<u2") -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(packed), dtype=kind)


def test_node_data_has_what_was_given_predicted_and_held_out() -> None:
    labelled = fitted()
    data = data_of(labelled)
    assert data["names"] == [f"n{i}" for i in range(300)]
    given = unpacked(data["given"])
    assert np.array_equal(
        np.where(given == NO_CLASS, UNKNOWN, given.astype(int)), labelled.given_labels
    )
    assert np.array_equal(unpacked(data["predicted"]), labelled.probabilities.argmax(axis=1))
    confidence = unpacked(data["probability"]) / 10_000
    assert np.abs(confidence - labelled.probabilities.max(axis=1)).max() <= 0.5e-4
    answers = unpacked(data["held_out"])
    held = labelled.held_out.nodes
    assert np.array_equal(np.flatnonzero(answers != NO_CLASS), held)
    assert np.array_equal(answers[held] == labelled.given_labels[held], labelled.held_out.right)
    for node, index in enumerate(unpacked(data["set"])):
        assert data["sets"][index] == np.flatnonzero(labelled.sets[node]).tolist()


def test_node_data_has_the_highest_probabilities_of_each_node() -> None:
    labelled = large(200, classes=9)
    data = data_of(labelled)
    more = MAX_CLASSES_OF_NODE - 1
    classes = unpacked(data["others"]).reshape(200, more)
    shares = unpacked(data["others_probability"]).reshape(200, more) / 10_000
    order = np.argsort(-labelled.probabilities, axis=1, kind="stable")
    assert np.array_equal(classes, order[:, 1 : 1 + more])
    expected = np.take_along_axis(labelled.probabilities, order, axis=1)[:, 1 : 1 + more]
    assert np.abs(shares - expected).max() <= 0.5e-4


def test_node_data_has_ranks_if_there_are_two_classes() -> None:
    labelled = lopsided()
    data = data_of(labelled)
    assert data["positive"] == 1
    ranks = unpacked(data["rank"], "<u4")
    assert ranks[labelled.probabilities[:, 1].argmax()] == 1
    assert ranks.max() <= labelled.graph.n
    assert data_of(fitted())["rank"] is None


def lists_of(data: dict[str, Any]) -> list[list[int]]:
    starts = unpacked(data["starts"], "<u4")
    return [part.tolist() for part in np.split(unpacked(data["neighbours"]), starts[1:-1])]


def test_node_data_lists_heavy_edges_first_and_labelled_nodes_before_others() -> None:
    star = np.array([[0] * 14, range(1, 15)])
    weights = [1.0] * 12 + [3.0, 2.0]
    graph = Graph.from_edges(star, 15, weights=weights, features=np.ones((15, 1)))
    given = np.full(15, UNKNOWN)
    given[[5, 7]] = 0
    labelled = replace(
        large(15),
        graph=graph,
        given_labels=given,
        held_out=HeldOut(np.array([5, 7]), np.array([0, 0]), np.eye(7)[:2], np.ones(2)),
    )
    data = node_data(labelled, np.zeros((15, 2)), np.arange(15))
    lists = lists_of(data)
    assert lists[0] == [13, 14, 5, 7, 1, 2, 3, 4, 6, 8, 9, 10]
    assert lists[1:] == [[0]] * 14
    assert unpacked(data["degree"], "<u4").tolist() == [14] + [1] * 14
    assert unpacked(data["weights"], "<f4")[:4].tolist() == [3.0, 2.0, 1.0, 1.0]
    part = node_data(labelled, np.zeros((15, 2)), np.array([0, 14]))
    assert lists_of(part) == [[1], [0]]
    assert unpacked(part["degree"], "<u4").tolist() == [14, 1]


def test_node_data_has_no_weights_if_all_edges_have_the_same() -> None:
    assert data_of(fitted())["weights"] is None


def test_node_data_keeps_the_proportions_of_positions() -> None:
    labelled = fitted()
    wide = np.stack([np.linspace(-3, 7, 300), np.linspace(0, 5, 300)], axis=1)
    packed = data_of(labelled, positions=wide)["positions"]
    spans = np.ptp(unpacked(packed).reshape(-1, 2).astype(float), axis=0)
    assert spans == pytest.approx([65535, 65535 / 2], abs=1)
    same = unpacked(data_of(labelled, positions=np.zeros((300, 2)))["positions"])
    assert len(set(same.tolist())) == 1


def test_node_data_has_only_the_size_of_a_large_prediction_set() -> None:
    labelled = large(500, classes=30)
    everything = replace(labelled, calibration=replace(labelled.calibration, threshold=0.0))
    assert data_of(everything)["sets"] == [30]


def test_node_data_numbers_nodes_without_names() -> None:
    labelled = fitted()
    data = data_of(replace(labelled, graph=replace(labelled.graph, names=None)))
    assert data["names"][:3] == ["0", "1", "2"]


def test_nodes_on_map_are_all_nodes_of_a_graph_up_to_the_limit() -> None:
    text = page_of(large(MAX_NODES_ON_MAP))
    assert len(text.encode()) < 3_000_000
    assert len(embedded_nodes(text)["names"]) == MAX_NODES_ON_MAP
    assert "The map shows" not in text


def test_a_page_with_long_names_and_many_weighted_edges_is_not_too_large() -> None:
    n = MAX_NODES_ON_MAP
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(
        rng.integers(0, n, size=(2, 15 * n)),
        n,
        weights=rng.lognormal(size=15 * n),
        features=np.ones((n, 1)),
        names=[f"https://example.org/{i:06d}/" + "x" * 90 for i in range(n)],
    )
    text = page_of(replace(large(n), graph=graph))
    assert len(text.encode()) < 6_000_000


def test_nodes_on_map_of_a_larger_graph_are_some_and_the_page_says_so() -> None:
    labelled = replace(large(30_000), suggestions=fitted().suggestions)
    text = page_of(labelled)
    assert "The map shows 20,000 of 30,000 nodes" in text
    names = embedded_nodes(text)["names"]
    assert len(names) == len(set(names)) == MAX_NODES_ON_MAP
    known = {f"node-{i:06d}" for i in np.flatnonzero(labelled.given_labels != UNKNOWN)}
    assert known <= set(names)
    jumps = re.findall('data-node="([0-9]+)"', text.partition('id="disputed"')[0])
    assert [names[int(index)] for index in jumps] == [
        f"node-{suggestion.node:06d}" for suggestion in labelled.suggestions
    ]
    assert page_of(labelled) == text


def test_nodes_on_map_leave_room_for_unlabelled_nodes() -> None:
    labelled = large(30_000)
    truth = labelled.probabilities.argmax(axis=1)
    given = np.where(np.arange(30_000) < 25_000, truth, UNKNOWN)
    nodes = nodes_on_map(replace(labelled, given_labels=given))
    assert (given[nodes] == UNKNOWN).sum() >= 2_000
