"""Cells of a result table: the stored runs of each, beside the value that the paper prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kryograph.experiments.resolve import settings_to_run
from kryograph.experiments.result_tables import Cell
from kryograph.experiments.tuned import Tuned, find_tuned
from kryograph.runs.job import DEFAULT_STOP
from kryograph.runs.store import Row
from kryograph.stats import Summary, summarise


@dataclass(frozen=True)
class CellResult:
    """A cell with its runs.

    Args:
        cell: The cell of a result table.
        rows: One finished run for each seed.
        failures: The failed runs.
        searched: Accuracy of the settings on the splits of their search. None unless the search ran
            in this scenario and scored by labels that training did not see.
        setting_count: Number of settings that were run. If there are several, `rows` holds for each
            seed the run with the highest validation accuracy.
        single_setting_rows: Runs with the first setting only; empty if there is one setting.
            Comparisons use them, because most baselines have one setting.
    """

    cell: Cell
    rows: tuple[Row, ...]
    failures: tuple[Row, ...] = ()
    searched: float | None = None
    setting_count: int = 1
    single_setting_rows: tuple[Row, ...] = ()

    @property
    def summary(self) -> Summary | None:
        """Summary of the test scores; None if no run has finished."""
        scores = [row.test_accuracy for row in self.rows if row.test_accuracy is not None]
        return summarise(scores) if scores else None

    @property
    def by_one_setting(self) -> CellResult:
        """Result of the cell with the runs of its first setting only."""
        if self.setting_count < 2:
            return self
        return replace(self, rows=self.single_setting_rows, setting_count=1)

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's value; None if one of them is missing."""
        if self.summary is None or self.cell.paper is None:
            return None
        return self.summary.mean - self.cell.paper

    @property
    def verdict(self) -> str:
        """Position of the 95 % interval; "reproduced" if it contains the paper's value."""
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
        """Source of the settings, such as "default"; None if there are no runs."""
        if self.setting_count > 1:
            return f"the best of up to {self.setting_count} on each split's validation labels"
        rows = self.rows or self.failures
        return rows[0].settings_source if rows else None

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold; accuracies are fractions."""
        summary = self.summary
        return {
            "table": self.cell.table,
            "system": self.cell.system,
            "dataset": self.cell.scenario.dataset,
            "label_rate": self.cell.label_rate,
            "split": self.cell.scenario.split,
            "protocol": self.cell.scenario.protocol,
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
    cells: Sequence[Cell],
    rows: Iterable[Row],
    settings_choice: str = "best",
    tuned: Iterable[Tuned] = (),
) -> list[CellResult]:
    """Find the stored runs of each cell.

    If a cell has runs with the requested settings, these are taken. Otherwise they are its runs
    with the best settings, or else those with the setting that has the most runs. If several
    settings are requested, each seed has the run with the highest validation accuracy; test scores
    play no part.

    Args:
        cells: Cells of a result table.
        rows: Stored runs; those with another stop rule than the tables' are ignored.
        settings_choice: One of `resolve.SETTINGS_CHOICES`.
        tuned: Results of searches.
    """
    tuned = tuple(tuned)
    stored: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(dict)
    for row in rows:
        if row.stop == DEFAULT_STOP:
            key = row.system, row.dataset, row.split, row.protocol
            stored[key].setdefault(row.setting_digest, []).append(row)
    results = []
    for cell in cells:
        scenario = cell.scenario
        runs = stored[cell.system, scenario.dataset, scenario.split, scenario.protocol]
        results.append(_gather_cell(cell, runs, settings_choice, tuned))
    return results


def _gather_cell(
    cell: Cell, stored: Mapping[str, list[Row]], settings_choice: str, tuned: Sequence[Tuned]
) -> CellResult:
    """Result of one cell, whose stored runs are given by the digest of their settings."""
    jobs = settings_to_run(cell.system, cell.scenario, settings_choice, tuned)
    best = settings_to_run(cell.system, cell.scenario, "best", tuned)[:1]
    requested = [job.setting_digest for job in jobs]
    # Of settings with equally many runs, those that were run last.
    most = max(stored, key=lambda key: (len(stored[key]), _last(stored[key])), default="")
    preference = (requested, [job.setting_digest for job in best], [most])
    available = ([key for key in keys if key in stored] for keys in preference)
    digests = next((keys for keys in available if keys), [])
    runs = [_by_seed(stored[digest]) for digest in digests]
    finished = [{seed: r for seed, r in by_seed.items() if r.error is None} for by_seed in runs]
    is_tuned = digests == requested and [job.settings_source for job in jobs] == ["tuned"]
    return CellResult(
        cell,
        tuple(_preferred(finished)),
        tuple(row for by_seed in runs for row in by_seed.values() if row.error is not None),
        _search_accuracy(find_tuned(cell.system, cell.scenario, tuned)) if is_tuned else None,
        len(digests),
        tuple(finished[0].values()) if len(finished) > 1 else (),
    )


def _last(rows: Iterable[Row]) -> str:
    return max(row.finished for row in rows)


def _by_seed(rows: Iterable[Row]) -> dict[int, Row]:
    """One run for each seed; a finished one if there is any."""
    ordered = sorted(rows, key=lambda row: (row.seed, row.error is None))
    return {row.seed: row for row in ordered}


def _preferred(settings: Sequence[Mapping[int, Row]]) -> Iterator[Row]:
    """For each seed the run with the highest validation accuracy; of equal ones the first."""
    for seed in sorted({seed for runs in settings for seed in runs}):
        candidates = [runs[seed] for runs in settings if seed in runs]
        yield max(candidates, key=lambda row: row.validation_accuracy or 0.0)


def _search_accuracy(tuned: Tuned | None) -> float | None:
    """Accuracy on the splits of the search, if it can be compared with runs of the table.

    With validation labels it cannot: half of them stop a run of a search, all of them one of the
    table.
    """
    if tuned is None or tuned.searched != tuned.scenario.split:
        return None
    return tuned.validation_accuracy if tuned.scenario.protocol == "no-validation" else None
