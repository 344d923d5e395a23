from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import KryographError
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.stats import accuracy
from kryograph.systems import system
from kryograph.systems.pool import PoolFit
from kryograph.systems.pool_members import held_out_losses, pool_folds

LABELLED = 30
HEAD = "diffused-logistic"
NETWORK = "truncated-krylov:hidden=8,order=2,lr=0.05"


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(
        n=150, classes=3, words=80, signal=0.7, homophily=0.8, mean_degree=6, seed=4
    )


@pytest.fixture(scope="module")
def labels(data: Dataset) -> Indices:
    return np.where(np.arange(150) < LABELLED, data.labels, UNKNOWN)


def task_of(graph: Graph, labels: Indices, classes: int = 3) -> Task:
    return Task.labelled(graph, labels, tuple("abcd"[:classes]))


def fit(graph: Graph, labels: Indices, members: str, budget: float | None = None) -> PoolFit:
    pool = system("pool", {"members": members})
    return pool.fit_pool(task_of(graph, labels), budget=budget)


# Folds and losses


@pytest.mark.parametrize(
    ("per_class", "folds", "draws"), [(4, 3, 4), (5, 5, 3), (12, 5, 3), (13, 5, 2), (2, 2, 4)]
)
def test_fewer_labels_are_divided_more_often(per_class: int, folds: int, draws: int) -> None:
    labels = np.repeat([0, 1], per_class)
    parts = pool_folds(task_of(toy.isolated(2 * per_class), labels, 2), 0)
    assert len(parts) == folds * draws
    assert max(part.draw for part in parts) == draws - 1


def test_held_out_losses_are_lower_for_a_better_head(data: Dataset, labels: Indices) -> None:
    task, basis = task_of(data.graph, labels), Basis(data.graph)
    folds = pool_folds(task, 0)
    good, poor = (
        held_out_losses(system("diffused-logistic", {"penalty": p}), basis, task, folds, 0)
        for p in (0.1, 1e4)
    )
    assert good.shape == poor.shape == (LABELLED,)
    assert good.mean() < poor.mean()
    assert poor.mean() == pytest.approx(np.log(3), abs=0.1)
    missing = system("diffused-logistic", {"representation": "neighbours"})
    with pytest.raises(KryographError, match="no such representation"):
        held_out_losses(missing, Basis(toy.isolated(150)), task, folds, 0)


# Systems that are not heads


def test_held_out_predictions_of_a_network_are_those_of_fits_without_the_labels(
    data: Dataset, labels: Indices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Label propagation needs no seed and no epochs, so it can be repeated by hand."""
    method = system("lp")
    task = task_of(data.graph, labels)
    expected = np.full((LABELLED, 3), np.nan)
    for fold in pool_folds(task, 0):
        if fold.draw == 0:
            visible = np.full(150, UNKNOWN)
            visible[fold.train] = labels[fold.train]
            alone = method.fit(task_of(data.graph, visible)).predict_proba()
            expected[fold.held_out] = alone[fold.held_out]
    result = fit(data.graph, labels, "lp")
    [member] = result.members
    assert member.accuracy == accuracy(expected, labels[:LABELLED])
    assert member.loss > 0


def test_network_that_would_take_longer_than_the_budget_is_left_out(
    data: Dataset, labels: Indices
) -> None:
    result = fit(data.graph, labels, f"{NETWORK} + {HEAD}", budget=0.0)
    [note] = result.notes
    assert note.startswith("truncated-krylov would take about")
    assert [member.system.name for member in result.members] == [HEAD]
    generous = fit(data.graph, labels, "lp + diffused-logistic", budget=1e6)
    assert generous.notes == ()
    assert len(generous.members) == 2


def test_network_is_fitted_on_the_folds_of_the_first_draw(
    data: Dataset, labels: Indices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.systems.pool_members.NETWORK_EPOCHS", 7)
    members = f"{NETWORK} + {HEAD}"
    result = fit(data.graph, labels, members)
    epochs = {member.system.name: member.epochs for member in result.members}
    assert epochs == {"truncated-krylov": 7, HEAD: 0}
    assert result.epochs == 7
    method = system("pool", {"members": members})
    again = method.apply(result.weights, data.graph, 3)
    np.testing.assert_allclose(again, result.predict_proba(), atol=1e-6)
