"""The 81 rows of settings that the paper prints, read from `published_settings.csv`.

Numbers are as printed; if a printed number cannot be right, `lr_read` holds the one that is used
and `note` says why. Three values that the paper's rows lack are added: one hidden Krylov layer
(D4), the classifier C of the paper's equation (D2), and the operator of the authors' code (D1).
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
    *("lr", "weight_decay", "hidden", "layers"),
    *("order", "dropout", "optimizer", "classifier"),
)


@dataclass(frozen=True)
class Published:
    """Published settings of a system for a scenario, and the published accuracy as a fraction."""

    system: str
    scenario: Scenario
    settings: Settings
    operator: str
    accuracy: float
    source: str
    note: str


@cache
def published() -> tuple[Published, ...]:
    """All rows in the order of the paper.

    >>> row = published()[25]
    >>> row.system, str(row.scenario), row.settings.hidden, row.accuracy
    ('truncated-krylov', 'cora public, validation', 1950, 0.8351)
    """
    text = resources.files(__package__).joinpath("published_settings.csv").read_text("utf-8")
    return tuple(_row(row) for row in csv.DictReader(text.splitlines()))


def _row(row: dict[str, str]) -> Published:
    values = {name: row[name] for name in _SETTINGS if row[name]}
    values["lr"] = row["lr_read"] or row["lr"]
    return Published(
        system=row["system"],
        scenario=Scenario(
            dataset=row["dataset"],
            split="public" if row["public"] == "yes" else row["label_rate"],
            protocol=row["protocol"],
        ),
        settings=SYSTEMS[row["system"]].settings_type().replace(values),
        operator=row["operator"],
        accuracy=round(float(row["accuracy"]) / 100, 6),  # 83.51 must not become 0.8350999…
        source=row["source"],
        note=row["note"],
    )


def find_published(name: str, scenario: Scenario) -> Published | None:
    """Published settings of a system for a scenario; None if there are none."""
    rows = (row for row in published() if (row.system, row.scenario) == (name, scenario))
    return next(rows, None)


def paper_settings(name: str, scenario: Scenario) -> Published:
    """Published settings of a system for a scenario.

    Raises:
        UsageError: If there are none; it names the splits that have some.
    """
    row = find_published(name, scenario)
    if row is None:
        splits = [
            r.scenario.split
            for r in published()
            if (r.system, r.scenario.dataset, r.scenario.protocol)
            == (name, scenario.dataset, scenario.protocol)
        ]
        others = f"only for {', '.join(splits)}" if splits else "nor for any other split"
        raise UsageError(
            f"The paper prints no settings of {name} for {scenario}, {others}: "
            "use --settings default."
        )
    return row
