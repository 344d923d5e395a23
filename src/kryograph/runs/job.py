"""Scenario and Job: what is to be run, as values that identify a run in the results store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kryograph.data import Dataset
from kryograph.data.splits import split_name
from kryograph.errors import UsageError, unknown
from kryograph.graph import Task
from kryograph.runs.store import Row, key_of, setting_digest
from kryograph.systems import System
from kryograph.training.loop import Conditions
from kryograph.training.stopping import stop_rule

PROTOCOLS = ("validation", "no-validation")
"""`validation`: training sees the labels of 500 validation nodes and chooses the epoch by them.
`no-validation`: these labels are hidden as well, and training accuracy chooses the epoch."""

DEFAULT_STOP = "paper"
"""Stop rule of all runs in result tables, so that systems are compared on equal terms."""


@dataclass(frozen=True)
class Scenario:
    """Data set, kind of split and protocol under which systems are compared.

    >>> Scenario("cora", "0.01", "validation") == Scenario("cora", "1.0%", "validation")
    True
    """

    dataset: str
    """Name of the data set."""
    split: str
    """"public", "1%" or "20 per class"; a rate may be written in any way."""
    protocol: str
    """One of `PROTOCOLS`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "split", split_name(self.split))
        if self.protocol not in PROTOCOLS:
            raise unknown("protocol", self.protocol, PROTOCOLS)

    @property
    def sees_validation(self) -> bool:
        """Whether training sees the labels of the validation nodes."""
        return self.protocol == "validation"

    def task(self, dataset: Dataset, seed: int) -> Task:
        """Draw the split of a seed; the task has the labels that the protocol shows.

        Args:
            dataset: The data set that the scenario names.
            seed: Seed of the split; the public split is the same for every seed.
        """
        if dataset.name != self.dataset:
            raise UsageError(f"The scenario {self} is not one of the data set {dataset.name!r}.")
        split = dataset.split(self.split, seed=seed)
        return dataset.task(split, validation=self.sees_validation)

    def __str__(self) -> str:
        return f"{self.dataset} {self.split}, {self.protocol}"


@dataclass(frozen=True)
class Job:
    """One run that is to be done."""

    system: System
    settings_source: str
    """Where the settings of the system come from, such as "default" or "paper"."""
    scenario: Scenario
    seed: int = 0
    """Seed of the weights and, unless it is public, of the split."""
    stop: str = DEFAULT_STOP
    """Name of the stop rule."""
    precision: str = "float32"
    device: str = "cpu"
    """Device as torch names it. It does not identify a run: another one gives the same result."""

    def __post_init__(self) -> None:
        _ = self.conditions  # an unknown stop rule or precision is an error here, not in a worker

    @property
    def conditions(self) -> Conditions:
        """Stop rule, device and precision as training needs them."""
        return Conditions(stop_rule(self.stop), self.device, self.precision)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields of a row that distinguish this run from all others."""
        return {
            "system": self.system.name,
            "dataset": self.scenario.dataset,
            "split": self.scenario.split,
            "protocol": self.scenario.protocol,
            "stop": self.stop,
            "operator": self.system.operator,
            "precision": self.precision,
            "settings": self.system.settings.identity(),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """Primary key of this run in the results store."""
        return key_of(self.identity)

    @property
    def setting_digest(self) -> str:
        """Digest that is equal for equal settings and operators, whatever the scenario."""
        return setting_digest(self.system.settings.identity(), self.system.operator)

    def row(self, **outcome: Any) -> Row:
        """Build the row to store; `outcome` holds the measured fields, or `error`."""
        return Row(**self.identity, settings_source=self.settings_source, **outcome)

    def __str__(self) -> str:
        return f"{self.system.name}, {self.scenario}, seed {self.seed}"


def over_seeds(jobs: Iterable[Job], count: int) -> list[Job]:
    """Copies of the jobs with the seeds 0, 1, …, count − 1; seed 0 of every job comes first.

    >>> from kryograph.systems import system
    >>> job = Job(system("lp"), "default", Scenario("cora", "1%", "validation"))
    >>> [copy.seed for copy in over_seeds([job], 3)]
    [0, 1, 2]
    """
    if count < 1:
        raise UsageError(f"The number of runs must be at least 1; it is {count}.")
    templates = list(jobs)
    return [replace(job, seed=seed) for seed in range(count) for job in templates]
