from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.errors import UsageError
from kryograph.graph import Graph
from kryograph.merging import REPEAT_RULES, Cleaning, checked_weights, merge_edges

PAYMENTS = [[0, 0, 0, 1], [1, 1, 1, 2]]
AMOUNTS = [2.0, 6.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("repeat", "weight"), [("sum", 12), ("max", 6), ("mean", 4), ("count", 3), ("first", 2)]
)
def test_three_payments_become_one_edge(repeat: str, weight: float) -> None:
    graph = Graph.from_edges(PAYMENTS, 3, weights=AMOUNTS, repeat=repeat)
    assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == weight
    assert graph.adjacency[1, 2] == (1 if repeat == "count" else 5)
    assert graph.cleaning == Cleaning(repeated=2, one_way=2)


@pytest.mark.parametrize("repeat", REPEAT_RULES)
def test_a_list_of_both_directions_is_the_list_of_one(repeat: str) -> None:
    pairs = np.array(PAYMENTS)
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    one, _ = merge_edges(pairs, np.array(AMOUNTS), 3, repeat)
    two, cleaning = merge_edges(both, np.array(AMOUNTS * 2), 3, repeat)
    assert (one != two).nnz == 0
    assert cleaning == Cleaning(repeated=4)


@pytest.mark.parametrize("repeat", REPEAT_RULES)
def test_no_edges_and_only_loops(repeat: str) -> None:
    for pairs in (np.empty((2, 0), np.int64), np.array([[1, 1], [1, 1]])):
        adjacency, cleaning = merge_edges(pairs, np.ones(pairs.shape[1]), 2, repeat)
        assert adjacency.nnz == 0
        assert cleaning.loops == pairs.shape[1]


def test_repeated_entries_of_a_matrix_are_added_up() -> None:
    matrix = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert Graph.from_scipy(matrix).adjacency[0, 1] == 3


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown rule for repeated edges 'add'"):
        Graph.from_edges([[0], [1]], 2, repeat="add")


@pytest.mark.parametrize("repeat", REPEAT_RULES)
def test_no_weights_are_weights_of_one(repeat: str) -> None:
    pairs = np.array([[2, 0, 0, 1], [0, 2, 2, 2]])
    without, cleaning = merge_edges(pairs, None, 3, repeat)
    ones, same = merge_edges(pairs, np.ones(4), 3, repeat)
    assert (without != ones).nnz == 0
    assert cleaning == same == Cleaning(repeated=1, one_way=1)
    assert without[0, 2] == (2 if repeat in ("sum", "count") else 1)
    assert without.has_canonical_format


def test_checked_weights_name_the_first_edge_that_is_wrong() -> None:
    with pytest.raises(UsageError, match=r"Edge 1 has weight 0\.0"):
        checked_weights([1.0, 0.0, -1.0], 3)
    with pytest.raises(UsageError, match="There are 2 edges"):
        checked_weights([1.0], 2)
