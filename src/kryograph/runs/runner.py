"""A plan: one system on one column over several seeds, run by run, and the result of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from kryograph.data import Dataset
from kryograph.engine.cost import Estimate
from kryograph.engine.machine import available_memory, measure_rates
from kryograph.errors import UsageError
from kryograph.experiments.published import find_published
from kryograph.graph import Split
from kryograph.runs.job import Scenario
from kryograph.runs.perform import Run, run_system
from kryograph.runs.sweep import number_of_workers
from kryograph.runs.workers import cores, spread
from kryograph.stats import Summary, summarise
from kryograph.systems import System
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import RULES


@dataclass(frozen=True)
class Result:
    """What was run, and every run of it."""

    system: str
    dataset: str
    split: str
    protocol: str
    stop: str
    operator: str
    settings: dict[str, Any]
    settings_source: str
    device: str
    precision: str
    threads: int
    nodes: int
    """Of the graph; CiteSeer has fewer without its unlabelled ones."""
    runs: tuple[Run, ...]
    paper: float | None = None
    """The accuracy that the paper prints for this system and column."""

    @property
    def test_accuracy(self) -> Summary:
        """The summary of the test scores."""
        return summarise([run.test_accuracy for run in self.runs])

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self) | {"test_accuracy": dataclasses.asdict(self.test_accuracy)}


@dataclass(frozen=True)
class Plan:
    """What is to be run.

    Args:
        system: The method with its settings.
        settings_source: Where the settings come from; it is part of the result.
        dataset: What it learns; that of the column.
        column: Which splits, under which protocol.
        seeds: How many runs. Each seed 0, 1, … draws its own weights and, unless it is public, its
            own split.
        conditions: Device, precision, stop rule.
        jobs: How many runs at once. One is done in this process, with as many threads as torch
            has; several are done in processes with one thread each. The results are the same.
    """

    system: System
    settings_source: str
    dataset: Dataset
    column: Scenario
    seeds: int
    conditions: Conditions = field(default_factory=Conditions)
    jobs: int = 1
    splits: tuple[Split, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.column.dataset != self.dataset.name:
            raise UsageError(f"The column {self.column} is not one of {self.dataset.name}.")
        if self.seeds < 1:
            raise UsageError(f"There must be at least 1 seed; there are {self.seeds}.")
        if self.jobs < 1:
            raise UsageError(f"There must be at least 1 job; there are {self.jobs}.")
        object.__setattr__(self, "jobs", min(self.jobs, self.seeds))
        # All splits are drawn first: a rate that cannot work must not cost a run to find out.
        drawn = (self.dataset.split(self.column.split, seed=seed) for seed in range(self.seeds))
        object.__setattr__(self, "splits", tuple(drawn))

    def estimate(self) -> Estimate | None:
        """What a run will cost, if the system can tell."""
        validation = self.column.protocol == "validation"
        task = self.dataset.task(self.splits[0], validation=validation)
        return self.system.estimate(task, self.conditions)

    def choose_jobs(self, estimate: Estimate, requested: int | None = None) -> int:
        """How many runs to do at once: what is requested, or what their cost says."""
        return number_of_workers(
            requested,
            self.seeds,
            estimate.seconds(measure_rates()),
            estimate.epoch.narrow(),
            cores(),
            estimate.memory,
            available_memory(),
        )

    def run(self, seed: int, on_epoch: Callable[[Epoch], None] = lambda epoch: None) -> Run:
        """The run of one seed."""
        return run_system(
            self.system,
            self.dataset,
            self.splits[seed],
            seed=seed,
            protocol=self.column.protocol,
            conditions=self.conditions,
            on_epoch=on_epoch,
        )

    def runs(
        self, on_epoch: Callable[[int, Epoch], None] = lambda seed, epoch: None
    ) -> Generator[Run, None, None]:
        """The runs in the order of their seeds, so that what is finished survives an interruption.

        With one job `on_epoch` hears of every epoch, with several of a few in a second.
        """
        if self.jobs > 1:
            yield from spread(self.run, self.seeds, self.jobs, on_epoch)
            return
        for seed in range(self.seeds):
            yield self.run(seed, partial(on_epoch, seed))

    def result(self, runs: Sequence[Run]) -> Result:
        """What some of its runs come to."""
        row = find_published(self.system.name, self.column)
        return Result(
            system=self.system.name,
            dataset=self.column.dataset,
            split=self.column.split,
            protocol=self.column.protocol,
            stop=next((n for n, rule in RULES.items() if rule == self.conditions.rule), "own"),
            operator=self.system.operator,
            settings=self.system.settings.as_dict(),
            settings_source=self.settings_source,
            device=self.conditions.device,
            precision=self.conditions.precision,
            threads=torch.get_num_threads() if self.jobs == 1 else 1,
            nodes=self.dataset.graph.n,
            runs=tuple(runs),
            paper=row.accuracy if row else None,
        )
