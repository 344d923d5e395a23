from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from kryograph.basis import Basis
from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.systems import system


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=150, classes=3, words=80, signal=0.7, seed=4)


@pytest.mark.parametrize("name", ["features", "neighbours", "diffused", "hops"])
@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_fit_is_logistic_regression_on_the_rows_of_the_basis(
    name: str, penalty: float, data: Dataset
) -> None:
    labels = np.where(np.arange(150) < 40, data.labels, UNKNOWN)
    method = system("diffused-logistic", {"representation": name, "penalty": penalty})
    fit = method.fit(Task.labelled(data.graph, labels, data.classes))
    rows = Basis(data.graph).rows(name)
    assert sp.issparse(rows) == (name in ("features", "neighbours"))
    theirs = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-9, max_iter=10_000)
    theirs.fit(rows[:40].astype(np.float64), labels[:40])
    expected = theirs.predict_proba(rows.astype(np.float64))
    np.testing.assert_allclose(fit.predict_proba(), expected, atol=5e-4)
    np.testing.assert_allclose(fit.weights["weights"].numpy(), theirs.coef_.T, atol=5e-3)
    assert fit.epochs == 0


def test_two_cliques_and_a_bridge() -> None:
    labels = np.full(10, UNKNOWN)
    labels[[0, 9]] = [0, 1]
    fit = system("diffused-logistic").fit(Task.labelled(toy.two_cliques(5), labels, ("a", "b")))
    assert fit.predict() == ["a"] * 5 + ["b"] * 5
    probabilities = fit.predict_proba()
    np.testing.assert_allclose(probabilities[:5, 0], probabilities[:4:-1, 1], atol=0.05)


def test_a_class_without_labels_is_never_predicted() -> None:
    labels = np.full(10, UNKNOWN)
    labels[[0, 9]] = [0, 2]
    fit = system("diffused-logistic").fit(
        Task.labelled(toy.two_cliques(5), labels, ("a", "b", "c"))
    )
    assert not fit.predict_proba()[:, 1].any()


def test_a_large_penalty_makes_probabilities_even(data: Dataset) -> None:
    labels = np.where(np.arange(150) < 40, data.labels, UNKNOWN)
    task = Task.labelled(data.graph, labels, data.classes)
    surest = [
        system("diffused-logistic", {"penalty": penalty}).fit(task).predict_proba().max()
        for penalty in (0.01, 1.0, 1e5)
    ]
    assert surest[0] > surest[1] > surest[2]
    assert surest[2] == pytest.approx(1 / 3, abs=1e-3)


def test_nodes_with_the_same_rows_have_the_same_probabilities() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    x[5] = x[4]
    labels = np.array([0, 1, 0, 1, UNKNOWN, UNKNOWN])
    graph = Graph(toy.isolated(6).adjacency, x)
    probabilities = (
        system("diffused-logistic").fit(Task.labelled(graph, labels, ("a", "b"))).predict_proba()
    )
    np.testing.assert_array_equal(probabilities[4], probabilities[5])


# Unlabelled nodes


def clouds() -> tuple[Graph, np.ndarray]:
    """Two clouds of nodes without edges, of which the first of four features tells the class."""
    rng = np.random.default_rng(0)
    known = np.arange(120) % 2
    x = rng.normal(size=(120, 4))
    x[:, 0] += np.where(known == 0, 6.0, -6.0)
    return Graph(toy.isolated(120).adjacency, x), known


def test_rounds_move_the_boundary_away_from_unlabelled_nodes() -> None:
    graph, known = clouds()
    labels = np.full(120, UNKNOWN)
    labels[:4] = known[:4]
    task = Task.labelled(graph, labels, ("a", "b"))
    surest, right = [], []
    for rounds in (0, 4):
        method = system("diffused-logistic", {"representation": "sum", "rounds": rounds})
        probabilities = method.fit(task).predict_proba()
        right.append((probabilities.argmax(axis=1) == known)[4:].mean())
        surest.append(probabilities[4:].max(axis=1).mean())
    assert right[1] >= right[0]
    assert right[1] > 0.95
    assert surest[1] > surest[0]


def test_align_keeps_predictions_near_the_shares_of_the_labels(data: Dataset) -> None:
    labels = np.full(150, UNKNOWN)
    for c in range(3):
        labels[np.flatnonzero(data.labels == c)[:4]] = c
    task = Task.labelled(data.graph, labels, data.classes)
    spread = []
    for align in (False, True):
        values = {"representation": "sum", "rounds": 5, "align": align}
        fit = system("diffused-logistic", values).fit(task)
        spread.append(np.abs(fit.predict_proba().mean(axis=0) - 1 / 3).max())
    assert spread[1] < spread[0] + 1e-3
    assert spread[1] < 0.1


def test_rounds_do_nothing_if_every_node_has_a_label(data: Dataset) -> None:
    task = Task.labelled(data.graph, data.labels, data.classes)
    plain, grown = (
        system("diffused-logistic", {"representation": "sum", "rounds": rounds}).fit(task)
        for rounds in (0, 3)
    )
    same = plain.predict_proba().argmax(axis=1) == grown.predict_proba().argmax(axis=1)
    assert same.mean() > 0.97  # 64 of the directions are kept


def test_rounds_leave_a_class_without_labels_alone(data: Dataset) -> None:
    labels = np.where((np.arange(150) < 40) & (data.labels != 1), data.labels, UNKNOWN)
    for align in (False, True):
        values = {"representation": "sum", "rounds": 3, "align": align}
        fit = system("diffused-logistic", values).fit(
            Task.labelled(data.graph, labels, data.classes)
        )
        assert not fit.predict_proba()[:, 1].any()


@pytest.mark.parametrize("representation", ["features", "weighted", "neighbours"])
def test_rounds_are_refused_for_rows_with_many_columns(representation: str) -> None:
    with pytest.raises(UsageError, match="'rounds' must be 0 for the representation"):
        system("diffused-logistic", {"representation": representation, "rounds": 1})


# Settings


@pytest.mark.parametrize(
    "changes", [{"penalty": 0.0}, {"penalty": -1.0}, {"representation": "crystal-ball"}]
)
def test_settings_that_are_not_allowed(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        system("diffused-logistic", changes)
