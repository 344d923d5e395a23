"""Ten seeds of a default run against literal runs in turn.

The start of the worker processes is part of the time of the ten seeds.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark
from kryograph.bench.contestant import network_system
from kryograph.data import load
from kryograph.graph import Task
from kryograph.runs.job import Job, Scenario, over_seeds
from kryograph.runs.perform import Datasets
from kryograph.runs.store import Row
from kryograph.runs.sweep import choose_workers, estimate_run
from kryograph.runs.workers import execute
from kryograph.systems.network import NetworkSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SEEDS, QUICK_SEEDS = 10, 2
LITERAL_EPOCHS = 25
"""Epochs of the literal form that are timed; all of its epochs do the same work."""


@benchmark(
    {
        "": (
            ColumnFormat("runs", "seeds"),
            ColumnFormat("at a time", "jobs"),
            ColumnFormat("seconds", "seconds", "{:.1f}".format),
            ColumnFormat("literal, in turn", "literal_seconds", "{:.1f}".format),
            ColumnFormat("ratio", "speedup", "{:.1f}×".format),
        )
    }
)
def measure_seeds(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Wall-clock seconds of ten seeds, or two, and those that as many literal epochs would take."""
    method = network_system("truncated-krylov")
    job = Job(method, "default", Scenario("cora", "public", "validation"))
    dataset = load("cora")
    seeds = QUICK_SEEDS if quick else SEEDS
    workers = choose_workers(estimate_run(job, dataset), seeds, None)
    on_case(f"{seeds} seeds of truncated-krylov on cora, {workers} at a time")
    epochs, start = 0, perf_counter()
    datasets = Datasets(loaded=[dataset])
    for _, outcome in execute(over_seeds([job], seeds), workers=workers, load=datasets):
        if not isinstance(outcome, Row):
            raise outcome
        epochs += outcome.epochs or 0
    together = perf_counter() - start
    on_case("the literal form")
    per_epoch = literal_epoch_seconds(method, job.scenario.task(dataset, 0), LITERAL_EPOCHS)
    sequential = per_epoch * epochs
    return {
        "seeds": seeds,
        "jobs": workers,
        "seconds": together,
        "literal_epoch_seconds": per_epoch,
        "literal_seconds": sequential,
        "speedup": sequential / together,
    }


def literal_epoch_seconds(method: NetworkSystem, task: Task, epochs: int) -> float:
    """Seconds per epoch of a run in the published form, on every node in every step."""
    conditions = Conditions(rule=StopRule(max_epochs=epochs))
    start = perf_counter()
    fit = method.fit(task, conditions=conditions, literal=True)
    return (perf_counter() - start) / fit.epochs
