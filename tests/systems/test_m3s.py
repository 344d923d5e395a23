from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.operators import operator
from kryograph.systems import Fit, system
from kryograph.systems.label_growing import unlabelled_nodes
from kryograph.systems.m3s import M3SSystem, cluster_classes
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 90), test=range(90, 300))
SHORT = Conditions(rule=StopRule(max_epochs=20))


@pytest.fixture(scope="module")
def data() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)
    return replace(drawn, public=SPLIT)


def m3s(**changes: object) -> M3SSystem:
    found = system("m3s", {"inner_settings": "hidden=8,lr=0.05"} | changes)
    assert isinstance(found, M3SSystem)
    return found


def known(graph: Graph, labels: dict[int, int]) -> Task:
    found = np.full(graph.n, UNKNOWN)
    found[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), found, ("a", "b"))


def diffused_points(task: Task) -> npt.NDArray[np.float64]:
    """Points of the view 'diffused', which no fit has a part in."""
    return m3s(view="diffused")._points(task, Fit(task, np.empty((0, 0)), 0, {}))


def test_one_cluster_asks_every_node_for_the_same_class(data: Dataset) -> None:
    task = data.task()
    classes = cluster_classes(task, diffused_points(task), 1, seed=0)
    assert np.unique(classes[unlabelled_nodes(task)]).size == 1


def test_a_cluster_stands_for_the_class_whose_mean_is_nearest() -> None:
    # Nodes 0 to 3 are alike, and so are 4 to 7; node 3 is a little off.
    task = known(toy.path(8), {0: 0, 7: 1})
    points = np.array([[9.0], [9.0], [9.0], [7.0], [1.0], [1.0], [1.0], [1.0]])
    assert cluster_classes(task, points, 2, seed=0).tolist() == [-1, 0, 0, 0, 1, 1, 1, -1]


def test_a_class_without_labels_has_no_cluster() -> None:
    task = known(toy.path(4), {0: 1})
    assert cluster_classes(task, np.eye(4), 4, seed=0).tolist() == [-1, 1, 1, 1]


def test_what_differs_by_rounding_is_one_point() -> None:
    task = known(toy.path(4), {0: 0, 3: 1})
    points = np.array([[0.0], [1e-9], [1.0], [1.0 + 1e-9]])
    assert cluster_classes(task, points, 4, seed=0).tolist() == [-1, 0, 1, -1]


@pytest.mark.parametrize("view", ["diffused", "hidden"])
def test_it_fills_up_with_nodes_whose_cluster_agrees(view: str, data: Dataset) -> None:
    task = data.task()
    inner = m3s().inner.fit(task, conditions=SHORT)
    quota = np.array([5, 5, 5])
    both = {
        refill: m3s(clusters=10, view=view, refill=refill)._choose(task, inner, quota, 0)
        for refill in (True, False)
    }
    agreed = cluster_classes(task, m3s(view=view)._points(task, inner), 10, seed=0)
    for c in range(3):
        assert (agreed[both[True][c]] == c).all()
        assert set(both[False][c]) <= set(both[True][c])
        assert len(both[False][c]) <= len(both[True][c]) <= 5


def test_clusters_of_features_overrule_a_sure_fit() -> None:
    # Two cliques with one label each; the fit is sure that node 3 belongs to the other one.
    task = known(toy.two_cliques(5), {0: 0, 9: 1})
    first = np.array([1.0, 0.9, 0.9, 0.0, 0.8, 0.2, 0.1, 0.1, 0.1, 0.0])
    fit = Fit(task, np.stack([first, 1 - first], axis=1), epochs=0, weights={})
    quota = np.array([9, 9])
    chosen = m3s(clusters=2, view="diffused")._choose(task, fit, quota, 0)
    assert sorted(chosen[0].tolist()) == [1, 2, 4]
    assert sorted(chosen[1].tolist()) == [5, 6, 7, 8]
    unchecked = system("multi-stage")._choose(task, fit, quota, 0)  # type: ignore[attr-defined]
    assert 3 in unchecked[1]


def test_diffused_features_are_long_as_one_and_alike_in_a_clique() -> None:
    points = diffused_points(known(toy.two_cliques(5), {0: 0}))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-6)
    cosines = points @ points.T
    assert cosines[1, 2] > 0.9 > 0.5 > cosines[1, 8]


def test_wide_features_are_projected_and_stay_alike() -> None:
    wide = diffused_points(known(toy.disjoint(toy.cycle(300), toy.path(2)), {0: 0}))
    assert wide.shape == (302, 256)
    assert wide[300] @ wide[301] > 0.9
    assert abs(wide[0] @ wide[300]) < 0.3


def test_a_system_without_a_hidden_layer_has_its_log_probabilities_clustered(data: Dataset) -> None:
    method = m3s(inner="lp", inner_settings="", view="hidden")
    fit = method.inner.fit(data.task())
    logs = np.log(fit.predict_proba() + 1e-12)
    points = method._points(data.task(), fit)
    expected = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    np.testing.assert_allclose(points, expected, atol=1e-6)


def test_m3s_clusters_the_hidden_layer_of_gcn(data: Dataset) -> None:
    task, method = data.task(), m3s()
    fit = method.inner.fit(task, conditions=SHORT)
    weight, bias = (fit.weights[f"convs.0.{name}"].double().numpy() for name in ("weight", "bias"))
    L, x = operator(task.graph).matrix, task.graph.features
    hidden = np.maximum(L @ (x @ weight) + bias, 0)
    length = np.linalg.norm(hidden, axis=1, keepdims=True)
    expected = hidden / np.where(length > 0, length, 1)
    points = method._points(task, fit)
    assert points.shape == (300, 8)
    np.testing.assert_allclose(points, expected, atol=1e-5)


def test_m3s_clusters_log_probabilities_on_request(data: Dataset) -> None:
    task, method = data.task(), m3s(layer="log-probabilities")
    fit = method.inner.fit(task, conditions=SHORT)
    logs = np.log(fit.predict_proba() + 1e-12)
    expected = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    np.testing.assert_allclose(method._points(task, fit), expected, atol=1e-12)


def test_m3s_keeps_the_identity_of_runs_that_clustered_log_probabilities() -> None:
    before = system("m3s", {"layer": "log-probabilities"}).settings.identity()
    assert "layer" not in before
    assert system("m3s").settings.identity() == before | {"layer": "hidden"}


def test_an_unknown_view_is_refused() -> None:
    with pytest.raises(UsageError, match="'view'"):
        m3s(view="outer")
