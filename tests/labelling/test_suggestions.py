from __future__ import annotations

import numpy as np

from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.suggestions import Suggestion, hops_to_labels, suggest_nodes

SURE, TORN = [0.98, 0.02], [0.5, 0.5]


def test_hops_along_a_path() -> None:
    given = np.array([0, UNKNOWN, UNKNOWN, UNKNOWN, 1])
    assert hops_to_labels(toy.path(5), given).tolist() == [0, 1, 2, 1, 0]


def test_a_component_without_labels_is_infinitely_far() -> None:
    graph = toy.disjoint(toy.path(2), toy.path(2))
    hops = hops_to_labels(graph, np.array([0, UNKNOWN, UNKNOWN, UNKNOWN]))
    assert hops.tolist() == [0, 1, np.inf, np.inf]


def test_the_centre_of_doubtful_nodes_comes_first() -> None:
    graph = toy.disjoint(toy.star(8), toy.star(8))
    centre, other = 0, graph.n // 2
    probabilities = np.array([TORN] * other + [SURE] * other)
    given = np.full(graph.n, UNKNOWN)
    given[-1] = 0
    found = suggest_nodes(graph, given, probabilities, count=2)
    assert found[0].node == centre
    assert found[0].hops is None
    assert found[0].similar == other - 1


def test_the_next_one_lies_elsewhere() -> None:
    graph = toy.disjoint(toy.star(9), toy.star(8), toy.path(2))
    given = np.full(graph.n, UNKNOWN)
    given[-1] = 0
    found = suggest_nodes(graph, given, np.tile(TORN, (graph.n, 1)), count=2)
    assert {s.node for s in found} == {0, 9}


def test_labelled_nodes_are_never_suggested() -> None:
    graph = toy.path(4)
    given = np.array([0, UNKNOWN, 1, UNKNOWN])
    found = suggest_nodes(graph, given, np.tile(TORN, (4, 1)), count=10)
    assert sorted(s.node for s in found) == [1, 3]


def test_the_order_of_the_nodes_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 30, (2, 60))
    probabilities = rng.dirichlet([1, 1, 1], 30)
    given = np.where(rng.random(30) < 0.2, 0, UNKNOWN)
    order = rng.permutation(30)
    place = np.argsort(order)
    first = suggest_nodes(Graph.from_edges(pairs, 30), given, probabilities, 5)
    second = suggest_nodes(
        Graph.from_edges(place[pairs], 30), given[order], probabilities[order], 5
    )
    assert [s.node for s in first] == [int(order[s.node]) for s in second]


def test_reasons_are_sentences() -> None:
    said = Suggestion(3, 0, 1, lead=0.1, hops=1, similar=1).why(("maths", "<art>"))
    assert said == "uncertain (maths or <art>); 1 hop from the nearest label; 1 similar node nearby"
    far = Suggestion(3, 0, 1, lead=0.9, hops=None, similar=0).why(("maths", "art"))
    assert far.startswith("rather sure")
    assert "no labelled node can be reached" in far
