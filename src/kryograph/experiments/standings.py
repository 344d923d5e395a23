"""Standing of the paper's proposals: difference from the paper's values, lead over baselines.

A proposal is compared with each baseline on the splits that both were run on, with the same
protocol and stop rule and with one setting each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import DIGITS, paired
from kryograph.stats import expected_maximum, student_half_width

TRIALS = 20
"""Assumed number of settings that the paper's search tried; the real number is not published."""

RUNS = 10
"""Number of runs that the paper averages for each setting."""


def selection_bias(spread: float, trials: int = TRIALS, runs: int = RUNS) -> float:
    """Expected gain from reporting the best of several equally good settings.

    It is the expected maximum of standard normal numbers, times the standard error of a mean.

    Args:
        spread: Standard deviation between runs.
        trials: Number of settings.
        runs: Number of runs of each setting, on splits of its own.
    """
    return expected_maximum(trials) * spread / sqrt(runs)


PROPOSALS = ("linear-snowball", "snowball", "truncated-krylov")
"""The systems that the paper proposes; in its tables all others are baselines."""

TOGETHER = "together"
"""Name of the standing of all proposals together."""

FAR_BELOW_PAPER = -0.04
"""Cells that are further below the paper's value than this are listed."""


@dataclass(frozen=True)
class Lead:
    """Lead of a proposal over the best baseline in a column.

    Args:
        heading: The column.
        baseline: The baseline with the smallest difference.
        margin: Mean difference from that baseline; negative if the proposal is behind.
        clear: Whether the 95 % interval of the difference from every baseline is above zero.
        missing: Baselines of the table that have no split in common with the proposal.
    """

    heading: str
    baseline: str
    margin: float
    clear: bool
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Standing:
    """Results of a proposal in a table. Differences are our accuracy minus the paper's.

    Args:
        system: Name of the proposal.
        differences: Difference of each cell that has runs and a published value.
        by_seed: Mean of these differences for each seed that all cells have. Cells are not
            independent, because a seed draws the labels of many columns, but seeds are.
        luck: Selection bias of each cell with at least two runs.
        searched: Differences on the splits of the search and on those of the table, for each cell
            whose settings were searched in its own column.
        alone: Differences with one setting per column; empty if no cell has several.
        far_below: Cells further below the paper than `FAR_BELOW_PAPER`, with their differences.
        leads: Lead in each column that has runs of a baseline on the same splits.
    """

    system: str
    differences: tuple[float, ...]
    by_seed: tuple[float, ...]
    luck: tuple[float, ...]
    searched: tuple[tuple[float, float], ...]
    alone: tuple[float, ...]
    far_below: tuple[tuple[str, float], ...]
    leads: tuple[Lead, ...]

    @property
    def mean_difference(self) -> float | None:
        """Mean difference over the cells; None if there are none."""
        return _mean(self.differences)

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of the mean difference; None with fewer than two seeds."""
        n = len(self.by_seed)
        return student_half_width(stdev(self.by_seed), n) if n > 1 else None

    @property
    def mean_luck(self) -> float | None:
        """Mean selection bias over the cells; None if there are none."""
        return _mean(self.luck)

    @property
    def mean_searched(self) -> tuple[float, float] | None:
        """Mean differences on the splits of the search and on those of the table."""
        if not self.searched:
            return None
        where_chosen, here = zip(*self.searched, strict=True)
        return fmean(where_chosen), fmean(here)

    @property
    def mean_alone(self) -> float | None:
        """Mean difference with one setting per column; None if no cell has several."""
        return _mean(self.alone)

    @property
    def wins(self) -> tuple[Lead, ...]:
        """Leads in the columns in which the proposal beats every baseline."""
        return tuple(lead for lead in self.leads if lead.margin > 0)

    @property
    def clear_wins(self) -> tuple[Lead, ...]:
        """Wins whose interval against every baseline is above zero."""
        return tuple(lead for lead in self.wins if lead.clear)

    @property
    def mean_margin(self) -> float | None:
        """Mean margin over the columns; None if there are none."""
        return _mean([lead.margin for lead in self.leads])

    @property
    def incomplete(self) -> int:
        """Number of columns in which some baselines have no split in common with the proposal."""
        return sum(bool(lead.missing) for lead in self.leads)

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold."""
        return {
            "system": self.system,
            "cells": len(self.differences),
            "mean_difference": self.mean_difference,
            "half_width": self.half_width,
            "seeds": len(self.by_seed),
            "mean_luck": self.mean_luck,
            "mean_searched": self.mean_searched,
            "mean_by_one_setting": self.mean_alone,
            "columns": len(self.leads),
            "columns_won": len(self.wins),
            "columns_clearly_won": len(self.clear_wins),
            "mean_margin": self.mean_margin,
            "columns_incomplete": self.incomplete,
            "far_below": [{"column": c, "difference": d} for c, d in self.far_below],
        }


