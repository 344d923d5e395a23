from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import synthetic_citations
from kryograph.data.dataset import Dataset
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Indices, Split, Task
from kryograph.runs.job import PROTOCOLS, Job, Scenario
from kryograph.runs.perform import (
    Datasets,
    failed_row,
    final_score,
    final_scores,
    perform,
    true_classes,
    validation_score,
)
from kryograph.runs.store import Row
from kryograph.stats import METRICS
from kryograph.systems import SYSTEMS, Fit, System, system
from kryograph.systems.base import Probabilities, Weights
from kryograph.systems.settings import Settings
from kryograph.training.loop import Diverged

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))


@pytest.fixture(scope="module")
def data() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=60, signal=0.5, seed=2)
    return replace(drawn, public=SPLIT)


class Spy(System):
    """Remembers the tasks that it is given and calls every node the first class."""

    name = "spy"

    def __init__(self) -> None:
        super().__init__(Settings())
        object.__setattr__(self, "tasks", [])

    def fit(self, task: Task, **_: object) -> Fit:
        self.tasks.append(task)
        return Fit(task, self.apply({}, task.graph, 3), epochs=7, weights={})

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return np.tile([1.0, 0.0, 0.0], (graph.n, 1))


def job(method: System, protocol: str = "validation", seed: int = 0, stop: str = "paper") -> Job:
    return Job(method, "by hand", Scenario("synthetic", "public", protocol), seed, stop)


def everything_in(start: object) -> Iterator[object]:
    """The object, its attributes, elements and base arrays, and theirs."""
    waiting, seen = [start], {}
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, (type, str, bytes, int, float)):
            continue
        seen[id(found)] = found  # kept alive, so that no id is given twice
        yield found
        waiting += vars(found).values() if hasattr(found, "__dict__") else []
        if dataclasses.is_dataclass(found):
            waiting += [getattr(found, field.name) for field in dataclasses.fields(found)]
        elif isinstance(found, (tuple, list, set, frozenset)):
            waiting += found
        elif isinstance(found, dict):
            waiting += [*found, *found.values()]
        elif isinstance(found, np.ndarray) and found.base is not None:
            waiting.append(found.base)
        elif sp.issparse(found):
            waiting += [found.data, found.indices, found.indptr]


def labels_in(start: object, n: int) -> list[np.ndarray]:
    """Whatever has a whole number for each node."""
    return [
        found
        for found in everything_in(start)
        if isinstance(found, np.ndarray)
        and found.shape[:1] == (n,)
        and np.issubdtype(found.dtype, np.integer)
    ]


def measured(row: Row) -> Row:
    """The row without test score, and without what depends on the machine and the moment."""
    return replace(
        row, test_accuracy=0, seconds=0, peak_bytes=0, finished="", revision="", metrics={}
    )


# Test labels are out of reach


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_in_a_task_leads_to_a_test_label(data: Dataset, protocol: str) -> None:
    spy = Spy()
    perform(job(spy, protocol), data)
    task = spy.tasks[0]
    assert any(found is data.graph.adjacency for found in everything_in(task))
    found = labels_in(task, data.graph.n)
    assert any(labels is task.labels for labels in found)
    for labels in found:
        assert set(labels[SPLIT.test].tolist()) == {UNKNOWN}
        assert not np.shares_memory(labels, data.labels)
    assert not any(isinstance(found, Dataset) for found in everything_in(task))
    # The same walk does find them where they are.
    assert any(np.array_equal(labels, data.labels) for labels in labels_in(data, data.graph.n))


def test_a_task_with_a_test_label_cannot_be_made(data: Dataset) -> None:
    labels = data.task().labels.copy()
    labels[200] = 1
    with pytest.raises(UsageError, match="training and validation nodes only"):
        replace(data.task(), labels=labels)


