"""A sweep does all missing runs of a list of jobs and adds their rows to the results store.

The row of a run is on the disk before the run is reported, so a sweep may be stopped at any moment
and continues where it was. Several processes may sweep into one store: each locks the run that it
begins, and the lock ends with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from statistics import fmean
from typing import Any

from kryograph.data import Dataset
from kryograph.engine.cost import USUAL_EPOCHS, Estimate
from kryograph.engine.machine import available_memory, describe, measure_rates
from kryograph.errors import UsageError
from kryograph.runs.job import Job
from kryograph.runs.locks import Locks
from kryograph.runs.perform import failed_row
from kryograph.runs.store import Row, Store
from kryograph.runs.workers import LoadDataset, execute, ignore_job_epoch
from kryograph.stats import summarise
from kryograph.text import gigabytes, plural
from kryograph.threads import cores
from kryograph.training.loop import Epoch

RUN_KEYS = ("seed", "split_digest", "epochs", "seconds", "validation_accuracy", "test_accuracy")
"""Fields of each run in `runs_report`."""

START_SECONDS = 4.0
"""Time until workers begin to train, because Python imports torch once more for all of them."""


def missing(jobs: Iterable[Job], rows: Iterable[Row], *, retry: bool = False) -> list[Job]:
    """Select the jobs without a row; with `retry`, also those whose only rows are failures."""
    finished = {row.key for row in rows if not (retry and row.error)}
    return [job for job in jobs if job.key not in finished]


def sweep(
    jobs: Iterable[Job],
    store: Store,
    *,
    workers: int,
    load: LoadDataset,
    on_epoch: Callable[[Job, Epoch], None] = ignore_job_epoch,
) -> Generator[tuple[Job, Row], None, None]:
    """Do runs; yield each job with its row when the row is in the store.

    A run that raises an error is stored as failed. A run that another process is doing, or has
    finished meanwhile, is skipped. Arguments are those of `execute`.
    """
    with Locks.beside(store.path) as locks:

        def unlocked() -> Iterator[Job]:
            for job in jobs:
                key = job.key
                if locks.take(key) and not store.has(key):
                    yield job

        runs = execute(unlocked(), workers=workers, load=load, on_epoch=on_epoch)
        with closing(runs):
            for job, outcome in runs:
                row = failed_row(job, outcome) if isinstance(outcome, Exception) else outcome
                store.add(row)
                locks.release(job.key)
                yield job, row


def seconds_left(jobs: Iterable[Job], rows: Sequence[Row], workers: int) -> float | None:
    """Estimate the time of some runs from the rows of their systems on their data sets.

    For a system without rows it is the mean time of the others; None if there are no rows at all.
    """
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.seconds is not None:
            seconds.setdefault((row.system, row.dataset), []).append(row.seconds)
    if not seconds:
        return None
    means = {key: fmean(values) for key, values in seconds.items()}
    overall = fmean(means.values())
    total = sum(means.get((job.system.name, job.scenario.dataset), overall) for job in jobs)
    return total / workers


def estimate_run(job: Job, dataset: Dataset) -> Estimate | None:
    """Time and memory of a run; None if they are not known.

    It draws the split of the job, so a label rate that cannot work is an error here.
    """
    return job.system.estimate(job.scenario.task(dataset, job.seed), job.conditions)


def over_budget(job: Job, dataset: Dataset, budget: float) -> bool:
    """Whether a run is predicted to take more than `budget` seconds; False if it is not known."""
    estimate = estimate_run(job, dataset)
    return estimate is not None and estimate.seconds(measure_rates()) > budget


def choose_workers(estimate: Estimate | None, runs: int, requested: int | None) -> int:
    """Number of runs at the same time on this machine.

    Args:
        estimate: Time and memory of one run; None if they are not known.
        runs: Number of runs to do.
        requested: Number that the user requested; None to choose it.

    Raises:
        UsageError: If the runs need more memory than is free.
    """
    if requested is not None and requested < 1:
        raise UsageError(f"--jobs must be at least 1; it is {requested}.")
    if estimate is None:
        return min(requested or 1, runs)
    memory = available_memory()
    if requested is not None:
        workers = min(requested, runs)
    elif estimate.epoch.narrow():
        seconds = estimate.seconds(measure_rates())
        workers = useful_workers(runs, seconds, cores(), estimate.memory, memory)
    else:
        workers = 1
    estimate.check(memory, workers)
    return workers


def useful_workers(
    runs: int,
    seconds_per_run: float,
    cores: int,
    memory_per_run: float | None = None,
    memory: float | None = None,
) -> int:
    """Number of runs at the same time that saves time, if one thread per run is enough.

    >>> useful_workers(10, 30.0, cores=2), useful_workers(2, 0.1, cores=2)
    (2, 1)
    """
    workers = min(cores, runs)
    if memory_per_run and memory is not None:
        workers = max(1, min(workers, int(memory / memory_per_run)))
    saved = runs * seconds_per_run * (1 - 1 / workers)
    return workers if saved > START_SECONDS else 1


def describe_estimate(estimate: Estimate, runs: int, workers: int) -> str:
    """Sentence about the size of a network and the memory and time of its runs."""
    seconds = estimate.seconds(measure_rates())
    at_once = f", {workers} at a time" if workers > 1 else ""
    return (
        f"Estimate: {estimate.weights:,} weights, {1000 * seconds / USUAL_EPOCHS:.1f} ms "
        f"an epoch, {gigabytes(workers * estimate.memory)}; {plural(runs, 'run')} of about "
        f"{USUAL_EPOCHS} epochs{at_once}: {runs * seconds / workers:.0f} s."
    )


def runs_report(
    job: Job, dataset: Dataset, rows: Sequence[Row], workers: int, published: float | None
) -> dict[str, Any]:
    """JSON object of the runs of a job with several seeds; `published` is the paper's accuracy."""
    identity = job.identity
    del identity["seed"]
    return identity | {
        "settings": job.system.settings.as_dict(),
        "settings_source": job.settings_source,
        "device": job.device,
        "threads": describe()["threads"] if workers == 1 else 1,
        "nodes": dataset.graph.n,
        "runs": [{key: getattr(row, key) for key in RUN_KEYS} for row in rows],
        "paper": published,
        "test_accuracy": asdict(summarise([row.test_accuracy or 0.0 for row in rows])),
    }
