from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.explain.contributions import AdditiveForm
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.systems import system
from kryograph.systems.pool import HEADS, PoolFit, PoolSystem
from kryograph.systems.pool_explanation import PooledForm

SMALL = " + ".join([*HEADS[:-1], "trees:trees=20,fold_trees=5"])
"""The default pool with fewer trees."""

NODES = (0, 31, 77, 119)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=120, classes=3, words=80, signal=0.6, homophily=0.8, seed=4)


def explained(graph: Graph, data: Dataset, members: str, **changes: Any) -> tuple[PoolFit, Any]:
    labels = np.where(np.arange(graph.n) < 36, data.labels, UNKNOWN)
    method = system("pool", {"members": members} | changes)
    assert isinstance(method, PoolSystem)
    fit = method.fit_pool(Task.labelled(graph, labels, ("a", "b", "c")))
    return fit, method.additive(fit.weights, graph, 3)


def check(fit: PoolFit, form: AdditiveForm) -> None:
    """All four sums and the sum over members are the log-odds of the pool."""
    for node in NODES:
        p = fit.probabilities[node]
        np.testing.assert_allclose(np.exp(form.log_probabilities(node)), p, atol=1e-5)
        first, second = np.argsort(-p)[:2]
        parts = form.contributions(node, first, second)
        log_odds = form.log_probabilities(node)[first] - form.log_probabilities(node)[second]
        rest = parts.intercept + sum(parts.others.values())
        for part in (parts.hops, parts.nodes, parts.neighbours):
            assert rest + part.sum() == pytest.approx(log_odds, abs=1e-10)
        assert rest + parts.features.sum() + parts.structure == pytest.approx(log_odds, abs=1e-10)
        factors = fit.weights["pool.ratio"].numpy()
        ratio = factors[first] - factors[second]
        assert sum(parts.members.values()) + ratio == pytest.approx(log_odds, abs=1e-10)
        assert log_odds == pytest.approx(np.log(p[first] / p[second]), abs=1e-4)


@pytest.mark.parametrize("kind", ["words", "numbers", "none"])
def test_the_default_pool_is_the_sum_of_its_members(kind: str, data: Dataset) -> None:
    numbers = np.random.default_rng(0).normal(size=(120, 5)) + data.labels[:, None]
    features = {"words": data.graph.features, "numbers": numbers, "none": sp.eye_array(120).tocsr()}
    graph = Graph(data.graph.adjacency, features[kind])
    fit, form = explained(graph, data, SMALL)
    check(fit, form)


@pytest.mark.parametrize("labels", ["as drawn", "balanced"])
def test_factors_of_the_classes_belong_to_the_intercept(labels: str, data: Dataset) -> None:
    fit, form = explained(data.graph, data, "diffused-logistic", labels=labels)
    check(fit, form)
    log_factors = fit.weights["pool.ratio"].numpy()
    parts = form.contributions(77, 0, 1)
    assert parts.intercept == pytest.approx(log_factors[0] - log_factors[1], abs=1e-9)


def test_a_network_with_an_exact_form_is_divided_too(data: Dataset) -> None:
    members = "diffused-logistic + truncated-krylov:hidden=4,order=3 + gcn:hidden=4"
    fit, form = explained(data.graph, data, members)
    check(fit, form)
    others = form.contributions(77, 0, 1).others
    assert {name.partition(":")[0] for name in others} <= {"gcn"}


def test_what_a_sharp_member_gives_beyond_the_floor_is_scaled(data: Dataset) -> None:
    fit, form = explained(data.graph, data, "prototypes:representation=sum,sharpness=900")
    check(fit, form)
    assert isinstance(form, PooledForm)
    sharp = [form.members[0].log_probabilities(node).min() for node in NODES]
    assert min(sharp) < np.log(1e-6)


def test_a_pool_without_any_exact_member_is_refused(data: Dataset) -> None:
    with pytest.raises(UsageError, match="no exact explanation for this pool"):
        explained(data.graph, data, "trees:trees=5,fold_trees=5")


def test_similarity_is_the_weighted_mean_of_cosines(data: Dataset) -> None:
    _, form = explained(data.graph, data, SMALL)
    itself, others = form.similarity(40, np.array([40])), form.similarity(40, np.arange(36))
    assert itself == pytest.approx(1.0, abs=1e-6)
    assert (abs(others) <= 1 + 1e-6).all()