@pytest.mark.parametrize(("protocol", "visible"), [("validation", 130), ("no-validation", 30)])
def test_a_protocol_shows_only_the_labels_it_allows(
    data: Dataset, protocol: str, visible: int
) -> None:
    spy = Spy()
    perform(job(spy, protocol), data)
    task = spy.tasks[0]
    np.testing.assert_array_equal(np.flatnonzero(task.labels != UNKNOWN), np.arange(visible))
    np.testing.assert_array_equal(task.labels[:visible], data.labels[:visible])
    assert task.has_validation is (protocol == "validation")
    assert task.split is SPLIT


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_test_labels_change_the_test_score_only(data: Dataset, name: str, protocol: str) -> None:
    others = data.labels.copy()
    others[SPLIT.test] = (others[SPLIT.test] + 1) % len(data.classes)
    there = {field.name for field in dataclasses.fields(SYSTEMS[name].settings_type)}
    method = system(name, {"hidden": 8} if "hidden" in there else {})
    rows = [
        perform(job(method, protocol, 4, stop="20"), version)
        for version in (data, replace(data, labels=others))
    ]
    assert rows[0].test_accuracy != rows[1].test_accuracy
    assert measured(rows[0]) == measured(rows[1])


# The final score


def test_final_score_is_the_share_of_right_test_nodes(data: Dataset) -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1, 1, 1], data.graph.n)
    fit = Fit(data.task(), probabilities, epochs=1, weights={})
    right = sum(
        max(range(3), key=lambda c: probabilities[node, c]) == data.labels[node]
        for node in range(130, 300)
    )
    assert 0 < right < 170
    assert final_score(fit, data) == right / 170


def test_final_score_is_refused_for_another_graph_or_without_test_labels(data: Dataset) -> None:
    fit = Fit(data.task(), np.ones((300, 3)) / 3, epochs=1, weights={})
    other = synthetic_citations(n=300, classes=3, words=60, signal=0.5, seed=3)
    with pytest.raises(UsageError, match="another graph than the data set 'synthetic'"):
        final_score(fit, other)
    hidden = data.labels.copy()
    hidden[200] = UNKNOWN
    with pytest.raises(UsageError, match="'by hand' has no test nodes, or test nodes without"):
        final_score(fit, replace(data, labels=hidden))


def test_final_scores_by_hand(data: Dataset) -> None:
    labels = data.labels.copy()
    labels[[2, 3, 4]] = [0, 0, 1]
    known = replace(data, labels=labels)
    split = Split("three", train=[0], validation=[1], test=[2, 3, 4])
    probabilities, sets = np.zeros((300, 3)), np.zeros((300, 3), dtype=bool)
    probabilities[2:5] = [[0.75, 0.25, 0], [0.25, 0.75, 0], [0.05, 0.95, 0]]
    sets[2, 0] = sets[3] = True  # one class, all classes, and none
    found = final_scores(probabilities, known, split, sets)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.balanced_accuracy == pytest.approx((1 / 2 + 1) / 2)
    # Two nodes of confidence 0.75, one of them right, and a right one of 0.95.
    assert found.calibration_error == pytest.approx((2 * 0.25 + 0.05) / 3)
    assert (found.coverage, found.set_size) == pytest.approx((2 / 3, 4 / 3))
    bare = final_scores(probabilities, known, split)
    assert bare == replace(found, coverage=None, set_size=None)


def test_true_classes_are_a_copy_of_the_labels(data: Dataset) -> None:
    classes = true_classes(data)
    np.testing.assert_array_equal(classes, data.labels)
    classes[0] = (classes[0] + 1) % 3
    assert data.labels[0] != classes[0]


# The score that settings are chosen by


