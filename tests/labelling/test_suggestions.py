from __future__ import annotations

import numpy as np

from kryograph.basis import Basis
from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.suggestions import Suggestion, hops_to_labels, suggest_nodes

SURE, UNDECIDED = [0.98, 0.02], [0.5, 0.5]


def test_hops_to_labels_along_a_path() -> None:
    labels = np.array([0, UNKNOWN, UNKNOWN, UNKNOWN, 1])
    assert hops_to_labels(toy.path(5), labels).tolist() == [0, 1, 2, 1, 0]


def test_hops_to_labels_are_infinite_in_a_component_without_labels() -> None:
    graph = toy.disjoint(toy.path(2), toy.path(2))
    hops = hops_to_labels(graph, np.array([0, UNKNOWN, UNKNOWN, UNKNOWN]))
    assert hops.tolist() == [0, 1, np.inf, np.inf]


def test_suggest_nodes_begins_with_the_centre_of_uncertain_nodes() -> None:
    graph = toy.disjoint(toy.star(8), toy.star(8))
    centre, other = 0, graph.n // 2
    probabilities = np.array([UNDECIDED] * other + [SURE] * other)
    labels = np.full(graph.n, UNKNOWN)
    labels[-1] = 0
    suggestions = suggest_nodes(graph, labels, probabilities, count=2)
    assert suggestions[0].node == centre
    assert suggestions[0].hops is None
    assert suggestions[0].similar == other - 1


def test_suggest_nodes_takes_the_second_node_elsewhere() -> None:
    graph = toy.disjoint(toy.star(9), toy.star(8), toy.path(2))
    labels = np.full(graph.n, UNKNOWN)
    labels[-1] = 0
    suggestions = suggest_nodes(graph, labels, np.tile(UNDECIDED, (graph.n, 1)), count=2)
    assert sorted(s.node // 9 for s in suggestions) == [0, 1]


def test_suggest_nodes_leaves_labelled_nodes_out() -> None:
    graph = toy.path(4)
    labels = np.array([0, UNKNOWN, 1, UNKNOWN])
    suggestions = suggest_nodes(graph, labels, np.tile(UNDECIDED, (4, 1)), count=10)
    assert sorted(s.node for s in suggestions) == [1, 3]


def test_suggest_nodes_begins_with_one_node_of_each_clique() -> None:
    graph = toy.two_cliques(5)
    labels = np.full(10, UNKNOWN)
    suggestions = suggest_nodes(graph, labels, np.tile(UNDECIDED, (10, 1)), count=2)
    assert sorted(s.node // 5 for s in suggestions) == [0, 1]


def test_suggest_nodes_puts_isolated_nodes_last() -> None:
    graph = toy.disjoint(toy.isolated(3), toy.complete(3))
    labels = np.array([UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN, UNKNOWN])
    suggestions = suggest_nodes(graph, labels, np.tile(UNDECIDED, (6, 1)), count=5)
    assert {s.node for s in suggestions[:2]} == {4, 5}
    assert [s.hops for s in suggestions] == [1, 1, None, None, None]


def test_suggest_nodes_takes_a_basis_that_is_there_and_the_nodes_that_may_be_chosen() -> None:
    graph = toy.cycle(6)
    basis = Basis(graph)
    arguments = (graph, np.full(6, UNKNOWN), np.tile(UNDECIDED, (6, 1)), 6)
    assert suggest_nodes(*arguments, basis=basis) == suggest_nodes(*arguments)
    assert {s.node for s in suggest_nodes(*arguments, among=np.array([1, 4]))} == {1, 4}


def test_suggest_nodes_is_determined_by_rule_and_seed() -> None:
    graph = toy.cycle(50)
    arguments = (graph, np.full(50, UNKNOWN), np.tile(UNDECIDED, (50, 1)), 5)
    one, again, other = (suggest_nodes(*arguments, rule="random", seed=s) for s in (1, 1, 2))
    assert one == again != other


def test_no_suggestions_need_no_basis() -> None:
    assert suggest_nodes(toy.cycle(5), np.full(5, UNKNOWN), np.tile(UNDECIDED, (5, 1)), 0) == []


def test_suggest_nodes_does_not_depend_on_the_order_of_nodes() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 30, (2, 60))
    probabilities = rng.dirichlet([1, 1, 1], 30)
    labels = np.where(rng.random(30) < 0.2, 0, UNKNOWN)
    order = rng.permutation(30)
    position = np.argsort(order)
    first = suggest_nodes(Graph.from_edges(pairs, 30), labels, probabilities, 5)
    second = suggest_nodes(
        Graph.from_edges(position[pairs], 30), labels[order], probabilities[order], 5
    )
    assert [s.node for s in first] == [int(order[s.node]) for s in second]


def test_why_states_the_reason_in_words() -> None:
    text = Suggestion(3, 0, 1, lead=0.1, hops=1, similar=1).why(("maths", "<art>"))
    assert text == "uncertain (maths or <art>); 1 hop from the nearest label; 1 similar node nearby"
    far = Suggestion(3, 0, 1, lead=0.9, hops=None, similar=0).why(("maths", "art"))
    assert far.startswith("rather sure")
    assert "no labelled node can be reached" in far
