"""Result tables: scenarios as columns, systems as rows, and published values, in TOML files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kryograph.data import find_source
from kryograph.errors import UsageError, unknown
from kryograph.experiments import TABLES
from kryograph.files import parse_toml, read_text, replaced
from kryograph.runs.job import Scenario
from kryograph.runs.store import Row, read_csv, write_csv
from kryograph.systems import SYSTEMS

_KEYS = {"title", "source", "protocol", "columns", "published"}
_COLUMN_KEYS = {"name", "dataset", "split"}


@dataclass(frozen=True)
class Cell:
    """A system in a column of a result table."""

    table: str
    system: str
    heading: str
    """Heading of the column, such as "Cora 1%"."""
    scenario: Scenario
    paper: float | None
    """Published accuracy as a fraction; None if there is none."""

    @property
    def label_rate(self) -> str:
        """Label rate in the heading; for the public split of Cora it is "5.2%"."""
        return self.heading.rsplit(" ", 1)[-1]

    def __str__(self) -> str:
        return f"{self.system}, {self.heading}"


@dataclass(frozen=True)
class ResultTable:
    """Columns and rows of a result table; `cells` has all of its cells row by row.

    >>> result_table("table2").cell("gcn", "Cora 1%").paper
    0.623
    """

    name: str
    title: str
    source: str
    headings: tuple[str, ...]
    systems: tuple[str, ...]
    cells: tuple[Cell, ...]

    def cell(self, system: str, heading: str) -> Cell:
        """The cell of `system` in the column with this heading."""
        [cell] = [c for c in self.cells if (c.system, c.heading) == (system, heading)]
        return cell

    def part(self, systems: Sequence[str] = (), headings: Sequence[str] = ()) -> list[Cell]:
        """Select cells by system and heading; case and spaces do not matter, empty means all."""
        rows = [_find(name, self.systems, "system in this table") for name in systems]
        columns = [_find(name, self.headings, "column") for name in headings]
        return [
            cell
            for cell in self.cells
            if cell.system in (rows or self.systems) and cell.heading in (columns or self.headings)
        ]


def _find(name: str, known: Iterable[str], kind: str) -> str:
    by_key = {_key(other): other for other in known}
    if _key(name) not in by_key:
        raise unknown(kind, name, by_key.values())
    return by_key[_key(name)]


def _key(name: str) -> str:
    return name.lower().replace(" ", "")


def find_table(name: str) -> ResultTable:
    """Return a result table by its name, or by the path of a TOML file."""
    if not name.endswith(".toml"):
        return result_table(name)
    path = Path(name)
    return parse_result_table(read_text(path), path.stem, str(path))


@cache
def result_table(name: str) -> ResultTable:
    """Return a result table that comes with kryograph."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8")
    return parse_result_table(text, name, f"{name}.toml")


def parse_result_table(text: str, name: str, location: str) -> ResultTable:
    """Read a result table from a TOML text; errors name its `location`."""
    return parse_toml(text, location, lambda data: _table(data, name))


def _table(data: Mapping[str, Any], name: str) -> ResultTable:
    check_keys(data, _KEYS)
    if not isinstance(data["columns"], list) or not isinstance(data["published"], dict):
        raise UsageError("'columns' must be a list and 'published' a table.")
    columns: dict[str, Scenario] = {}
    for column in data["columns"]:
        if not isinstance(column, dict):
            raise UsageError(
                f"Column {len(columns) + 1} must be a table: "
                "{ name = …, dataset = …, split = … }."
            )
        check_keys(column, _COLUMN_KEYS, kind="key of a column")
        if column["name"] in columns:
            raise UsageError(f"Two columns have the name {column['name']!r}: rename one.")
        dataset = find_source(column["dataset"]).name
        columns[column["name"]] = Scenario(dataset, column["split"], data["protocol"])
    cells = []
    for system, values in data["published"].items():
        if system not in SYSTEMS:
            raise unknown("system", system, SYSTEMS)
        if not isinstance(values, list) or len(values) != len(columns):
            raise UsageError(
                f"{system!r} must have a number for each of the {len(columns)} columns, or nan."
            )
        for (heading, scenario), value in zip(columns.items(), values, strict=True):
            cells.append(Cell(name, system, heading, scenario, _fraction(value, system)))
    systems = tuple(data["published"])
    return ResultTable(name, data["title"], data["source"], tuple(columns), systems, tuple(cells))


def check_keys(
    values: Mapping[str, Any],
    required: set[str],
    optional: Set[str] = frozenset(),
    kind: str = "key",
) -> None:
    """Raise a `UsageError` if a key of a TOML table is unknown or missing."""
    for key in values:
        if key not in required | optional:
            raise unknown(kind, key, sorted(required | optional))
    if missing := required - set(values):
        raise UsageError(f"The {kind} {sorted(missing)[0]!r} is missing.")


def _fraction(value: object, system: str) -> float | None:
    """Convert a published accuracy in per cent to a fraction; NaN is None."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UsageError(f"{system!r} has {value!r}, which is not a number; write nan for none.")
    if math.isnan(value):
        return None
    if not 0 <= value <= 100:
        raise UsageError(f"{system!r} has {value}, which is not an accuracy in per cent.")
    return round(value / 100, 6)  # six digits, so that 83.51 does not become 0.8350999…


def export_rows(folder: Path, rows: Iterable[Row]) -> dict[Path, int]:
    """Write stored rows to CSV files: one for each table, and `other.csv` for the rest.

    Returns:
        The number of rows in each file that was written; a table without rows has no file.

    Raises:
        UsageError: If a file that exists holds rows that would be lost.
    """
    names = {
        (cell.system, cell.scenario.dataset, cell.scenario.split, cell.scenario.protocol): name
        for name in TABLES
        for cell in result_table(name).cells
    }
    parts: dict[str, list[Row]] = {name: [] for name in (*TABLES, "other")}
    for row in rows:
        name = names.get((row.system, row.dataset, row.split, row.protocol), "other")
        parts[name].append(row)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {folder} cannot be made: {error.strerror}.") from None
    counts = {}
    for name, part in parts.items():
        file = folder / f"{name}.csv"
        exported = {row.storage_key for row in read_csv(file)} if file.exists() else set()
        if lost := exported - {row.storage_key for row in part}:
            raise UsageError(
                f"{file} has {len(lost):,} runs that the store does not have: add them first, with "
                f"`kryograph results --import {file}`."
            )
        if part:
            with replaced(file) as new:
                new.write_text(write_csv(part), "utf-8")
            counts[file] = len(part)
    return counts
