"""A sweep: every run that a set of cells needs and the store does not have yet.

Runs are taken breadth first: one of every cell before the second of any. Each is done in a worker
process and its row is on the disk before the next is taken, so a sweep may be stopped at any moment
and goes on where it was. Several processes may sweep into one store: each claims the run that it
begins, and the claim ends with the process, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import fmean

from kryograph.engine.machine import measure_rates
from kryograph.errors import UsageError
from kryograph.runs.job import Job, Scenario
from kryograph.runs.locks import Locks
from kryograph.runs.perform import (
    _dataset,
    failed,
    perform,
)
from kryograph.runs.store import Row, Store
from kryograph.runs.workers import execute
from kryograph.systems import System
from kryograph.training.loop import Epoch


def breadth_first(cells: Sequence[tuple[System, str, Scenario]], runs: int) -> list[Job]:
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
    with Locks.beside(store.path) as claims:

        def unclaimed() -> Iterator[Job]:
            for job in jobs:
                key = job.key
                if claims.take(key) and not store.has(key):
                    yield job

        work = partial(perform, data_dir)
        with closing(execute(work, unclaimed(), workers, on_epoch)) as going:
            for job, outcome in going:
                row = failed(job, outcome) if isinstance(outcome, Exception) else outcome
                store.add(row)
                claims.release(job.key)
                yield job, row


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


def over_budget(system: System, column: Scenario, budget: float, data_dir: Path | None) -> bool:
    """Whether a run is predicted to take longer than so many seconds."""
    dataset = _dataset(column.dataset, data_dir)
    task = dataset.task(dataset.split(column.split), validation=column.protocol == "validation")
    estimate = system.estimate(task)
    return estimate is not None and estimate.seconds(measure_rates()) > budget


START_SECONDS = 4.0
"""About how long workers need until they train: Python imports torch once more, for all of them."""


def number_of_workers(
    requested: int | None,
    seeds: int,
    seconds_per_run: float | None,
    narrow: bool,
    cores: int,
    memory_per_run: float | None,
    memory: float | None,
) -> int:
    """How many runs to do at once.

    Args:
        requested: What the user wants; it is done, but there are never more jobs than seeds.
        seeds: How many runs there are.
        seconds_per_run: How long one is predicted to take, if that is known.
        narrow: One thread is about as fast as all of them.
        cores: How many there are.
        memory_per_run: Bytes, if known.
        memory: Bytes that may be used, if known.

    >>> number_of_workers(None, 10, 30.0, narrow=True, cores=2, memory_per_run=None, memory=None)
    2
    """
    if requested is not None:
        if requested < 1:
            raise UsageError(f"--jobs must be at least 1; it is {requested}.")
        return min(requested, seeds)
    if not narrow or seconds_per_run is None:
        return 1
    jobs = min(cores, seeds)
    if memory_per_run and memory is not None:
        jobs = max(1, min(jobs, int(memory / memory_per_run)))
    saved = seeds * seconds_per_run * (1 - 1 / jobs)
    return jobs if saved > START_SECONDS else 1
