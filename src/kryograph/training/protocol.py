"""The paper's two protocols, and the only place where test labels are read.

`validation`: 500 labelled nodes outside training choose the epoch. `no-validation`: their labels
are hidden as well, and training accuracy takes their place. In both the test score is read once, at
the end, and nothing chooses by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kryograph.errors import UsageError, unknown
from kryograph.graph import UNKNOWN, Split, Task
from kryograph.training.loop import Conditions, Epoch, nobody

if TYPE_CHECKING:
    from kryograph.data.dataset import Dataset
    from kryograph.systems.base import Fit, System

PROTOCOLS = ("validation", "no-validation")


@dataclass(frozen=True)
class Run:
    """One system, one setting, one split, one seed."""

    seed: int
    split_digest: str
    epochs: int
    seconds: float
    validation_accuracy: float | None
    test_accuracy: float


def run(
    system: System,
    dataset: Dataset,
    split: Split,
    *,
    seed: int,
    protocol: str = "validation",
    conditions: Conditions | None = None,
    on_epoch: Callable[[Epoch], None] = nobody,
) -> Run:
    """Make the task, fit the system, read the test score."""
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    task = dataset.task(split, validation=protocol == "validation")
    start = time.perf_counter()
    fit = system.fit(task, seed=seed, conditions=conditions or Conditions(), on_epoch=on_epoch)
    return Run(
        seed=seed,
        split_digest=split.digest,
        epochs=fit.epochs,
        seconds=time.perf_counter() - start,
        validation_accuracy=fit.validation_accuracy,
        test_accuracy=final_score(fit, dataset),
    )


def final_score(fit: Fit, dataset: Dataset) -> float:
    """The accuracy of a finished fit on the test nodes of its task."""
    test = fit.task.split.test
    if fit.task.graph.fingerprint != dataset.graph.fingerprint:
        raise UsageError(f"This fit is of another graph than the data set {dataset.name!r}.")
    if test.size == 0 or np.any(dataset.labels[test] == UNKNOWN):
        raise UsageError(f"Split {fit.task.split.name!r} has no test node, or one without label.")
    predicted = fit.predict_proba()[test].argmax(axis=1)
    return float(np.mean(predicted == dataset.labels[test]))


def validation_score(fit: Fit, judge: Task) -> float:
    """The accuracy of a finished fit on validation nodes whose labels it has not seen.

    Args:
        fit: Of a task under either protocol.
        judge: A task with the same training nodes and other validation labels. It has no test
            labels, so that whoever chooses settings by this score cannot reach one.
    """
    nodes = judge.split.validation
    same = fit.task.graph.fingerprint == judge.graph.fingerprint
    if not (same and np.array_equal(fit.task.split.train, judge.split.train)):
        raise UsageError("A fit is judged on its own graph and training nodes, not on others.")
    if not judge.has_validation:
        raise UsageError(f"Split {judge.split.name!r} has no validation nodes with known labels.")
    if np.any(fit.task.labels[nodes] != UNKNOWN):
        raise UsageError("A fit is judged by labels that it has not seen, to be comparable.")
    predicted = fit.predict_proba()[nodes].argmax(axis=1)
    return float(np.mean(predicted == judge.labels[nodes]))
