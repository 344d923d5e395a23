from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.correct_and_smooth import corrected, spread


def task_of(graph: Graph, labels: dict[int, int], classes: int = 2) -> Task:
    known = np.full(graph.n, UNKNOWN)
    known[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), known, tuple("abcd"[:classes]))


def probabilities(task: Task, **settings: float) -> np.ndarray:
    return system("correct-and-smooth", settings).fit(task).predict_proba()


def featured(graph: Graph, seed: int = 0) -> Graph:
    return Graph(graph.adjacency, np.random.default_rng(seed).random((graph.n, 3)))


def test_spread_on_two_nodes_by_hand() -> None:
    # L = [[1, 1], [1, 1]] / 2. The limit solves (I - αL) G = (1 - α) G₀: the sum 1 is kept and the
    # difference shrinks to 1 - α, so (1 ± 0.5) / 2 for α = 0.5.
    start = np.array([[1.0], [0.0]])
    found = spread(start, operator(toy.path(2)), 0.5)
    np.testing.assert_allclose(found, [[0.75], [0.25]], atol=1e-12)
    np.testing.assert_array_equal(spread(start, operator(toy.path(2)), 0.0), start)


def test_errors_are_scaled_to_the_mean_error_by_hand() -> None:
    # Node 0 of a path of two is of class 0 with 0.6, and certainly so: its error is (0.4, -0.4), of
    # length 0.8. What reaches node 1 is shorter and is scaled to the same length.
    base = np.array([[0.6, 0.4], [0.5, 0.5]])
    found = corrected(base, np.array([0]), np.array([[1.0, 0.0]]), operator(toy.path(2)), 0.5)
    np.testing.assert_allclose(found, [[1.0, 0.0], [0.9, 0.1]], atol=1e-12)


def test_no_error_reaches_a_component_without_labels() -> None:
    graph = toy.disjoint(toy.path(2), toy.path(2), toy.isolated(1))
    base = np.full((5, 2), 0.5)
    found = corrected(base, np.array([0]), np.array([[1.0, 0.0]]), operator(graph), 0.5)
    assert found[2:].tolist() == [[0.5, 0.5]] * 3


def test_without_spreading_it_is_softmax_regression() -> None:
    task = task_of(featured(toy.two_cliques(4)), {0: 0, 1: 0, 6: 1, 7: 1})
    plain = system("diffused-logistic", {"representation": "features", "penalty": 1.0}).fit(task)
    found = probabilities(task, correct=0.0, smooth=0.0)
    np.testing.assert_allclose(found[2:6], plain.predict_proba()[2:6], atol=1e-9)
    assert found[[0, 1, 6, 7]].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize("alpha", [0.3, 0.8])
def test_two_cliques_without_features_take_the_labels_of_their_ends(alpha: float) -> None:
    bare = toy.two_cliques(5)
    graph = Graph(bare.adjacency, np.ones((bare.n, 1)))
    found = probabilities(task_of(graph, {0: 0, 9: 1}), correct=alpha, smooth=alpha)
    assert found.argmax(axis=1).tolist() == [0] * 5 + [1] * 5
    # The graph is its own mirror image.
    np.testing.assert_allclose(found, found[::-1, ::-1], atol=1e-9)


def test_a_node_on_its_own_keeps_the_shares_of_the_labels() -> None:
    bare = toy.disjoint(toy.path(4), toy.isolated(1))
    graph = Graph(bare.adjacency, np.ones((5, 1)))
    found = probabilities(task_of(graph, {0: 0, 1: 0, 3: 1}))
    np.testing.assert_allclose(found[4], [2 / 3, 1 / 3], atol=1e-12)
