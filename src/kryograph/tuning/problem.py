"""A tuning problem: the settings of a system for a scenario, and the tasks they are scored on.

Once the tasks are built, nothing in a search can reach the label of a test node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kryograph.data import Dataset
from kryograph.data.splits import PUBLIC
from kryograph.engine.machine import measure_rates
from kryograph.errors import KryographError, UsageError
from kryograph.experiments.published import find_published
from kryograph.experiments.tuned import Tuned
from kryograph.graph import Split, Task
from kryograph.runs.job import DEFAULT_STOP, Scenario
from kryograph.runs.perform import validation_score
from kryograph.systems import SYSTEMS, System, system
from kryograph.systems.settings import SearchRange, SearchValues, Settings
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import RULES
from kryograph.tuning.space import parse_values, search_space, widen_space

FIRST_SEED = 1000
"""First seed of the splits of a search. Result tables use 0, 1, …, so that no split is in both."""


@dataclass(frozen=True)
class JudgedTask:
    """One run of a trial: `task` is trained on, and `judge` has other validation labels."""

    task: Task
    judge: Task
    """The same graph and training nodes; its validation labels score the result."""
    seed: int
    """Seed of the split, of the initial weights and of dropout."""


def judged_tasks(dataset: Dataset, scenario: Scenario, seeds: int) -> tuple[JudgedTask, ...]:
    """Build the runs of every trial, one per seed; they hold no test labels."""
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1; it is {seeds}.")
    tasks = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        split = dataset.split(scenario.split, seed=seed)
        if scenario.protocol == "validation":
            trained, judged = (dataset.task(half) for half in _halves(split, seed))
        else:
            trained, judged = dataset.task(split, validation=False), dataset.task(split)
        tasks.append(JudgedTask(trained, judged, seed))
    return tuple(tasks)


def _halves(split: Split, seed: int) -> tuple[Split, Split]:
    """Two copies of a split, each with one half of its validation nodes.

    If the nodes that choose the epoch of a run also scored it, a search would prefer settings whose
    accuracy varies most between epochs. Seeds 2 k and 2 k + 1 swap the two halves.
    """
    nodes = np.random.default_rng(seed // 2).permutation(split.validation)
    halves = replace(split, validation=nodes[::2]), replace(split, validation=nodes[1::2])
    return halves if seed % 2 == 0 else halves[::-1]


@dataclass(frozen=True)
class TuningProblem:
    """A search for settings of a system that are good in a scenario.

    Args:
        name: The name of the system.
        scenario: The scenario that the settings are searched for.
        tasks: The runs of every trial.
        conditions: Stop rule, device and precision of every run; by default those of the tables.
        known: Results of earlier searches, for this scenario or for others.
        requested: Systems that the user wants to be tried, by their source; see `requesting`.
    """

    name: str
    scenario: Scenario
    tasks: tuple[JudgedTask, ...]
    conditions: Conditions = field(default_factory=lambda: Conditions(RULES[DEFAULT_STOP]))
    known: tuple[Tuned, ...] = field(default=(), kw_only=True)
    requested: Mapping[str, System] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(
        cls,
        name: str,
        dataset: Dataset,
        scenario: Scenario,
        seeds: int,
        known: tuple[Tuned, ...] = (),
    ) -> TuningProblem:
        """Build the problem of a data set with one run per seed, but no two equal runs."""
        if not SYSTEMS.find(name).uses_seed and scenario.split == PUBLIC:
            # Only the halves of the validation nodes differ, if the protocol divides them.
            seeds = min(seeds, 2 if scenario.protocol == "validation" else 1)
        return cls(name, scenario, judged_tasks(dataset, scenario, seeds), known=known)

    def requesting(self, texts: Iterable[str]) -> TuningProblem:
        """Copy the problem with settings to try, such as "lr=0.01,layers=2"; others are default."""
        default = self.point(self.starts["default"])
        requested = {
            f"--try {text!r}": self.system_at(
                default | parse_values(self.space, text.split(","), self.defaults)
            )
            for text in texts
        }
        return replace(self, requested=requested)

    @property
    def defaults(self) -> Settings:
        """The default settings of the system."""
        return SYSTEMS[self.name].settings_type()

    @cached_property
    def starts(self) -> dict[str, System]:
        """The systems that are tried first, by their source: "default", "paper" if published."""
        row = find_published(self.name, self.scenario)
        paper = {"paper": system(self.name, row.settings, operator=row.operator)} if row else {}
        return {"default": system(self.name)} | paper

    @cached_property
    def space(self) -> dict[str, SearchValues]:
        """The search space; it contains the systems that are tried first."""
        return search_space(self.name, self.starts.values())

    @cached_property
    def earlier_results(self) -> dict[str, System]:
        """Systems from `known` that are tried next, by their source; only those in the space."""
        tried = [*self.starts.values(), *self.requested.values()]
        results = {}
        for tuned in self.known:
            method = tuned.system
            if method.name == self.name and method not in tried and self._contains(method):
                tried.append(method)
                results[f"tuned for {tuned.scenario}"] = method
        return results

    def _contains(self, method: System) -> bool:
        return widen_space(self.space, self.point(method)) == self.space

    def system_at(self, values: Mapping[str, Any]) -> System:
        """Build the system at a point of the search space."""
        settings = {name: value for name, value in values.items() if name != "operator"}
        return system(self.name, settings, operator=values.get("operator", "sym"))

    def point(self, method: System) -> dict[str, Any]:
        """The point of a system in the search space: its searched settings and operator."""
        values = {**method.settings.as_dict(), "operator": method.operator}
        return {name: values[name] for name in self.space}

    def seconds(self, values: Mapping[str, Any]) -> float | None:
        """Estimate the time of one run at a point; None if it is not known."""
        try:
            estimate = self.system_at(values).estimate(self.tasks[0].task, self.conditions)
        except KryographError:  # incompatible settings; the trial will fail with the same error
            return None
        return None if estimate is None else estimate.seconds(measure_rates())

    def score(self, method: System, run: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        """Do one run; its accuracy on the validation nodes that judge it."""
        fit = method.fit(run.task, seed=run.seed, conditions=self.conditions, on_epoch=on_epoch)
        return validation_score(fit, run.judge)

    def about(self) -> dict[str, Any]:
        """Description for the database: it must be equal in all processes that share a study."""
        return {
            "system or column": f"{self.name}, {self.scenario}",
            "set of splits": [f"{run.judge.split.digest} {run.seed}" for run in self.tasks],
            "search space": {
                name: [values.low, values.high, values.log]
                if isinstance(values, SearchRange)
                else [*values]
                for name, values in self.space.items()
            },
        }
