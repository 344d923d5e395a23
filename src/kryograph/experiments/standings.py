"""Selection: how far the best of several trials lies above their mean by luck alone.

Who tries many settings, each on draws of its own, and prints the highest mean, prints the luckiest
draws too. For trials that are equally good, with normal errors, this luck is the expected maximum
of as many standard normals, times the standard error of a trial's mean.

The paper's claims on equal terms: its proposals beside what it prints, and beside baselines.

A proposal is compared with each baseline over the splits that both were run on, by the same
protocol and stop rule and with one setting each: that it comes first is said only of columns in
which it does so here.
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
"""Few for a Bayesian search; how many the paper's had is not known."""

RUNS = 10
"""Of each trial: as many as the paper averages."""


def selection_bias(spread: float, trials: int = TRIALS, runs: int = RUNS) -> float:
    """What the best of the trials is above their mean.

    Args:
        spread: Standard deviation between runs.
        trials: How many are equally good.
        runs: How many each is the mean of.
    """
    return expected_maximum(trials) * spread / sqrt(runs)


PROPOSALS = ("linear-snowball", "snowball", "truncated-krylov")
"""The systems that the paper proposes; in its tables all others are baselines."""

TOGETHER = "together"
"""The name of all proposals as one."""

FAR_BELOW_PAPER = -0.04
"""A cell that is further below the paper's value than this wants an explanation."""


@dataclass(frozen=True)
class Lead:
    """How far a proposal is ahead of the best baseline in a column; behind if it is negative."""

    heading: str
    baseline: str
    """The best one: that with the smallest difference."""
    margin: float
    clear: bool
    """Whether the interval against every baseline is above zero."""
    missing: tuple[str, ...]
    """Baselines of the table that have no split in common with the proposal yet."""


@dataclass(frozen=True)
class Standing:
    """A proposal in a table."""

    system: str
    differences: tuple[float, ...]
    """Ours less the paper's, for each cell that has both."""
    by_seed: tuple[float, ...]
    """The mean of these over the cells, for each seed that all of them have: a seed that draws
    labels well does so for many columns, so cells are not independent, but seeds are."""
    luck: tuple[float, ...]
    """What the paper's search may owe to its draws, for each of them that has two runs."""
    searched: tuple[tuple[float, float], ...]
    """Less the paper's, for each cell whose settings were searched for in its column: on the splits
    that chose them, and on those of the table."""
    alone: tuple[float, ...]
    """Ours less the paper's by one setting for a column, if in some cells there are several."""
    far_below: tuple[tuple[str, float], ...]
    """Columns, and how far below the paper."""
    leads: tuple[Lead, ...]
    """A column each, where any baseline can be compared with."""

    @property
    def mean_difference(self) -> float | None:
        """Over the cells."""
        return fmean(self.differences) if self.differences else None

    @property
    def half_width(self) -> float | None:
        """Of the 95 % interval of the mean difference, over seeds; None if they are too few."""
        n = len(self.by_seed)
        return student_half_width(stdev(self.by_seed), n) if n > 1 else None

    @property
    def mean_luck(self) -> float | None:
        """Over the cells."""
        return fmean(self.luck) if self.luck else None

    @property
    def mean_searched(self) -> tuple[float, float] | None:
        """Over the cells: where the settings were chosen, and in the table."""
        if not self.searched:
            return None
        where_chosen, here = zip(*self.searched, strict=True)
        return fmean(where_chosen), fmean(here)

    @property
    def mean_alone(self) -> float | None:
        """Over the cells."""
        return fmean(self.alone) if self.alone else None

    @property
    def wins(self) -> tuple[Lead, ...]:
        """The columns in which it beats every baseline."""
        return tuple(lead for lead in self.leads if lead.margin > 0)

    @property
    def clear_wins(self) -> tuple[Lead, ...]:
        """Those in which it does so beyond chance."""
        return tuple(lead for lead in self.wins if lead.clear)

    @property
    def mean_margin(self) -> float | None:
        """Over the best baseline, in all columns."""
        return fmean(lead.margin for lead in self.leads) if self.leads else None

    @property
    def incomplete(self) -> int:
        """In how many columns some baselines cannot be compared with yet."""
        return sum(bool(lead.missing) for lead in self.leads)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """The standing of each proposal among the cells of one table; of those that were run."""
    made = []
    for name in PROPOSALS:
        own = [result for result in results if result.cell.system == name]
        made.append(_standing(name, own, results, [r.cell.heading for r in own]))
    return [each for each in made if each.differences or each.leads]


def together(results: Sequence[CellResult]) -> list[Standing]:
    """All proposals beside the paper, as if they were one; nothing if there are not several."""
    own = [r for r in results if r.cell.system in PROPOSALS and r.difference is not None]
    if len({result.cell.system for result in own}) < 2:
        return []
    return [_standing(TOGETHER, own, (), [str(r.cell) for r in own])]


def _standing(
    name: str,
    own: Sequence[CellResult],
    results: Sequence[CellResult],
    headings: Sequence[str],
) -> Standing:
    pairs = zip(headings, own, strict=True)
    known = [(heading, r.difference) for heading, r in pairs if r.difference is not None]
    spreads = (r.summary.std for r in own if r.summary is not None and r.difference is not None)
    leads = (_lead(result, results) for result in own)
    return Standing(
        name,
        tuple(difference for _, difference in known),
        _scores_by_seed([r for r in own if r.difference is not None]),
        tuple(selection_bias(spread) for spread in spreads if spread is not None),
        tuple(
            (r.searched - r.cell.paper, r.difference)
            for r in own
            if r.searched is not None and r.cell.paper is not None and r.difference is not None
        ),
        _alone(own),
        tuple((heading, d) for heading, d in known if round(d, DIGITS) < FAR_BELOW_PAPER),
        tuple(lead for lead in leads if lead is not None),
    )


def _alone(cells: Sequence[CellResult]) -> tuple[float, ...]:
    if all(cell.settings < 2 for cell in cells):
        return ()
    found = (cell.by_one_setting.difference for cell in cells)
    return tuple(difference for difference in found if difference is not None)


def _scores_by_seed(cells: Sequence[CellResult]) -> tuple[float, ...]:
    """Ours less the paper's over these cells, for each seed that all of them have."""
    scores = [{row.seed: row.test_accuracy or 0.0 for row in cell.rows} for cell in cells]
    papers = fmean(cell.cell.paper or 0.0 for cell in cells) if cells else 0.0
    common = set(scores[0]).intersection(*scores[1:]) if scores else set()
    return tuple(fmean(each[seed] for each in scores) - papers for seed in sorted(common))


def _lead(own: CellResult, results: Sequence[CellResult]) -> Lead | None:
    heading = own.cell.heading
    others = [
        result
        for result in results
        if result.cell.heading == heading and result.cell.system not in PROPOSALS
    ]
    found = [(other.cell.system, paired(own, other)) for other in others]
    compared = [pair for _, pair in found if pair is not None]
    if not compared:
        return None
    nearest = min(compared, key=lambda pair: pair.mean)
    clear = all((pair.ci95[0] or 0) > 0 for pair in compared)
    missing = tuple(name for name, pair in found if pair is None)
    return Lead(heading, nearest.second, nearest.mean, clear, missing)
