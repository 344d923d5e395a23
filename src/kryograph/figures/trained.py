"""Test accuracy of a system over some seeds: a point of a line, with its interval."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from kryograph.data import Dataset
from kryograph.experiments.runner import Plan
from kryograph.experiments.settings import Column
from kryograph.results import summarise
from kryograph.systems import System
from kryograph.training.loop import Conditions, Diverged
from kryograph.training.protocol import Run


def accuracy(
    method: System,
    dataset: Dataset,
    seeds: int,
    *,
    jobs: int = 1,
    conditions: Conditions | None = None,
    on_run: Callable[[int], None] = lambda seed: None,
) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval on the public split, with validation.

    Runs that diverge are counted and left out; there is no mean if all do.

    Args:
        method: The system with its settings.
        dataset: It has a public split.
        seeds: How many runs; their seeds are 0, 1, …
        jobs: How many runs at once.
        conditions: Stop rule, device, precision.
        on_run: Hears of each run that is over.
    """
    plan = Plan(
        method,
        "figure",
        dataset,
        Column(dataset.name, "public", "validation"),
        seeds,
        conditions or Conditions(),
        jobs,
    )
    runs: list[Run] = []
    try:
        with closing(plan.runs()) as going:
            for run in going:
                runs.append(run)
                on_run(run.seed)
    except Diverged:
        there = {run.seed: run for run in runs}
        again = (there.get(seed) or _unless_diverged(plan, seed) for seed in range(seeds))
        runs = [run for run in again if run is not None]
    row: dict[str, Any] = {"runs": len(runs), "diverged": seeds - len(runs)}
    if not runs:
        return row | dict.fromkeys(("mean", "std", "low", "high"))
    found = summarise([run.test_accuracy for run in runs])
    low, high = found.ci95
    return row | {"mean": found.mean, "std": found.std, "low": low, "high": high}


def _unless_diverged(plan: Plan, seed: int) -> Run | None:
    try:
        return plan.run(seed)
    except Diverged:
        return None
