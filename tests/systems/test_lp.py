from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.systems import system
from kryograph.systems.lp import absorption


def task_of(graph: Graph, labels: dict[int, int], classes: int = 2) -> Task:
    known = np.full(graph.n, UNKNOWN)
    known[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), known, tuple("abcd"[:classes]))


def probabilities(task: Task, alpha: float = 1e-6) -> np.ndarray:
    return system("lp", {"alpha": alpha}).fit(task).predict_proba()


def test_two_nodes_by_hand() -> None:
    # D - A + I = [[2, -1], [-1, 2]], whose inverse is [[2, 1], [1, 2]] / 3.
    found = absorption(toy.path(2), np.array([0, 1]), 1.0)
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]], atol=1e-15)
    np.testing.assert_allclose(
        probabilities(task_of(toy.path(2), {0: 0, 1: 1}), 1.0),
        [[2 / 3, 1 / 3], [1 / 3, 2 / 3]],
        atol=1e-15,
    )


def test_a_clique_by_hand() -> None:
    # (n + α) I - 1 1ᵀ is inverted by I / (n + α) + 1 1ᵀ / (α (n + α)).
    n, alpha = 5, 0.5
    found = absorption(toy.complete(n), np.array([2]), alpha)
    expected = np.full((n, 1), 1 / (alpha * (n + alpha)))
    expected[2] += 1 / (n + alpha)
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("alpha", [1e-9, 1e-6, 1e-2, 1.0])
def test_two_cliques_and_a_bridge(alpha: float) -> None:
    found = probabilities(task_of(toy.two_cliques(5), {0: 0, 9: 1}), alpha)
    assert found.argmax(axis=1).tolist() == [0] * 5 + [1] * 5
    # The graph is its own mirror image.
    np.testing.assert_allclose(found, found[::-1, ::-1], atol=1e-9)
    assert found[4, 0] < found[1, 0]  # the end of the bridge is less sure


def test_more_labels_do_not_win_everywhere() -> None:
    # By sums over a class, the three labels on the left would take the right clique, too.
    task = task_of(toy.two_cliques(5), {0: 0, 1: 0, 2: 0, 9: 1})
    assert probabilities(task).argmax(axis=1).tolist() == [0] * 5 + [1] * 5
    sums = absorption(task.graph, task.split.train, 1e-6)
    assert (sums[:, :3].sum(axis=1) > sums[:, 3]).all()


def test_a_component_without_labels_gets_the_shares_of_the_classes() -> None:
    graph = toy.disjoint(toy.path(3), toy.cycle(4), toy.isolated(1))
    found = probabilities(task_of(graph, {0: 0, 1: 0, 2: 1}, classes=3))
    np.testing.assert_allclose(found[3:], np.tile([2 / 3, 1 / 3, 0], (5, 1)), atol=1e-15)


def test_a_component_with_labels_of_one_class_has_that_class() -> None:
    graph = toy.disjoint(toy.path(3), toy.cycle(4))
    found = probabilities(task_of(graph, {0: 0, 4: 1}))
    assert found.tolist() == [[1, 0]] * 3 + [[0, 1]] * 4


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 12),
    density=st.sampled_from([0.1, 0.3, 0.8]),
    exponent=st.floats(-6, 0),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_is_a_dense_solve(n: int, density: float, exponent: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(np.triu(rng.random((n, n)) < density, k=1)).T
    graph = Graph.from_edges(pairs, n, weights=rng.uniform(0.2, 2.0, pairs.shape[1]))
    nodes = np.sort(rng.choice(n, size=rng.integers(1, n + 1), replace=False))
    alpha = 10.0**exponent
    a = graph.adjacency.toarray()
    dense = np.linalg.inv(np.diag(a.sum(axis=1)) - a + alpha * np.eye(n))[:, nodes]
    found = absorption(graph, nodes, alpha)
    np.testing.assert_allclose(found, dense, rtol=1e-7, atol=1e-9 / alpha)
    # Wherever a walk starts, it is absorbed somewhere.
    np.testing.assert_allclose(
        absorption(graph, np.arange(n), alpha).sum(axis=1), 1 / alpha, rtol=1e-7
    )


def test_features_do_not_matter() -> None:
    plain = toy.two_cliques(4)
    other = Graph(plain.adjacency, np.random.default_rng(0).random((8, 3)))
    both = [probabilities(task_of(graph, {0: 0, 7: 1})) for graph in (plain, other)]
    np.testing.assert_array_equal(*both)
