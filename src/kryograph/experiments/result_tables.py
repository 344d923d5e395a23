"""Tables: experiments as data, each a TOML file of columns, rows and what the paper prints.

A cell is a system in a column. Whoever has an experiment of their own writes such a file.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kryograph.data.catalogue import entry
from kryograph.errors import UsageError, unknown
from kryograph.files import read_text
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS

TABLES = ("table1", "table2", "leak")
"""The experiments that come with kryograph."""

_KEYS = {"title", "source", "protocol", "columns", "published"}
_COLUMN_KEYS = {"name", "dataset", "split"}


@dataclass(frozen=True)
class Cell:
    """A system in a column of a table."""

    table: str
    system: str
    heading: str
    """The column's, such as "Cora 1%"."""
    column: Scenario
    paper: float | None
    """The accuracy that the paper prints, as a fraction."""

    @property
    def label_rate(self) -> str:
        """As the table prints it; the public split is "5.2%" of Cora."""
        return self.heading.rsplit(" ", 1)[-1]

    def __str__(self) -> str:
        return f"{self.system}, {self.heading}"


@dataclass(frozen=True)
class ResultTable:
    """Rows × columns, and what is published for each cell.

    >>> result_table("table2").cell("gcn", "Cora 1%").paper
    0.623
    """

    name: str
    title: str
    source: str
    headings: tuple[str, ...]
    systems: tuple[str, ...]
    cells: tuple[Cell, ...]
    """Row by row."""

    def cell(self, system: str, heading: str) -> Cell:
        """One of them."""
        [found] = [c for c in self.cells if (c.system, c.heading) == (system, heading)]
        return found

    def part(self, systems: Sequence[str] = (), headings: Sequence[str] = ()) -> list[Cell]:
        """The cells of some systems and columns; of all where none is named."""
        rows = [_found(name, self.systems, "system in this table") for name in systems]
        columns = [_found(name, self.headings, "column") for name in headings]
        return [
            cell
            for cell in self.cells
            if cell.system in (rows or self.systems) and cell.heading in (columns or self.headings)
        ]


def _found(name: str, known: Iterable[str], kind: str) -> str:
    """A name however it is spaced and capitalised."""
    plain = {each.lower().replace(" ", ""): each for each in known}
    key = name.lower().replace(" ", "")
    if key not in plain:
        raise unknown(kind, name, plain.values())
    return plain[key]


@cache
def result_table(name: str) -> ResultTable:
    """The table of that name."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8")
    return parse_result_table(text, name, f"{name}.toml")


def read_result_table(path: Path) -> ResultTable:
    """The table in a file of a person's own, named as the file is."""
    return parse_result_table(read_text(path), path.stem, str(path))


def parse_result_table(text: str, name: str, where: str) -> ResultTable:
    """The table that a TOML text describes; `where` it stands is said if something is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}.") from None
    try:
        return _table(data, name)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _table(data: Mapping[str, Any], name: str) -> ResultTable:
    _check_keys(data, _KEYS, "key")
    if not isinstance(data["columns"], list) or not isinstance(data["published"], dict):
        raise UsageError("'columns' must be a list and 'published' a table.")
    columns = []
    for given in data["columns"]:
        if not isinstance(given, dict):
            raise UsageError("A column is written { name = …, dataset = …, split = … }.")
        _check_keys(given, _COLUMN_KEYS, "key of a column")
        dataset = entry(given["dataset"]).name
        columns.append((given["name"], Scenario(dataset, given["split"], data["protocol"])))
    headings = tuple(heading for heading, _ in columns)
    if len(set(headings)) < len(headings):
        raise UsageError("Two columns have the same name.")
    cells = []
    for system, values in data["published"].items():
        if system not in SYSTEMS:
            raise unknown("system", system, SYSTEMS)
        if not isinstance(values, list) or len(values) != len(columns):
            raise UsageError(
                f"{system!r} must have a number for each of the {len(columns)} columns, or nan."
            )
        for (heading, column), value in zip(columns, values, strict=True):
            cells.append(Cell(name, system, heading, column, _fraction(value, system)))
    systems = tuple(data["published"])
    return ResultTable(name, data["title"], data["source"], headings, systems, tuple(cells))


def _check_keys(given: Mapping[str, Any], wanted: set[str], kind: str) -> None:
    for key in given:
        if key not in wanted:
            raise unknown(kind, key, sorted(wanted))
    if missing := wanted - set(given):
        raise UsageError(f"The {kind} {sorted(missing)[0]!r} is missing.")


def _fraction(value: object, system: str) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UsageError(f"{system!r} has {value!r}, which is no number; write nan for none.")
    if math.isnan(value):
        return None
    if not 0 <= value <= 100:
        raise UsageError(f"{system!r} has {value}, which is no accuracy in per cent.")
    # Printed in per cent; the fifth digit keeps 83.51 from becoming 0.8350999….
    return round(value / 100, 6)
