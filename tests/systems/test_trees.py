from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from kryograph.basis import Basis
from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.model import Model
from kryograph.systems import system


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=150, classes=3, words=80, signal=0.7, seed=4)


def test_fit_is_the_vote_of_extra_trees_with_half_a_vote_shared(data: Dataset) -> None:
    labels = np.where(np.arange(150) < 40, data.labels, UNKNOWN)
    fit = system("trees", {"trees": 25}).fit(
        Task.labelled(data.graph, labels, data.classes), seed=3
    )
    rows = Basis(data.graph).rows("tree")
    forest = ExtraTreesClassifier(25, random_state=3).fit(rows[:40], labels[:40])
    expected = (25 * forest.predict_proba(rows) + 0.5 / 3) / 25.5
    np.testing.assert_allclose(fit.predict_proba(), expected, atol=1e-12)
    assert fit.predict_proba().min() > 0


def test_a_class_without_labels_has_its_part_of_half_a_vote_only(data: Dataset) -> None:
    labels = np.where((np.arange(150) < 40) & (data.labels != 1), data.labels, UNKNOWN)
    fit = system("trees", {"trees": 25}).fit(Task.labelled(data.graph, labels, data.classes))
    np.testing.assert_allclose(fit.predict_proba()[:, 1], 0.5 / 3 / 25.5)
    np.testing.assert_allclose(fit.predict_proba().sum(axis=1), 1)


def test_trees_learn_what_depends_on_degrees_only() -> None:
    """Hubs and leaves of stars, whose features say nothing."""
    graph = toy.disjoint(*[toy.star(4 + k % 4) for k in range(20)])
    hubs = np.diff(graph.adjacency.indptr) > 2
    plain = Graph(graph.adjacency, np.ones((graph.n, 1)))
    labels = np.where(np.arange(graph.n) < graph.n // 2, hubs.astype(int), UNKNOWN)
    task = Task.labelled(plain, labels, ("leaf", "hub"))
    right = system("trees").fit(task).predict_proba().argmax(axis=1) == hubs
    assert right.all()


def test_fold_trees_are_used_where_labels_are_held_out(data: Dataset) -> None:
    basis, nodes = Basis(data.graph), np.arange(40)
    folds = [(nodes[:30], nodes[30:])]
    method = system("trees", {"fold_trees": 7})
    [held_out] = method.learn_folds(basis, nodes, data.labels[:40], 3, folds, 0)
    votes = held_out * 7.5 - 0.5 / 3
    np.testing.assert_allclose(votes, votes.round(), atol=1e-9)


def test_trees_know_the_nodes_of_their_own_graph_only(data: Dataset) -> None:
    labels = np.where(np.arange(150) < 40, data.labels, UNKNOWN)
    method = system("trees", {"trees": 5})
    model = Model.of(method, method.fit(Task.labelled(data.graph, labels, data.classes)))
    assert not method.inductive
    larger = toy.disjoint(data.graph, toy.path(2))
    other = Graph(larger.adjacency, larger.features[:, : data.graph.features.shape[1]])
    with pytest.raises(UsageError, match="knows the nodes of its own graph only"):
        model.predict_proba(other)


@pytest.mark.parametrize("changes", [{"trees": 0}, {"fold_trees": 0}, {"trees": 10**6}])
def test_settings_that_are_not_allowed(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        system("trees", changes)
