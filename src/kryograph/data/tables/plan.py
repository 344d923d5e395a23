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
        """Lines of text; many neighbouring columns that are used alike share one."""
        rows: list[tuple[str, str]] = []
        for (table, use, detail), group in itertools.groupby(
            self.lines, lambda line: (line.table, line.use, line.detail)
        ):
            alike, table = list(group), _shown(table)
            if len(alike) <= MOST_ALIKE:
                rows += [(table, str(line)) for line in alike]
                continue
            span = f"{_shown(alike[0].column)} … {_shown(alike[-1].column)}"
            detail = f", each {detail}" if detail else ""
            rows.append((table, f"{span} -> {use} ({len(alike):,} columns{detail})"))
        width = max((len(table) for table, _ in rows), default=0)
        return "\n".join(f"{table:{width}}  {line}" for table, line in rows)


def _shown(name: str) -> str:
    """Return the name of a column or table as it is printed: in quotation marks if need be."""
    marked = quoted(name)
    return name if marked == f"'{name}'" and name.strip() == name != "" else marked
