"""TODO: say what this module is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kryograph.data.splits import split_name
from kryograph.errors import unknown
from kryograph.runs.store import Row, key_of, setting_digest
from kryograph.systems import System

if TYPE_CHECKING:
    from kryograph.systems.base import System

PROTOCOLS = ("validation", "no-validation")


@dataclass(frozen=True)
class Scenario:
    """Where a system is run: a data set, a kind of split, a protocol; a column of a table.

    >>> Scenario("cora", "0.01", "validation") == Scenario("cora", "1.0%", "validation")
    True
    """

    dataset: str
    split: str
    """"public", "1%" or "20 per class"; a rate may be written in any way."""
    protocol: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "split", split_name(self.split))
        if self.protocol not in PROTOCOLS:
            raise unknown("protocol", self.protocol, PROTOCOLS)

    def __str__(self) -> str:
        return f"{self.dataset} {self.split}, {self.protocol}"


STOP = "paper"
"""The stop rule of every run in a table: the same for all systems."""


@dataclass(frozen=True)
class Job:
    """One run that is to be done: a system with its settings, a column, a seed."""

    system: System
    settings_source: str
    column: Scenario
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
