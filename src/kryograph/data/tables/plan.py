"""Plan: what becomes of every column of every table. No column is left out.

>>> plan = Plan()
>>> plan.add("nodes.csv", "age", "number", "59 empty")
>>> plan.add("nodes.csv", "url", NOT_USED, "every value is different")
>>> print(plan)
nodes.csv  age -> number (59 empty)
nodes.csv  url -> not used (every value is different)
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, field
from typing import Any

from kryograph.text import quoted

NOT_USED = "not used"

MOST_ALIKE = 5
"""More neighbouring columns than this that are used alike are printed on one line."""


MOST_LINES = 40
"""In a table with more lines than this, columns that stand apart share lines too."""


@dataclass(frozen=True)
class PlanLine:
    """Use of one column of a table, or the reason why it has none."""

    table: str
    """Name of the file, or of the object that was passed."""
    column: str
    use: str
    """A role such as "source" or "label", a kind such as "number", or `NOT_USED`."""
    detail: str = ""
    """Further facts or the reason, such as "4 values"; may be empty."""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{_shown(self.column)} -> {self.use}{detail}"


@dataclass
class Plan:
    """Lines of the plan, in the order of the tables and their columns."""

    lines: list[PlanLine] = field(default_factory=list)

    def add(self, table: str, column: str, use: str, detail: str = "") -> None:
        """Add the line of a column."""
        self.lines.append(PlanLine(table, column, use, detail))

    @property
    def tables(self) -> list[str]:
        """Names of the tables, each once."""
        return list(dict.fromkeys(line.table for line in self.lines))

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return a record for each column: table, column, use and detail."""
        return [asdict(line) for line in self.lines]

    def __str__(self) -> str:
        """Lines of text; many neighbouring columns that are used alike share one.

        Of a table with more than `MOST_LINES` such lines, all columns with the same use share one.
        """
        rows: list[tuple[str, str]] = []
        for table in self.tables:
            lines = [line for line in self.lines if line.table == table]
            groups = [
                list(group)
                for _, group in itertools.groupby(lines, lambda line: (line.use, line.detail))
            ]
            if sum(len(g) if len(g) <= MOST_ALIKE else 1 for g in groups) > MOST_LINES:
                by_use: dict[tuple[str, str], list[PlanLine]] = {}
                for line in lines:
                    reason = line.detail if line.use == NOT_USED else ""
                    by_use.setdefault((line.use, reason), []).append(line)
                groups = list(by_use.values())
            rows += [(_shown(table), text) for group in groups for text in _group_lines(group)]
        width = max((len(table) for table, _ in rows), default=0)
        return "\n".join(f"{table:{width}}  {line}" for table, line in rows)


def _group_lines(alike: list[PlanLine]) -> list[str]:
    """Lines of columns with the same use: one for each, or a common one if they are many."""
    if len(alike) <= MOST_ALIKE:
        return [str(line) for line in alike]
    details = {line.detail for line in alike}
    detail = f", each {alike[0].detail}" if details != {""} and len(details) == 1 else ""
    span = f"{_shown(alike[0].column)} … {_shown(alike[-1].column)}"
    return [f"{span} -> {alike[0].use} ({len(alike):,} columns{detail})"]


def _shown(name: str) -> str:
    """Return the name of a column or table as it is printed: in quotation marks if need be."""
    marked = quoted(name)
    return name if marked == f"'{name}'" and name.strip() == name != "" else marked
