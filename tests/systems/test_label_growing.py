from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.systems import SYSTEMS, Fit, system
from kryograph.systems.gcn import GCNSystem
from kryograph.systems.label_growing import (
    AddedLabels,
    LabelGrowingSystem,
    grown,
    nearest_nodes,
    surest,
    unlabelled_nodes,
)
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 90), test=range(90, 300))
SHORT = Conditions(rule=StopRule(max_epochs=20))
SMALL = "hidden=8,lr=0.05"
WRAPPERS = [name for name, cls in SYSTEMS.items() if issubclass(cls, LabelGrowingSystem)]

every_wrapper = pytest.mark.parametrize("name", WRAPPERS)


@pytest.fixture(scope="module")
def data() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)
    return replace(drawn, public=SPLIT)


def wrapper(name: str, **changes: object) -> LabelGrowingSystem:
    found = system(name, {"inner_settings": SMALL} | changes)
    assert isinstance(found, LabelGrowingSystem)
    return found


class Seen:
    """Notes every task that the inner system is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: list[Task] = []
        plain = GCNSystem.fit

        def noted(method: GCNSystem, task: Task, **options: Any) -> Fit:
            self.tasks.append(task)
            return plain(method, task, **options)

        monkeypatch.setattr(GCNSystem, "fit", noted)


def test_there_are_six() -> None:
    walks = ["co-training", "self-training", "union", "intersection"]
    assert [*walks, "multi-stage", "m3s"] == WRAPPERS


# Degenerate cases


@every_wrapper
def test_with_nothing_to_add_it_is_the_inner_system(name: str, data: Dataset) -> None:
    task = data.task()
    found = wrapper(name, hops=50).fit(task, seed=4, conditions=SHORT)
    inner = system("gcn", {"hidden": 8, "lr": 0.05}).fit(task, seed=4, conditions=SHORT)
    np.testing.assert_array_equal(found.predict_proba(), inner.predict_proba())
    assert found.epochs == inner.epochs


@pytest.mark.parametrize("name", ["multi-stage", "m3s"])
def test_one_stage_is_the_inner_system(name: str, data: Dataset) -> None:
    found = wrapper(name, stages=1).fit(data.task(), seed=4, conditions=SHORT)
    inner = system("gcn", {"hidden": 8, "lr": 0.05}).fit(data.task(), seed=4, conditions=SHORT)
    np.testing.assert_array_equal(found.predict_proba(), inner.predict_proba())


def test_two_stages_are_self_training(data: Dataset) -> None:
    both = [
        wrapper("multi-stage", stages=2).fit(data.task(), conditions=SHORT),
        wrapper("self-training").fit(data.task(), conditions=SHORT),
    ]
    np.testing.assert_array_equal(both[0].predict_proba(), both[1].predict_proba())


# What is added


@every_wrapper
@pytest.mark.parametrize("validation", [True, False])
def test_what_the_inner_system_is_given(
    name: str, validation: bool, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(monkeypatch)
    task = data.task(validation=validation)
    wrapper(name).fit(task, conditions=SHORT)
    assert len(seen.tasks) == {"co-training": 1, "multi-stage": 4, "m3s": 4}.get(name, 2)
    sizes = [given.split.train.size for given in seen.tasks]
    assert sizes == sorted(sizes)
    assert sizes[-1] > SPLIT.train.size
    for given in seen.tasks:
        # Given labels stay; validation nodes get none while theirs are known; no test node is left.
        np.testing.assert_array_equal(given.labels[SPLIT.train], data.labels[SPLIT.train])
        assert set(SPLIT.train) <= set(given.split.train)
        assert given.has_validation == validation
        if validation:
            assert not set(given.split.train) & set(SPLIT.validation)
            np.testing.assert_array_equal(
                given.labels[SPLIT.validation], data.labels[SPLIT.validation]
            )
        if given.split.train.size > SPLIT.train.size:
            assert given.split.test.size == 0
    last = np.setdiff1d(seen.tasks[-1].split.train, SPLIT.train)
    per_class = np.bincount(seen.tasks[-1].labels[last], minlength=3)
    times = {"union": 2, "multi-stage": 3, "m3s": 3}.get(name, 1)
    assert (per_class <= times * wrapper(name)._quota(task)).all()


@every_wrapper
def test_labels_that_may_not_be_seen_do_not_matter(name: str, data: Dataset) -> None:
    other = data.labels.copy()
    other[SPLIT.test] = (other[SPLIT.test] + 1) % 3
    tasks = [each.task() for each in (data, replace(data, labels=other))]
    first, second = (wrapper(name).fit(task, conditions=SHORT).predict_proba() for task in tasks)
    np.testing.assert_array_equal(first, second)


def test_the_number_of_labels_on_cora() -> None:
    # As many nodes and edges as Cora has: 3 · 2708 / 3.898² = 534.6, a seventh of it 76.4.
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((150, 150)), k=1)).T
    edges = pairs[:, rng.permutation(pairs.shape[1])[:5278]]
    graph = Graph.from_edges(edges, 2708)
    labels = np.full(2708, UNKNOWN)
    labels[:14] = np.arange(14) % 7
    classes = tuple("abcdefg")
    equal = Task(graph, Split("two each", range(14), [], []), labels, classes)
    assert wrapper("co-training")._quota(equal).tolist() == [76] * 7
    assert wrapper("co-training", hops=3)._quota(equal).tolist() == [19] * 7
    # At 0.5 % of every class of Cora, in proportion to its labels.
    counts = [2, 2, 3, 5, 3, 2, 1]
    labels = np.full(2708, UNKNOWN)
    labels[:18] = np.repeat(np.arange(7), counts)
    shares = Task(graph, Split("0.5 %", range(18), [], []), labels, classes)
    assert wrapper("self-training")._quota(shares).tolist() == [59, 59, 89, 148, 89, 59, 29]


def known(graph: Graph, labels: dict[int, int], classes: int = 2) -> Task:
    found = np.full(graph.n, UNKNOWN)
    found[list(labels)] = list(labels.values())
    return Task(graph, Split("by hand", list(labels), [], []), found, tuple("abc"[:classes]))


def test_walks_choose_the_nodes_next_to_the_labels() -> None:
    task = known(toy.path(9), {0: 0, 8: 1})
    chosen = nearest_nodes(task, unlabelled_nodes(task), np.array([2, 3]), 1e-6)
    assert {c: nodes.tolist() for c, nodes in chosen.items()} == {0: [1, 2], 1: [7, 6, 5]}


def test_walks_choose_nothing_in_a_component_without_labels() -> None:
    task = known(toy.disjoint(toy.path(3), toy.cycle(5)), {0: 0})
    assert nearest_nodes(task, unlabelled_nodes(task), np.array([6, 6]), 1e-6)[0].tolist() == [1, 2]
    assert nearest_nodes(task, unlabelled_nodes(task), np.array([6, 6]), 1e-6)[1].tolist() == []


def test_a_fit_chooses_what_it_is_surest_of() -> None:
    task = known(toy.path(6), {0: 0, 5: 1})
    first = np.array([1.0, 0.6, 0.9, 0.3, 0.4, 0.0])
    fit = Fit(task, np.stack([first, 1 - first], axis=1), epochs=0, weights={})
    chosen = surest(fit, unlabelled_nodes(task), np.array([1, 5]))
    assert {c: nodes.tolist() for c, nodes in chosen.items()} == {0: [2], 1: [3, 4]}


def test_a_node_never_gets_two_labels() -> None:
    task = known(toy.path(6), {0: 0, 5: 1})
    # Node 2 is the first choice of class 1 and the second of class 0; of node 3 it is a tie.
    added: AddedLabels = {0: np.array([1, 2, 3]), 1: np.array([2, 4, 3])}
    more = grown(task, added)
    assert more.labels.tolist() == [0, 0, 1, 0, 1, 1]
    assert more.split.train.tolist() == [0, 1, 2, 3, 4, 5]
    assert more.split.name == "by hand and 4 labels added"
    assert task.labels.tolist() == [0, *[UNKNOWN] * 4, 1]


def test_union_and_intersection_of_two_opinions() -> None:
    sure, near = np.array([7, 3, 5]), np.array([5, 9, 7])
    union, common = (system(name)._combine(sure, near) for name in ("union", "intersection"))  # type: ignore[attr-defined]
    assert union.tolist() == [7, 3, 5, 9]
    assert common.tolist() == [7, 5]


# What is inside


@every_wrapper
@pytest.mark.parametrize(
    ("inner", "settings"),
    [("truncated-krylov", "hidden=8,order=3"), ("lp", "alpha=0.01"), ("prototypes", "hops=4")],
)
def test_any_system_can_be_inside(name: str, inner: str, settings: str, data: Dataset) -> None:
    method = system(name, {"inner": inner, "inner_settings": settings}, operator="rw")
    assert isinstance(method, LabelGrowingSystem)
    assert (method.inner.name, method.inner.operator) == (inner, "rw")
    fit = method.fit(data.task(), conditions=SHORT)
    right = fit.predict_proba().argmax(axis=1) == data.labels
    assert right[SPLIT.test].mean() > 0.5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"inner": "gnc"}, "Unknown system 'gnc': did you mean 'gcn'"),
        ({"inner": "m3s"}, "The inner system 'm3s' adds labels itself"),
        ({"inner_settings": "hiden=3"}, "Unknown setting 'hiden': did you mean 'hidden'"),
        ({"inner_settings": "hidden"}, "written NAME=VALUE, such as hidden=64, not 'hidden'"),
        ({"inner_settings": "hidden=0"}, "'hidden' must be at least 1"),
    ],
)
def test_what_cannot_be_inside_is_said_at_once(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        system("self-training", changes)


def test_settings_of_the_inner_system_may_have_spaces() -> None:
    method = wrapper("self-training", inner_settings=" hidden = 5 , lr=0.5,")
    assert (method.inner.settings.hidden, method.inner.settings.lr) == (5, 0.5)
