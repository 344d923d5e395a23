"""`kryograph.labelling.suggestion_rules`: choices on graphs whose answer can be said aloud."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.suggestion_rules import (
    MOST_COMPARED,
    RANDOM,
    SUGGESTION_RULES,
    choose_nodes,
    greedy_cover,
)

COVERING = ("coverage", "doubtful-coverage")
DOUBTFUL = ("uncertainty", "doubtful-coverage", "hedged-coverage", "error-reduction")
PLANNED = sorted(set(SUGGESTION_RULES) - {RANDOM, "hedged-coverage"})


def undecided(n: int) -> np.ndarray:
    return np.full((n, 2), 0.5)


def unknown(n: int) -> np.ndarray:
    return np.full(n, UNKNOWN)


@pytest.mark.parametrize("rule", [*COVERING, "error-reduction"])
def test_one_node_of_each_clique_is_chosen_first(rule: str) -> None:
    graph = toy.two_cliques(6)
    nodes = choose_nodes(Basis(graph), unknown(12), undecided(12), 2, rule=rule)
    assert sorted(nodes // 6) == [0, 1]


@pytest.mark.parametrize("rule", [*COVERING, "error-reduction"])
def test_the_clique_without_a_label_comes_first(rule: str) -> None:
    labels = unknown(12)
    labels[2] = 0
    nodes = choose_nodes(Basis(toy.two_cliques(6)), labels, undecided(12), 1, rule=rule)
    assert nodes[0] >= 6


@pytest.mark.parametrize("rule", DOUBTFUL)
def test_the_doubtful_clique_comes_first(rule: str) -> None:
    probabilities = undecided(12)
    probabilities[:6] = [1, 0]
    graph = toy.disjoint(toy.complete(6), toy.complete(6))
    nodes = [
        choose_nodes(Basis(graph), unknown(12), probabilities, 1, rule=rule, seed=seed)[0]
        for seed in range(9)
    ]
    assert np.median(nodes) >= 6


@pytest.mark.parametrize("rule", sorted(set(SUGGESTION_RULES) - {RANDOM}))
def test_isolated_nodes_come_last(rule: str) -> None:
    graph = toy.disjoint(toy.isolated(5), toy.complete(4), toy.isolated(1))
    nodes = choose_nodes(Basis(graph), unknown(10), undecided(10), 10, rule=rule)
    assert sorted(nodes[:4]) == [5, 6, 7, 8]
    assert sorted(nodes[4:]) == [0, 1, 2, 3, 4, 9]


@pytest.mark.parametrize("rule", SUGGESTION_RULES)
def test_a_graph_without_edges_has_suggestions(rule: str) -> None:
    nodes = choose_nodes(Basis(toy.isolated(4)), unknown(4), undecided(4), 3, rule=rule)
    assert len(set(nodes.tolist())) == 3


@pytest.mark.parametrize("rule", SUGGESTION_RULES)
def test_all_unlabelled_nodes_are_chosen_if_the_count_is_larger(rule: str) -> None:
    labels = unknown(8)
    labels[[1, 6]] = [0, 1]
    nodes = choose_nodes(Basis(toy.two_cliques(4)), labels, undecided(8), 100, rule=rule)
    assert sorted(nodes) == [0, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("rule", SUGGESTION_RULES)
def test_only_nodes_that_may_be_chosen_are_chosen(rule: str) -> None:
    labels = unknown(8)
    labels[3] = 0
    among = np.array([3, 5, 2])
    nodes = choose_nodes(Basis(toy.cycle(8)), labels, undecided(8), 8, among=among, rule=rule)
    assert sorted(nodes) == [2, 5]


@pytest.mark.parametrize("rule", SUGGESTION_RULES)
def test_no_node_is_chosen_if_all_are_labelled(rule: str) -> None:
    nodes = choose_nodes(Basis(toy.cycle(5)), np.zeros(5, int), undecided(5), 3, rule=rule)
    assert nodes.size == 0


@pytest.mark.parametrize("rule", PLANNED)
def test_the_order_of_the_nodes_has_no_say(rule: str) -> None:
    rng = np.random.default_rng(0)
    pairs, features = rng.integers(0, 40, (2, 90)), rng.random((40, 7))
    probabilities = rng.dirichlet([1, 1, 1], 40)
    labels = np.where(rng.random(40) < 0.2, 0, UNKNOWN)
    order = rng.permutation(40)
    place = np.argsort(order)
    graph = Graph.from_edges(pairs, 40, features=features)
    permuted = Graph.from_edges(place[pairs], 40, features=features[order])
    first = choose_nodes(Basis(graph), labels, probabilities, 6, rule=rule)
    second = choose_nodes(Basis(permuted), labels[order], probabilities[order], 6, rule=rule)
    assert first.tolist() == order[second].tolist()


@pytest.mark.parametrize("rule", SUGGESTION_RULES)
def test_the_seed_determines_the_choice_in_a_sampled_graph(rule: str) -> None:
    data = synthetic_citations(n=2 * MOST_COMPARED + 200, classes=3, words=20, seed=0)
    n, basis = data.graph.n, Basis(data.graph)
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], n)
    one, again, other = (
        choose_nodes(basis, unknown(n), probabilities, 10, rule=rule, seed=seed).tolist()
        for seed in (3, 3, 4)
    )
    assert one == again
    assert len(set(one)) == 10
    assert (one != other) or rule == "uncertainty"


def test_a_fifth_of_hedged_coverage_is_random() -> None:
    graph = toy.disjoint(toy.complete(500), toy.complete(500))
    probabilities = undecided(1000)
    probabilities[500:] = [1, 0]
    nodes = choose_nodes(Basis(graph), unknown(1000), probabilities, 250, rule="hedged-coverage")
    sure = int((nodes >= 500).sum())  # only chance leads there, for half of the fifth
    assert 10 <= sure <= 45


def test_greedy_cover_is_the_same_as_trying_all_rows_each_time() -> None:
    rng = np.random.default_rng(1)
    likeness = rng.random((30, 50)).astype(np.float32)
    near, weights = rng.random(50).astype(np.float32) / 2, rng.random(50).astype(np.float32)
    expected: list[int] = []
    best = near
    for _ in range(12):
        values = np.maximum(likeness - best, 0) @ weights
        values[expected] = -1
        expected.append(int(values.argmax()))
        best = np.maximum(best, likeness[expected[-1]])
    assert greedy_cover(likeness, near, weights, 12).tolist() == expected


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(UsageError, match="doubtful-coverage"):
        choose_nodes(Basis(toy.cycle(5)), unknown(5), undecided(5), 1, rule="doubtfulcoverage")
