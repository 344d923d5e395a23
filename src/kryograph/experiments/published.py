"""The settings that the paper prints: 81 rows.

They are data (`published_settings.csv`). Numbers stand there as printed; where a
printed number cannot be meant, `lr_read` holds what is used instead and `note` says why. Three
things that a row does not give are added: one hidden Krylov layer (D4), the classifier C of the
paper's equation (D2), and the operator of the authors' code, not of the paper's text (D1).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kryograph.errors import UsageError
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS
from kryograph.systems.settings import Settings

_SETTINGS = (
    "lr",
    "weight_decay",
    "hidden",
    "layers",
    "order",
    "dropout",
    "optimizer",
    "classifier",
)


@dataclass(frozen=True)
class Published:
    """One row: a system's settings for a column, and the accuracy that was printed for it."""

    system: str
    column: Scenario
    settings: Settings
    operator: str
    accuracy: float
    source: str
    note: str


@cache
def published() -> tuple[Published, ...]:
    """All 81 rows in the order of the paper.

    >>> row = published()[25]
    >>> row.system, str(row.column), row.settings.hidden, row.accuracy
    ('truncated-krylov', 'cora public, validation', 1950, 0.8351)
    """
    text = resources.files(__package__).joinpath("published_settings.csv").read_text("utf-8")
    return tuple(_row(row) for row in csv.DictReader(text.splitlines()))


def _row(row: dict[str, str]) -> Published:
    given = {name: row[name] for name in _SETTINGS if row[name]}
    given["lr"] = row["lr_read"] or row["lr"]
    return Published(
        system=row["system"],
        column=Scenario(
            dataset=row["dataset"],
            split="public" if row["public"] == "yes" else row["label_rate"],
            protocol=row["protocol"],
        ),
        settings=SYSTEMS[row["system"]].settings_type().replace(given),
        operator=row["operator"],
        # Printed in per cent; the fifth digit keeps 83.51 from becoming 0.8350999….
        accuracy=round(float(row["accuracy"]) / 100, 6),
        source=row["source"],
        note=row["note"],
    )


def find_published(name: str, column: Scenario) -> Published | None:
    """The row of a system and a column, if there is one."""
    for row in published():
        if row.system == name and row.column == column:
            return row
    return None


def paper_settings(name: str, column: Scenario) -> Published:
    """The row of a system and a column, or an error that names the columns there are."""
    row = find_published(name, column)
    if row is None:
        splits = [
            r.column.split
            for r in published()
            if (r.system, r.column.dataset, r.column.protocol)
            == (name, column.dataset, column.protocol)
        ]
        there_are = f"only for {', '.join(splits)}" if splits else "nor for any other split"
        raise UsageError(
            f"The paper prints no settings of {name} for {column}, {there_are}: "
            "use --settings default."
        )
    return row
