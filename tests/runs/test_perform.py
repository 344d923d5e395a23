from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import synthetic_citations
from kryograph.data.dataset import Dataset
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.runs.job import PROTOCOLS
from kryograph.runs.perform import final_score, run_system, validation_score
from kryograph.systems import SYSTEMS, Fit, System, system
from kryograph.systems.base import Probabilities, Weights
from kryograph.systems.settings import Settings
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))
SHORT = Conditions(rule=StopRule(max_epochs=20))


@pytest.fixture(scope="module")
def data() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=60, signal=0.5, seed=2)
    return replace(drawn, public=SPLIT)


class Spy(System):
    """Remembers the tasks that it is given and calls every node the first class."""

    def __init__(self) -> None:
        super().__init__(Settings())
        object.__setattr__(self, "tasks", [])

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        self.tasks.append(task)
        return Fit(task, self.apply({}, task.graph, 3), epochs=7, weights={})

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return np.tile([1.0, 0.0, 0.0], (graph.n, 1))


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


# Test labels are out of reach


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_in_a_task_leads_to_a_test_label(data: Dataset, protocol: str) -> None:
    spy = Spy()
    run_system(spy, data, SPLIT, seed=0, protocol=protocol)
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
    run_system(spy, data, SPLIT, seed=0, protocol=protocol)
    task = spy.tasks[0]
    np.testing.assert_array_equal(np.flatnonzero(task.labels != UNKNOWN), np.arange(visible))
    np.testing.assert_array_equal(task.labels[:visible], data.labels[:visible])
    assert task.has_validation is (protocol == "validation")
    assert task.split is SPLIT


def test_the_protocol_is_validation_unless_told(data: Dataset) -> None:
    spy = Spy()
    run_system(spy, data, SPLIT, seed=0)
    assert spy.tasks[0].has_validation


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_test_labels_change_the_test_score_only(data: Dataset, name: str, protocol: str) -> None:
    others = data.labels.copy()
    others[SPLIT.test] = (others[SPLIT.test] + 1) % len(data.classes)
    there = {field.name for field in dataclasses.fields(SYSTEMS[name].settings_type)}
    method = system(name, {"hidden": 8} if "hidden" in there else {})
    runs = [
        run_system(method, each, SPLIT, seed=4, protocol=protocol, conditions=SHORT)
        for each in (data, replace(data, labels=others))
    ]
    assert runs[0].test_accuracy != runs[1].test_accuracy
    assert replace(runs[0], seconds=0, test_accuracy=0) == replace(
        runs[1], seconds=0, test_accuracy=0
    )


# The final score


def test_the_final_score_is_the_share_of_right_test_nodes(data: Dataset) -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1, 1, 1], data.graph.n)
    fit = Fit(data.task(), probabilities, epochs=1, weights={})
    right = sum(
        max(range(3), key=lambda c: probabilities[node, c]) == data.labels[node]
        for node in range(130, 300)
    )
    assert 0 < right < 170
    assert final_score(fit, data) == right / 170


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


def test_a_run_says_what_happened(data: Dataset) -> None:
    done = run_system(Spy(), data, SPLIT, seed=11)
    assert (done.seed, done.epochs) == (11, 7)
    assert done.validation_accuracy == np.mean(data.labels[SPLIT.validation] == 0)
    assert done.split_digest == SPLIT.digest
    assert done.test_accuracy == np.mean(data.labels[SPLIT.test] == 0)
    assert done.seconds >= 0


def test_an_unknown_protocol_is_refused(data: Dataset) -> None:
    spy = Spy()
    with pytest.raises(UsageError, match="Unknown protocol 'validate': did you mean 'validation'"):
        run_system(spy, data, SPLIT, seed=0, protocol="validate")
    assert spy.tasks == []
