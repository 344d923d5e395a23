"""Cells: what the runs of each cell of a table come to, beside what the paper prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kryograph.experiments.resolve import settings_to_run
from kryograph.experiments.result_tables import Cell
from kryograph.experiments.tuned import Tuned, find_tuned
from kryograph.runs.job import STOP, Job, Scenario
from kryograph.runs.store import Row
from kryograph.stats import Summary, summarise
from kryograph.systems import System


@dataclass(frozen=True)
class CellResult:
    """A cell and its runs, one for each seed; those that failed apart."""

    cell: Cell
    rows: tuple[Row, ...]
    failures: tuple[Row, ...] = ()
    searched: float | None = None
    """Accuracy of its settings on the splits that chose them, if a search of this very column did,
    by labels that training did not see."""
    settings: int = 1
    """How many there are; of several, every row has those that its validation labels prefer."""
    alone: tuple[Row, ...] = ()
    """Where there are several: the runs by the first of them, whatever validation labels say. Other
    systems have one, so that these are what comparisons with them are of."""

    @property
    def summary(self) -> Summary | None:
        """Of the test scores, if there are any."""
        scores = [row.test_accuracy for row in self.rows if row.test_accuracy is not None]
        return summarise(scores) if scores else None

    @property
    def by_one_setting(self) -> CellResult:
        """The same cell by the first of its settings."""
        return replace(self, rows=self.alone, settings=1) if self.settings > 1 else self

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        if self.summary is None or self.cell.paper is None:
            return None
        return self.summary.mean - self.cell.paper

    @property
    def verdict(self) -> str:
        """What the interval says of the paper's value: reproduced if it is inside."""
        if self.summary is None:
            return "failed" if self.failures else "not run"
        low, high = self.summary.ci95
        if self.cell.paper is None:
            return "nothing printed"
        if low is None or high is None:
            return "one run"
        if low <= self.cell.paper <= high:
            return "reproduced"
        return "above" if low > self.cell.paper else "below"

    @property
    def settings_source(self) -> str | None:
        """Where the settings of its runs come from."""
        if self.settings > 1:
            return f"the best of up to {self.settings} on each split's validation labels"
        rows = self.rows or self.failures
        return rows[0].settings_source if rows else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        summary = self.summary
        return {
            "table": self.cell.table,
            "system": self.cell.system,
            "dataset": self.cell.column.dataset,
            "label_rate": self.cell.label_rate,
            "split": self.cell.column.split,
            "protocol": self.cell.column.protocol,
            "n": summary.n if summary else 0,
            "mean": summary.mean if summary else None,
            "ci95": list(summary.ci95) if summary else [None, None],
            "paper": self.cell.paper,
            "difference": self.difference,
            "verdict": self.verdict,
            "settings_source": self.settings_source,
            "failures": [row.error for row in self.failures],
        }


def gather(
    cells: Sequence[Cell], rows: Iterable[Row], which: str = "best", tuned: Iterable[Tuned] = ()
) -> list[CellResult]:
    """The cells with their runs.

    If a cell was run with several settings, those asked for are shown; if it was not run with these
    at all, the best for its column; if not with these either, those with the most runs. Where
    several are asked for, every seed has the run whose validation accuracy is the highest: test
    scores have no say.
    """
    tuned = tuple(tuned)
    runs: dict[tuple[str, str, str, str], dict[str, list[Row]]] = defaultdict(dict)
    for row in rows:
        if row.stop == STOP:
            place = (row.system, row.dataset, row.split, row.protocol)
            runs[place].setdefault(row.setting_digest, []).append(row)
    results = []
    for cell in cells:
        column = cell.column
        there = runs[cell.system, column.dataset, column.split, column.protocol]
        wanted = settings_to_run(cell.system, column, which, tuned)
        asked = _digests(wanted, column)
        else_own = _digests(settings_to_run(cell.system, column, "best", tuned)[:1], column)
        most = sorted(there, key=lambda key: -len(there[key]))
        shown = (asked, else_own, most[:1])
        digests = next(filter(None, ([d for d in each if d in there] for each in shown)), [])
        found = {digest: _by_seed(there[digest]) for digest in digests}
        good = [{seed: r for seed, r in each.items() if r.error is None} for each in found.values()]
        known = digests == asked and [source for _, source in wanted] == ["tuned"]
        results.append(
            CellResult(
                cell,
                tuple(_preferred(good)),
                tuple(r for each in found.values() for r in each.values() if r.error is not None),
                _searched(find_tuned(cell.system, column, tuned)) if known else None,
                len(digests),
                tuple(good[0].values()) if len(good) > 1 else (),
            )
        )
    return results


def _digests(settings: Iterable[tuple[System, str]], column: Scenario) -> list[str]:
    return [Job(*each, column, seed=0).setting_digest for each in settings]


def _by_seed(rows: Iterable[Row]) -> dict[int, Row]:
    """The run of each seed; one that failed gives way to one that did not."""
    ordered = sorted(rows, key=lambda row: (row.seed, row.error is None))
    return {row.seed: row for row in ordered}


def _preferred(settings: Sequence[Mapping[int, Row]]) -> Iterator[Row]:
    """For each seed the run with the highest validation accuracy; of equals the first."""
    for seed in sorted({seed for runs in settings for seed in runs}):
        there = [runs[seed] for runs in settings if seed in runs]
        yield max(there, key=lambda row: row.validation_accuracy or 0.0)


def _searched(found: Tuned | None) -> float | None:
    if found is None or found.searched != found.column.split:
        return None
    # With validation labels, half of them stop a run of a search, but all of them one of the table.
    return found.validation_accuracy if found.column.protocol == "no-validation" else None