def standings(results: Sequence[CellResult]) -> list[Standing]:
    """The standing of each proposal that has runs among the cells of one table."""
    cells = {name: [r for r in results if r.cell.system == name] for name in PROPOSALS}
    every = (_standing(name, own, results) for name, own in cells.items())
    return [standing for standing in every if standing.differences or standing.leads]


def together(results: Sequence[CellResult]) -> list[Standing]:
    """The standing of all proposals together, in a list; empty if only one of them has runs."""
    own = [r for r in results if r.cell.system in PROPOSALS and r.difference is not None]
    if len({result.cell.system for result in own}) < 2:
        return []
    return [_standing(TOGETHER, own, ())]


def _standing(name: str, own: Sequence[CellResult], results: Sequence[CellResult]) -> Standing:
    """Standing by the cells `own` among all cells of a table."""
    known = [(r, r.difference) for r in own if r.difference is not None]
    spreads = (r.summary.std for r, _ in known if r.summary is not None)
    leads = (_lead(result, results) for result in own)
    several = any(cell.setting_count > 1 for cell in own)
    alone = (cell.by_one_setting.difference for cell in own if several)
    return Standing(
        name,
        tuple(difference for _, difference in known),
        _differences_by_seed([r for r, _ in known]),
        tuple(selection_bias(spread) for spread in spreads if spread is not None),
        tuple((r.searched - (r.cell.paper or 0), d) for r, d in known if r.searched is not None),
        tuple(difference for difference in alone if difference is not None),
        tuple(
            (str(r.cell) if name == TOGETHER else r.cell.heading, d)
            for r, d in known
            if round(d, DIGITS) < FAR_BELOW_PAPER
        ),
        tuple(lead for lead in leads if lead is not None),
    )


def _differences_by_seed(cells: Sequence[CellResult]) -> tuple[float, ...]:
    """Mean difference over these cells, for each seed that all of them have."""
    scores = [{row.seed: row.test_accuracy or 0.0 for row in cell.rows} for cell in cells]
    paper = fmean(cell.cell.paper or 0.0 for cell in cells) if cells else 0.0
    common = set(scores[0]).intersection(*scores[1:]) if scores else set()
    return tuple(fmean(by_seed[seed] for by_seed in scores) - paper for seed in sorted(common))


def _lead(own: CellResult, results: Sequence[CellResult]) -> Lead | None:
    heading = own.cell.heading
    pairs = {
        other.cell.system: paired(own, other)
        for other in results
        if other.cell.heading == heading and other.cell.system not in PROPOSALS
    }
    compared = [pair for pair in pairs.values() if pair is not None]
    if not compared:
        return None
    nearest = min(compared, key=lambda pair: pair.mean)
    clear = all((pair.ci95[0] or 0) > 0 for pair in compared)
    missing = tuple(name for name, pair in pairs.items() if pair is None)
    return Lead(heading, nearest.second, nearest.mean, clear, missing)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
