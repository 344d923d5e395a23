"""The paper's two protocols, and the only place where test labels are read.

`validation`: 500 labelled nodes outside training choose the epoch. `no-validation`: their labels
are hidden as well, and training accuracy takes their place. In both the test score is read once, at
the end, and nothing chooses by it.
"""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kryograph.data import Dataset, load
from kryograph.engine.machine import peak_bytes
from kryograph.errors import UsageError, unknown
from kryograph.graph import UNKNOWN, Split, Task
from kryograph.runs.job import PROTOCOLS, Job
from kryograph.runs.store import Row
from kryograph.systems import System
from kryograph.training.loop import Conditions, Epoch, ignore_epoch

if TYPE_CHECKING:
    from kryograph.data.dataset import Dataset
    from kryograph.systems.base import Fit, System


@dataclass(frozen=True)
class Run:
    """One system, one setting, one split, one seed."""

    seed: int
    split_digest: str
    epochs: int
    seconds: float
    validation_accuracy: float | None
    test_accuracy: float


def run_system(
    system: System,
    dataset: Dataset,
    split: Split,
    *,
    seed: int,
    protocol: str = "validation",
    conditions: Conditions | None = None,
    on_epoch: Callable[[Epoch], None] = ignore_epoch,
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


def perform(data_dir: Path | None, job: Job, tell: Callable[[Epoch], None]) -> Row:
    """The run, in whatever process this is."""
    dataset = _dataset(job.column.dataset, data_dir)
    split = dataset.split(job.column.split, seed=job.seed)

    def work() -> Run:
        return run_system(
            job.system,
            dataset,
            split,
            seed=job.seed,
            protocol=job.column.protocol,
            conditions=Conditions(),
            on_epoch=tell,
        )

    done, peak = peak_bytes(work)
    return job.row(
        split_digest=done.split_digest,
        epochs=done.epochs,
        seconds=round(done.seconds, 3),
        validation_accuracy=done.validation_accuracy,
        test_accuracy=done.test_accuracy,
        peak_bytes=peak,
        **_by_what(),
    )


def failed(job: Job, error: Exception) -> Row:
    """The row of a run that raised; what it said is kept, on one line."""
    said = " ".join(str(error).split()) or type(error).__name__
    return job.row(error=f"{type(error).__name__}: {said}"[:500], **_by_what())


@cache
def _dataset(name: str, data_dir: Path | None) -> Dataset:
    return load(name, data_dir=data_dir)


@cache
def _versions() -> dict[str, str]:
    packages = ("kryograph", "torch", "torch_geometric", "numpy", "scipy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


@cache
def _revision() -> str:
    """The commit that this code is, with "+" if it was changed since; "" outside a repository."""
    where = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(where))
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""


def _by_what() -> dict[str, Any]:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"versions": _versions(), "revision": _revision(), "finished": finished}
