from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.graph import UNKNOWN
from kryograph.report.node_data import nodes_on_map
from kryograph.report.node_explanations import (
    MAX_DISPUTED,
    MAX_DOUBTFUL,
    explain_nodes,
    nodes_to_explain,
)
from tests.report.labelled_graphs import fitted, lopsided


def test_doubtful_and_disputed_nodes_are_chosen_by_turns() -> None:
    labelled = fitted()
    chosen = nodes_to_explain(labelled, nodes_on_map(labelled))
    free = np.flatnonzero(labelled.given_labels == UNKNOWN)
    doubtful = free[np.argsort(labelled.probabilities[free].max(axis=1), kind="stable")]
    disputed = [one.node for one in labelled.disputed]
    assert disputed
    assert chosen[:3] == [doubtful[0], disputed[0], doubtful[1]]
    assert set(chosen) == {*doubtful[:MAX_DOUBTFUL].tolist(), *disputed[:MAX_DISPUTED]}
    assert len(chosen) == len(set(chosen))


def test_only_nodes_of_the_page_are_chosen_and_numbered_by_their_place() -> None:
    labelled = fitted()
    nodes = np.arange(100, 300)
    chosen = nodes_to_explain(labelled, nodes)
    assert max(chosen) < len(nodes)
    data = explain_nodes(labelled, nodes).data
    assert set(data) == set(chosen)
    assert all(one["node"] == f"n{nodes[place]}" for place, one in data.items())


def test_the_lines_of_every_division_add_up_to_the_log_odds() -> None:
    labelled = fitted()
    explained = explain_nodes(labelled, nodes_on_map(labelled))
    assert explained.refusal is None
    for one in explained.data.values():
        for division in ("hops", "neighbours", "nodes", "features"):
            total = one["intercept"] + sum(value for _, value in one[division])
            assert total == pytest.approx(one["log_odds"], abs=1e-4)


def test_a_system_without_exact_form_says_so() -> None:
    labelled = lopsided()
    explained = explain_nodes(labelled, nodes_on_map(labelled))
    assert explained.data == {}
    assert explained.refusal is not None
    assert explained.refusal.startswith("There is no exact explanation for trees")


def test_a_node_whose_parts_do_not_add_up_is_left_out() -> None:
    labelled = fitted()
    nodes = nodes_on_map(labelled)
    wrong = nodes_to_explain(labelled, nodes)[0]
    changed = labelled.probabilities.copy()
    changed[wrong] = [0.26, 0.25, 0.25, 0.24]
    data = explain_nodes(replace(labelled, probabilities=changed), nodes).data
    assert wrong not in data
    assert data


def test_no_explanation_begins_after_the_time_is_over() -> None:
    labelled = fitted()
    nodes = nodes_on_map(labelled)
    explained = explain_nodes(labelled, nodes, seconds=-1.0)
    assert list(explained.data) == nodes_to_explain(labelled, nodes)[:1]
    assert explained.refusal is None
