from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.systems import system
from tests.layers import dense


def task_of(graph: Graph, labels: dict[int, int], classes: int = 2) -> Task:
    known = np.full(graph.n, UNKNOWN)
    known[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), known, tuple("abcd"[:classes]))


def test_cosines_by_hand() -> None:
    # Nothing is diffused; node 2 lies between both classes, node 3 at 3/5 and 4/5, node 4 nowhere.
    x = np.array([[2.0, 0.0], [0.0, 5.0], [1.0, 1.0], [3.0, 4.0], [0.0, 0.0]])
    task = task_of(Graph(toy.isolated(5).adjacency, x), {0: 0, 1: 1})
    found = system("prototypes", {"hops": 0, "sharpness": 1.0}).fit(task).predict_proba()
    first = [np.e / (np.e + 1), 1 / (np.e + 1), 0.5, 1 / (1 + np.exp(0.2)), 0.5]
    np.testing.assert_allclose(found[:, 0], first, atol=1e-6)


@pytest.mark.parametrize("name", ["sym", "rw"])
@pytest.mark.parametrize("hops", [0, 1, 4])
def test_it_is_the_dense_formula(name: str, hops: int) -> None:
    graph = Graph(toy.two_cliques(4).adjacency, np.random.default_rng(0).random((8, 3)))
    labels = {0: 0, 1: 0, 6: 1, 7: 2}
    L = dense(graph, name).double().numpy()
    blocks = [np.linalg.matrix_power(L, k) @ graph.features for k in range(hops + 1)]
    rows = np.mean(blocks, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    means = np.stack([rows[[0, 1]].mean(axis=0), rows[6], rows[7]])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    scores = np.exp(20 * rows @ means.T)
    method = system("prototypes", {"hops": hops}, operator=name)
    found = method.fit(task_of(graph, labels, 3)).predict_proba()
    np.testing.assert_allclose(found, scores / scores.sum(axis=1, keepdims=True), atol=1e-4)


def test_two_cliques_and_a_bridge() -> None:
    found = system("prototypes").fit(task_of(toy.two_cliques(5), {0: 0, 9: 1}))
    assert found.predict() == ["a"] * 5 + ["b"] * 5
    assert found.epochs == 0


def test_a_class_without_labels_is_never_predicted() -> None:
    found = system("prototypes").fit(task_of(toy.two_cliques(5), {0: 0, 9: 2}, classes=3))
    assert not found.predict_proba()[:, 1].any()


def test_sharpness_changes_how_sure_it_is_and_not_the_class() -> None:
    task = task_of(toy.two_cliques(5), {0: 0, 9: 1})
    soft, sharp = (system("prototypes", {"sharpness": s}).fit(task) for s in (1.0, 50.0))
    assert soft.predict() == sharp.predict()
    assert (soft.predict_proba().max(axis=1) < sharp.predict_proba().max(axis=1)).all()


def test_unlabelled_nodes_pull_a_mean_towards_themselves() -> None:
    # A label at 10 degrees, the rest of its class at 40; the other class at 90 and 95.
    angles = np.deg2rad([10, 40, 40, 40, 90, 95])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    task = task_of(Graph(toy.isolated(6).adjacency, x), {0: 0, 4: 1})
    for pull, expected in ((0.0, 10.0), (1.0, 25.0)):
        changes = {"hops": 0, "rounds": 1, "pull": pull, "sharpness": 500.0}
        found = system("prototypes", changes).fit(task).weights["prototypes"][0].numpy()
        assert np.rad2deg(np.arctan2(found[1], found[0])) == pytest.approx(expected, abs=0.5)


def test_rounds_leave_a_class_without_labels_alone() -> None:
    task = task_of(toy.two_cliques(5), {0: 0, 9: 2}, classes=3)
    found = system("prototypes", {"rounds": 3}).fit(task)
    assert not found.predict_proba()[:, 1].any()
    assert found.predict() == ["a"] * 5 + ["c"] * 5


def test_wide_features_are_projected_and_decide_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(toy.two_cliques(5), {0: 0, 9: 1})
    monkeypatch.setattr("kryograph.systems.prototypes.LARGEST_EXACT", 10)
    made = system("prototypes")
    found = made.fit(task)
    assert found.weights["prototypes"].shape == (2, 512)
    assert found.predict() == ["a"] * 5 + ["b"] * 5
    np.testing.assert_allclose(made.apply(found.weights, task.graph, 2), found.predict_proba())


@pytest.mark.parametrize("name", ["sum", "hops", "centred"])
@pytest.mark.parametrize("rounds", [0, 3])
def test_prototypes_of_a_representation_are_those_of_its_rows(name: str, rounds: int) -> None:
    """Prototypes of features that are these rows, in a graph without edges, are the same."""
    x = np.random.default_rng(0).random((12, 80))
    graph = Graph(toy.two_cliques(6).adjacency, x)
    task = task_of(graph, {0: 0, 1: 0, 11: 1})
    changes = {"representation": name, "rounds": rounds}
    found = system("prototypes", changes).fit(task)
    rows = np.asarray(Basis(graph).rows(name))
    alone = Graph(toy.isolated(12).adjacency, rows)
    expected = system("prototypes", {"hops": 0, "rounds": rounds}).fit(
        task_of(alone, {0: 0, 1: 0, 11: 1})
    )
    np.testing.assert_allclose(found.predict_proba(), expected.predict_proba(), atol=1e-5)


def test_representation_of_the_default_is_not_part_of_the_identity_of_a_run() -> None:
    """Rows stored before the setting existed are still found."""
    assert "representation" not in system("prototypes").settings.identity()
    other = system("prototypes", {"representation": "sum"}).settings.identity()
    assert other["representation"] == "sum"


def test_representation_that_knows_one_graph_only_is_refused() -> None:
    with pytest.raises(UsageError, match="representation"):
        system("prototypes", {"representation": "neighbours"})
