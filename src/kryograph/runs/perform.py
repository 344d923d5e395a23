"""One job becomes one row; the only module that compares predictions with test labels.

Test labels are read after training, once per run, and nothing is chosen by them. Other modules call
the functions here instead of reading `Dataset.labels`; a test of the architecture checks it.
"""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.data import Dataset, load
from kryograph.engine.machine import peak_bytes
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices, Split, Task
from kryograph.runs.job import Job
from kryograph.runs.store import Row
from kryograph.stats import METRICS, accuracy, balanced_accuracy, calibration_error
from kryograph.systems import SYSTEMS, Fit
from kryograph.systems.base import Probabilities
from kryograph.threads import on_free_cores
from kryograph.training.loop import OnEpoch, ignore_epoch


class Datasets:
    """Data sets by name, each loaded when it is first needed and once per process.

    Worker processes receive a copy without the loaded data sets and load what they need.

    Args:
        load: Loads a data set by its name.
        loaded: Data sets that need not be loaded. They are sent to worker processes, because `load`
            might give another graph: one with unlabelled nodes, or one of the user's own files.
    """

    def __init__(
        self, load: Callable[[str], Dataset] = load, loaded: Iterable[Dataset] = ()
    ) -> None:
        self._load = load
        self._sent = tuple(loaded)
        self._known = {dataset.name: dataset for dataset in self._sent}

    def __call__(self, name: str) -> Dataset:
        """Return the data set of that name."""
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def __reduce__(self) -> tuple[type[Datasets], tuple[Any, ...]]:
        return Datasets, (self._load, self._sent)


def perform(job: Job, dataset: Dataset, on_epoch: OnEpoch = ignore_epoch) -> Row:
    """Do one run in this process: draw the split, train, read the test score.

    Args:
        job: The run to do.
        dataset: The data set that the job names.
        on_epoch: Called after each epoch.
    """
    task = job.scenario.task(dataset, job.seed)

    def train() -> tuple[Fit, float]:
        start = time.perf_counter()
        with on_free_cores():
            fit = job.system.fit(task, seed=job.seed, conditions=job.conditions, on_epoch=on_epoch)
        return fit, time.perf_counter() - start

    (fit, seconds), peak = peak_bytes(train)
    scores = {name: final_score(fit, dataset, name) for name in METRICS}
    return job.row(
        split_digest=task.split.digest,
        epochs=fit.epochs,
        seconds=round(seconds, 3),
        validation_accuracy=fit.validation_accuracy,
        test_accuracy=scores.pop("accuracy"),
        metrics=scores,
        peak_bytes=peak,
        **_provenance(job),
    )


def failed_row(job: Job, error: Exception) -> Row:
    """Build the row of a run that raised an error; it keeps the message, on one line."""
    message = " ".join(str(error).split()) or type(error).__name__
    return job.row(error=f"{type(error).__name__}: {message}"[:500], **_provenance(job))


def final_score(fit: Fit, dataset: Dataset, metric: str = "accuracy") -> float:
    """Score of a finished fit on the test nodes of its task.

    Call it once, when training is over: nothing may be chosen by its value.

    Args:
        fit: A fit of a task of this data set.
        dataset: The data set, which has the test labels.
        metric: A key of `stats.METRICS`.
    """
    if fit.task.graph.fingerprint != dataset.graph.fingerprint:
        raise UsageError(f"The fit is of another graph than the data set {dataset.name!r}.")
    test = fit.task.split.test
    return METRICS[metric](fit.predict_proba()[test], _test_labels(dataset, fit.task.split))


@dataclass(frozen=True)
class FinalScores:
    """Scores of predictions on the test nodes of a split.

    Args:
        accuracy: Share of test nodes whose most probable class is right.
        balanced_accuracy: Mean of this share over the classes.
        calibration_error: Expected calibration error in ten bins.
        coverage: Share of test nodes whose true class is in their set; None without sets.
        set_size: Mean number of classes in a set; None without sets.
    """

    accuracy: float
    balanced_accuracy: float
    calibration_error: float
    coverage: float | None = None
    set_size: float | None = None


def final_scores(
    probabilities: Probabilities,
    dataset: Dataset,
    split: Split,
    sets: npt.NDArray[np.bool_] | None = None,
) -> FinalScores:
    """Score probabilities, and perhaps prediction sets, on the test nodes of a split.

    Call it once for each set of predictions, when they are final and calibrated.

    Args:
        probabilities: Class probabilities of every node, N × C.
        dataset: The data set, which has the test labels.
        split: The split whose training labels were known.
        sets: Whether a class is in the prediction set of a node, N × C.
    """
    true, predicted = _test_labels(dataset, split), probabilities[split.test]
    scores = FinalScores(
        accuracy(predicted, true),
        balanced_accuracy(predicted, true),
        calibration_error(predicted, true),
    )
    if sets is None:
        return scores
    tested = sets[split.test]
    coverage = tested[np.arange(true.size), true].mean()
    size = tested.sum(axis=1).mean()
    return replace(scores, coverage=float(coverage), set_size=float(size))


def true_classes(dataset: Dataset) -> Indices:
    """Class of every node, `UNKNOWN` if it has none; only for drawing, never for training."""
    return dataset.labels.copy()


def validation_score(fit: Fit, judge: Task) -> float:
    """Accuracy of a finished fit on validation nodes whose labels it has not seen.

    A search for settings compares these scores; it cannot reach a test label.

    Args:
        fit: A fit of a task under either protocol.
        judge: A task with the same graph and training nodes, and other validation labels.
    """
    nodes = judge.split.validation
    same_graph = fit.task.graph.fingerprint == judge.graph.fingerprint
    if not (same_graph and np.array_equal(fit.task.split.train, judge.split.train)):
        raise UsageError("A fit can only be judged on its own graph and training nodes.")
    if not judge.has_validation:
        raise UsageError(f"Split {judge.split.name!r} has no validation nodes with known labels.")
    if np.any(fit.task.labels[nodes] != UNKNOWN):
        raise UsageError("A fit can only be judged by labels that it has not seen.")
    return accuracy(fit.predict_proba()[nodes], judge.labels[nodes])


def _test_labels(dataset: Dataset, split: Split) -> Indices:
    labels = dataset.labels[split.test]
    if labels.size == 0 or np.any(labels == UNKNOWN):
        raise UsageError(f"Split {split.name!r} has no test nodes, or test nodes without label.")
    return labels


def _provenance(job: Job) -> dict[str, Any]:
    """Fields of a row that say by which programs and when a run was done."""
    name = job.system.name
    plugin = SYSTEMS.distribution(name) if name in SYSTEMS else None
    versions = _versions() | dict([plugin] if plugin else [])
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"versions": versions, "revision": _revision(), "finished": finished}


@cache
def _versions() -> dict[str, str]:
    packages = ("kryograph", "torch", "torch_geometric", "numpy", "scipy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


@cache
def _revision() -> str:
    """Commit of this source, with "+" if files were changed since; "" outside a repository."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(folder))
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""
