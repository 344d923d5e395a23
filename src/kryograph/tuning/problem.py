"""What is searched: the settings of a system for a column, and the runs that they are tried on.

Once the tasks are made, no label of a test node can be reached: see `lessons`.
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
from kryograph.errors import KryographError, UsageError, unknown
from kryograph.experiments.published import find_published
from kryograph.experiments.tuned import Tuned
from kryograph.graph import Split, Task
from kryograph.runs.job import STOP, Scenario
from kryograph.runs.perform import validation_score
from kryograph.systems import SYSTEMS, System, system
from kryograph.systems.settings import SearchRange, SearchValues, Settings, containing, parsed
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import RULES
from kryograph.tuning.space import search_space

FIRST_SEED = 1000
"""Searches are made with this seed and those after it, tables with 0, 1, …: no split is in both."""


@dataclass(frozen=True)
class JudgedTask:
    """One run of a trial: what is learned, the task whose validation labels judge it, the seed.

    The two have no validation label in common."""

    task: Task
    judge: Task
    seed: int


def judged_tasks(dataset: Dataset, column: Scenario, seeds: int) -> tuple[JudgedTask, ...]:
    """The runs of every trial. They hold tasks, which have no test labels; nothing after does."""
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1; it is {seeds}.")
    made = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        split = dataset.split(column.split, seed=seed)
        if column.protocol == "validation":
            seen, judged = _halves(split, seed)
            made.append(JudgedTask(dataset.task(seen), dataset.task(judged), seed))
        else:
            made.append(
                JudgedTask(dataset.task(split, validation=False), dataset.task(split), seed)
            )
    return tuple(made)


def _halves(split: Split, seed: int) -> tuple[Split, Split]:
    """The split with half of its validation nodes, and with the others.

    Were a run judged by the nodes that chose its epoch, those settings would win whose accuracy
    varies most from epoch to epoch. Two seeds share a partition, and swap the halves.
    """
    nodes = np.random.default_rng(seed // 2).permutation(split.validation)
    halves = replace(split, validation=nodes[::2]), replace(split, validation=nodes[1::2])
    return halves if seed % 2 == 0 else halves[::-1]


@dataclass(frozen=True)
class TuningProblem:
    """What is searched: the settings of a system for a column.

    Args:
        name: The system.
        column: For which its settings are to be good.
        lessons: On which they are tried.
        conditions: How a run is trained; that of the tables.
        known: What earlier searches found, for this column or for others.
        asked: What a person wants to be tried, by its source; see `asking`.
    """

    name: str
    column: Scenario
    lessons: tuple[JudgedTask, ...]
    conditions: Conditions = field(default_factory=lambda: Conditions(RULES[STOP]))
    known: tuple[Tuned, ...] = field(default=(), kw_only=True)
    asked: Mapping[str, System] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(
        cls,
        name: str,
        dataset: Dataset,
        column: Scenario,
        seeds: int,
        known: tuple[Tuned, ...] = (),
    ) -> TuningProblem:
        """The problem of a data set; where all runs would be the same, there is one of each."""
        if name not in SYSTEMS:
            raise unknown("system", name, SYSTEMS)
        alike = column.split == PUBLIC and not SYSTEMS[name].uses_seed
        different = 2 if column.protocol == "validation" else 1  # halves, if there are any
        made = judged_tasks(dataset, column, min(seeds, different) if alike else seeds)
        return cls(name, column, made, known=known)

    def asking(self, texts: Iterable[str]) -> TuningProblem:
        """The same, with settings such as "lr=0.01,layers=2" to be tried; else the default's."""
        default = self.point(self.starts["default"])
        asked = {
            f"--try {text!r}": self.made(
                default | parsed(self.space, text.split(","), self.defaults)
            )
            for text in texts
        }
        return replace(self, asked=asked)

    @property
    def defaults(self) -> Settings:
        """What the space varies."""
        return SYSTEMS[self.name].settings_type()

    @cached_property
    def starts(self) -> dict[str, System]:
        """What is tried first, by its source: nothing that is found may be worse."""
        row = find_published(self.name, self.column)
        paper = {"paper": system(self.name, row.settings, operator=row.operator)} if row else {}
        return {"default": system(self.name)} | paper

    @cached_property
    def space(self) -> dict[str, SearchValues]:
        """Where to look; all that is tried first lies in it."""
        return search_space(self.name, self.starts.values())

    @cached_property
    def found_before(self) -> dict[str, System]:
        """What is tried next, by its source: what searches found, as far as it is in the space."""
        there, found = [*self.starts.values(), *self.asked.values()], {}
        for each in self.known:
            method = each.system
            if method.name == self.name and method not in there and self._inside(method):
                there.append(method)
                found[f"tuned for {each.column}"] = method
        return found

    def _inside(self, method: System) -> bool:
        return containing(self.space, self.point(method)) == self.space

    def made(self, values: Mapping[str, Any]) -> System:
        """The system of a point of the space."""
        settings = {name: value for name, value in values.items() if name != "operator"}
        return system(self.name, settings, operator=values.get("operator", "sym"))

    def point(self, method: System) -> dict[str, Any]:
        """Where a system is in the space."""
        values = {**method.settings.as_dict(), "operator": method.operator}
        return {name: values[name] for name in self.space}

    def seconds(self, values: Mapping[str, Any]) -> float | None:
        """About how long a run at a point takes; None if that is not known."""
        try:
            estimate = self.made(values).estimate(self.lessons[0].task, self.conditions)
        except KryographError:  # settings that do not go together: the trial will say so
            return None
        return None if estimate is None else estimate.seconds(measure_rates())

    def score(self, method: System, lesson: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        """One run's accuracy on validation nodes that played no part in it."""
        fit = method.fit(
            lesson.task, seed=lesson.seed, conditions=self.conditions, on_epoch=on_epoch
        )
        return validation_score(fit, lesson.judge)

    def about(self) -> dict[str, Any]:
        """What has to be the same in every process and every call that shares a study."""
        return {
            "system or column": f"{self.name}, {self.column}",
            "set of splits": [
                f"{lesson.judge.split.digest} {lesson.seed}" for lesson in self.lessons
            ],
            "search space": {
                name: [where.low, where.high, where.log]
                if isinstance(where, SearchRange)
                else [*where]
                for name, where in self.space.items()
            },
        }
