"""A sweep: every run that a set of cells needs and the store does not have yet.

Runs are taken breadth first: one of every cell before the second of any. Each is done in a worker
process and its row is on the disk before the next is taken, so a sweep may be stopped at any moment
and goes on where it was. Several processes may sweep into one store: each claims the run that it
begins, and the claim ends with the process, however it ends.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from kryograph.data import Dataset, load
from kryograph.engine.machine import measure
from kryograph.errors import UsageError
from kryograph.experiments.claims import Claims
from kryograph.experiments.jobs import stream
from kryograph.experiments.peak import peak_bytes
from kryograph.experiments.settings import Column
from kryograph.store import Row, Store, key_of, setting_digest
from kryograph.systems import System
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.protocol import Run, run

STOP = "paper"
"""The stop rule of every run in a table: the same for all systems."""


@dataclass(frozen=True)
class Job:
    """One run that is to be done: a system with its settings, a column, a seed."""

    system: System
    settings_source: str
    column: Column
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        """What tells its row from all others."""
        return {
            "system": self.system.name,
            "dataset": self.column.dataset,
            "split": self.column.split,
            "protocol": self.column.protocol,
            "stop": STOP,
            "operator": self.system.operator,
            "precision": "float32",
            "settings": self.system.settings.identity(),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """That of its row."""
        return key_of(self.identity)

    @property
    def setting_digest(self) -> str:
        """That of its row."""
        return setting_digest(self.system.settings.identity(), self.system.operator)

    def row(self, **outcome: Any) -> Row:
        """Its row, given what came of it."""
        return Row(**self.identity, settings_source=self.settings_source, **outcome)

    def __str__(self) -> str:
        return f"{self.system.name}, {self.column}, seed {self.seed}"


def breadth_first(cells: Sequence[tuple[System, str, Column]], runs: int) -> list[Job]:
    """The runs of all cells, the first of each before the second of any."""
    if runs < 1:
        raise UsageError(f"--runs must be at least 1; it is {runs}.")
    return [
        Job(system, source, column, seed)
        for seed in range(runs)
        for system, source, column in cells
    ]


def missing(jobs: Iterable[Job], rows: Iterable[Row], *, retry: bool = False) -> list[Job]:
    """Those that have no row yet; with `retry`, nor one of a failure."""
    there = {row.key for row in rows if not (retry and row.error)}
    return [job for job in jobs if job.key not in there]


def sweep(
    jobs: Sequence[Job],
    store: Store,
    *,
    workers: int,
    data_dir: Path | None = None,
    on_epoch: Callable[[Job, Epoch], None] = lambda job, epoch: None,
) -> Generator[tuple[Job, Row], None, None]:
    """Do the runs; each comes with its row as soon as that is on the disk.

    A run that another process is at, or has finished meanwhile, is left to it.
    """
    with Claims.beside(store.path) as claims:

        def unclaimed() -> Iterator[Job]:
            for job in jobs:
                key = job.key
                if claims.take(key) and not store.has(key):
                    yield job

        work = partial(perform, data_dir)
        with closing(stream(work, unclaimed(), workers, on_epoch)) as going:
            for job, outcome in going:
                row = failed(job, outcome) if isinstance(outcome, Exception) else outcome
                store.add(row)
                claims.release(job.key)
                yield job, row


def perform(data_dir: Path | None, job: Job, tell: Callable[[Epoch], None]) -> Row:
    """The run, in whatever process this is."""
    dataset = _dataset(job.column.dataset, data_dir)
    split = dataset.split(job.column.split, seed=job.seed)

    def work() -> Run:
        return run(
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


def seconds_left(jobs: Iterable[Job], rows: Sequence[Row], workers: int) -> float | None:
    """How long some runs will take, by what others of the same system and data set took.

    For a system that has not been run yet it is what the others took on average.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.seconds is not None:
            known.setdefault((row.system, row.dataset), []).append(row.seconds)
    if not known:
        return None
    means = {key: fmean(values) for key, values in known.items()}
    usual = fmean(means.values())
    total = sum(means.get((job.system.name, job.column.dataset), usual) for job in jobs)
    return total / workers


def over_budget(system: System, column: Column, budget: float, data_dir: Path | None) -> bool:
    """Whether a run is predicted to take longer than so many seconds."""
    dataset = _dataset(column.dataset, data_dir)
    task = dataset.task(dataset.split(column.split), validation=column.protocol == "validation")
    estimate = system.estimate(task)
    return estimate is not None and estimate.seconds(measure()) > budget


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