def test_the_validation_score_is_that_of_labels_that_training_did_not_see(data: Dataset) -> None:
    probabilities = np.random.default_rng(1).dirichlet([1, 1, 1], data.graph.n)
    seen, unseen = (
        Fit(data.task(validation=seen), probabilities, epochs=1, weights={})
        for seen in (True, False)
    )
    expected = np.mean(probabilities[30:130].argmax(axis=1) == data.labels[30:130])
    assert 0 < expected < 1
    assert validation_score(unseen, data.task()) == expected == seen.validation_accuracy
    half = data.task(replace(SPLIT, validation=range(30, 80)))
    other = data.task(replace(SPLIT, validation=range(80, 130)))
    expected = np.mean(probabilities[80:130].argmax(axis=1) == data.labels[80:130])
    assert validation_score(Fit(half, probabilities, epochs=1, weights={}), other) == expected
    with pytest.raises(UsageError, match="labels that it has not seen"):
        validation_score(seen, other)


def test_a_fit_is_not_judged_by_a_task_without_validation_labels_or_of_another_split(
    data: Dataset,
) -> None:
    fit = Fit(data.task(validation=False), np.ones((300, 3)) / 3, epochs=1, weights={})
    with pytest.raises(UsageError, match="'by hand' has no validation nodes with known labels"):
        validation_score(fit, fit.task)
    other = Split("other", train=range(29), validation=range(30, 130), test=range(130, 300))
    with pytest.raises(UsageError, match="its own graph and training nodes"):
        validation_score(fit, data.task(other))


# One job becomes one row


def test_perform_row_says_what_was_run_and_what_happened(data: Dataset) -> None:
    spied = job(Spy(), seed=11)
    row = perform(spied, data)
    assert row.key == spied.key
    assert (row.seed, row.epochs, row.error) == (11, 7, None)
    assert row.validation_accuracy == np.mean(data.labels[SPLIT.validation] == 0)
    assert row.split_digest == SPLIT.digest
    assert row.test_accuracy == row.score("accuracy") == np.mean(data.labels[SPLIT.test] == 0)
    assert row.seconds is not None
    assert row.seconds >= 0
    assert {"kryograph", "torch", "python"} <= set(row.versions)
    assert row.finished.endswith("+00:00")


def test_perform_records_every_metric(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def share_of_first_class(probabilities: Probabilities, labels: Indices) -> float:
        return float(np.mean(labels == 0))

    monkeypatch.setitem(METRICS, "share", share_of_first_class)
    row = perform(job(Spy()), data)
    assert row.metrics == {"share": row.test_accuracy}
    assert row.score("share") == row.test_accuracy


def test_perform_uses_stop_rule_and_precision_of_the_job(data: Dataset) -> None:
    row = perform(job(system("gcn", {"hidden": 4}), stop="3"), data)
    assert (row.epochs, row.stop, row.precision) == (3, "3", "float32")


def test_perform_refuses_another_data_set(data: Dataset) -> None:
    elsewhere = Job(Spy(), "by hand", Scenario("cora", "public", "validation"))
    with pytest.raises(UsageError, match=r"scenario cora public, validation is not one of .*syn"):
        perform(elsewhere, data)


def test_failed_row_has_the_message_on_one_line() -> None:
    row = failed_row(job(system("lp")), Diverged("Too\nhigh."))
    assert (row.error, row.test_accuracy) == ("Diverged: Too high.", None)


# Data sets


def test_datasets_are_loaded_once_and_not_sent_to_workers(data: Dataset) -> None:
    names: list[str] = []

    def load(name: str) -> Dataset:
        names.append(name)
        return data

    datasets = Datasets(load)
    assert datasets("synthetic") is datasets("synthetic") is data
    assert names == ["synthetic"]
    by_name = pickle.loads(pickle.dumps(Datasets()))
    assert by_name("synthetic").graph.n == 2708


def test_datasets_that_are_given_are_sent_to_workers(data: Dataset) -> None:
    datasets = Datasets(loaded=[data])
    assert datasets("synthetic") is data
    copy = pickle.loads(pickle.dumps(datasets))
    assert copy("synthetic").graph.fingerprint == data.graph.fingerprint
