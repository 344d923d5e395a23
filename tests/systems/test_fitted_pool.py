from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.systems import system
from kryograph.systems.fitted_pool import FittedPool
from kryograph.systems.head import basis_state
from kryograph.systems.pool import PoolFit, PoolSystem

MEMBERS = "diffused-logistic + prototypes:representation=sum + trees:trees=10,fold_trees=5"


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=90, classes=3, words=70, signal=0.7, homophily=0.8, seed=4)


@pytest.fixture(scope="module")
def fit(data: Dataset) -> PoolFit:
    labels = np.where(np.arange(90) < 30, data.labels, UNKNOWN)
    method = system("pool", {"members": MEMBERS})
    assert isinstance(method, PoolSystem)
    return method.fit_pool(Task.labelled(data.graph, labels, ("a", "b", "c")))


def read(data: Dataset, fit: PoolFit, prefix: str) -> tuple[FittedPool, Basis]:
    members = system("pool", {"members": MEMBERS}).members  # type: ignore[attr-defined]
    pool = FittedPool.read(members, fit.weights, prefix)
    return pool, Basis(data.graph, basis_state(fit.weights))


def test_a_pool_that_is_read_gives_the_probabilities_of_its_fit(
    data: Dataset, fit: PoolFit
) -> None:
    pool, basis = read(data, fit, "pool.")
    assert [member.name for member, _ in pool.members] == [
        "diffused-logistic",
        "prototypes",
        "trees",
    ]
    np.testing.assert_allclose(pool.probabilities(basis, 3), fit.probabilities, atol=1e-9)


def test_the_inductive_part_leaves_the_trees_out(data: Dataset, fit: PoolFit) -> None:
    pool, _ = read(data, fit, "inductive.")
    assert [member.name for member, _ in pool.members] == ["diffused-logistic", "prototypes"]


def test_a_member_without_an_exact_form_keeps_its_probabilities(
    data: Dataset, fit: PoolFit
) -> None:
    pool, basis = read(data, fit, "pool.")
    form = pool.additive(basis, 3)
    assert [member.form is None for member in form.members] == [False, False, True]
    trees = form.members[2]
    np.testing.assert_allclose(
        trees.log_probabilities(40), np.log(trees.probabilities()[40]), atol=1e-12
    )


def test_after_a_change_heads_predict_again_and_trees_do_not(data: Dataset, fit: PoolFit) -> None:
    method = system("pool", {"members": MEMBERS})
    same = method.apply_changed(fit.weights, data.graph, data.graph, 3)
    np.testing.assert_allclose(same, fit.probabilities, atol=1e-9)
    alone = Graph(data.graph.adjacency * 0, data.graph.features)
    changed = method.apply_changed(fit.weights, data.graph, alone, 3)
    assert np.abs(changed - same).max() > 0.01
    assert method.not_recomputed(fit.weights) == ["trees:trees=10,fold_trees=5"]


@pytest.mark.parametrize(
    ("name", "recomputed"),
    [("diffused-logistic", True), ("truncated-krylov", True), ("trees", False), ("lp", False)],
)
def test_systems_that_are_not_recomputed_refuse(name: str, recomputed: bool, data: Dataset) -> None:
    method = system(name)
    assert method.recomputed == recomputed
    if not recomputed:
        with pytest.raises(UsageError, match=f"{name} knows its own graph only"):
            method.apply_changed({}, data.graph, data.graph, 3)
