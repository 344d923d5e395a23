from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.systems import system


def task_of(graph: Graph, labels: dict[int, int], classes: int = 2) -> Task:
    known = np.full(graph.n, UNKNOWN)
    known[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), known, tuple("abcd"[:classes]))


def logits(task: Task, hops: int) -> np.ndarray:
    """The outputs, up to a constant in each row."""
    logs = np.log(system("linear-gnn", {"hops": hops}).fit(task).predict_proba())
    return np.asarray(logs - logs.min(axis=1, keepdims=True))


def test_without_hops_it_is_least_squares_by_hand() -> None:
    # Features 1, 2, 3; the labelled nodes 0 and 1 have the targets (1, 0) and (0, 1). The best
    # factors are (1·1 + 2·0)/5 and (1·0 + 2·1)/5, so node 2 has the outputs 0.6 and 1.2.
    graph = Graph(toy.path(3).adjacency, np.array([[1.0], [2.0], [3.0]]))
    found = logits(task_of(graph, {0: 0, 1: 1}), 0)
    np.testing.assert_allclose(found[:, 1], [0.2, 0.4, 0.6], atol=1e-12)


def test_neighbours_of_a_node_speak_for_it() -> None:
    # On a star whose ends say 1 and whose centre says nothing, one hop tells the centre's class.
    features = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    pairs = np.array([[0, 0, 3, 4], [1, 2, 5, 5]])
    graph = Graph(Graph.from_edges(pairs, 6).adjacency, features)
    task = task_of(graph, {1: 0, 3: 1, 2: 0})
    alone = system("linear-gnn", {"hops": 0}).fit(task).predict_proba()
    assert alone[0].tolist() == alone[5].tolist() == [0.5, 0.5]
    known = task_of(graph, {0: 0, 5: 1})
    outputs = logits(known, 1)
    # Least squares on P X alone answers exactly; on X it says 0: the mean is one half.
    np.testing.assert_allclose(outputs[[0, 5]], [[0.5, 0], [0, 0.5]], atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_it_is_the_mean_of_pseudoinverses(hops: int, sparse: bool) -> None:
    rng = np.random.default_rng(hops)
    x = rng.normal(size=(9, 5))
    adjacency = toy.two_cliques(4).adjacency
    graph = Graph(toy.disjoint(toy.two_cliques(4), toy.isolated(1)).adjacency, x)
    assert adjacency.shape == (8, 8)
    a = graph.adjacency.toarray()
    p = a / np.maximum(a.sum(axis=1, keepdims=True), 1)
    labels = {0: 0, 2: 1, 5: 1, 6: 2}
    y = np.eye(3)[list(labels.values())]
    blocks = [np.linalg.matrix_power(p, k) @ x for k in range(hops + 1)]
    expected = np.mean([b @ np.linalg.pinv(b[list(labels)]) @ y for b in blocks], axis=0)
    if sparse:
        graph = Graph(graph.adjacency, sp.csr_array(x))
    found = logits(task_of(graph, labels, classes=3), hops)
    np.testing.assert_allclose(found, expected - expected.min(axis=1)[:, None], atol=1e-7)


def test_a_class_without_labels_has_probability_zero() -> None:
    task = task_of(toy.two_cliques(3), {0: 0, 5: 1}, classes=3)
    assert (system("linear-gnn").fit(task).predict_proba()[:, 2] == 0).all()
