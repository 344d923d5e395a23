"""Comparisons of systems: paired over the same splits in a column, by ranks over several.

Splits differ far more from each other than systems do, so two systems are compared split by split
(same seed, same split). Over columns their means are ranked; how far apart average ranks must be to
tell systems apart is Nemenyi's critical difference (Demšar, JMLR 2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.experiments.cells import CellResult
from kryograph.stats import student_half_width

LEVEL = 0.05
"""What a difference must be less likely than, were there none."""

DIGITS = 9
"""Differences that are equal but for rounding errors are equal: they are ties."""

Scores = Mapping[tuple[int, str], float]
"""Test scores by seed and digest of the split."""


def signed_rank_p(differences: npt.NDArray[np.float64]) -> float:
    """The exact two-sided p of Wilcoxon's signed-rank test, equal sizes or not.

    Were there no difference, each rank would have either sign with equal chance: the sums of ranks
    that the 2ⁿ ways give are counted. (SciPy draws ten thousand of them where sizes are equal.)

    >>> signed_rank_p(np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.4]))
    0.03125
    """
    from scipy.stats import rankdata  # takes a second: only when it is needed

    ranks = (2 * rankdata(np.abs(differences))).astype(int)  # twice, so that all are whole
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1
    for each in ranks:
        ways[each:] += ways[:-each].copy()
    above = int(ranks[differences > 0].sum())
    least = min(above, int(ranks.sum()) - above)
    return min(1.0, float(2 * ways[: least + 1].sum() / 2.0 ** len(ranks)))


@dataclass(frozen=True)
class Comparison:
    """A system against another in one column, split by split.

    >>> by_hand = Comparison("a", "b", "Cora 1%", (0.02, 0.0, 0.04))
    >>> by_hand.n, round(by_hand.mean, 3), (by_hand.wins, by_hand.ties, by_hand.losses)
    (3, 0.02, (2, 1, 0))
    """

    first: str
    second: str
    heading: str
    differences: tuple[float, ...]
    """The first's score less the second's, for each split that both have."""

    @property
    def n(self) -> int:
        """How many splits both have."""
        return len(self.differences)

    @property
    def mean(self) -> float:
        """Of the differences."""
        return float(np.mean(self.differences))

    @property
    def ci95(self) -> tuple[float | None, float | None]:
        """Student's interval of the mean difference; one pair has none."""
        if self.n == 1:
            return None, None
        half = student_half_width(float(np.std(self.differences, ddof=1)), self.n)
        return self.mean - half, self.mean + half

    @property
    def wins(self) -> int:
        """In how many splits the first is better."""
        return sum(d > 0 for d in self.differences)

    @property
    def losses(self) -> int:
        """In how many splits the second is better."""
        return sum(d < 0 for d in self.differences)

    @property
    def ties(self) -> int:
        """In how many splits they are equal."""
        return self.n - self.wins - self.losses

    @cached_property
    def wilcoxon_p(self) -> float:
        """Of Wilcoxon's signed-rank test, two-sided; ties are left out, as Wilcoxon did."""
        unequal = np.array([d for d in self.differences if d != 0])
        return signed_rank_p(unequal) if unequal.size else 1.0

    @property
    def smallest_p(self) -> float:
        """What Wilcoxon's p would be if the first had won every split that is not a tie."""
        return min(1.0, 2.0 ** (1 - self.wins - self.losses))

    @property
    def telling(self) -> bool:
        """Whether there are enough splits for p to be small at all."""
        return self.smallest_p < LEVEL

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "column": self.heading,
            "first": self.first,
            "second": self.second,
            "n": self.n,
            "mean_difference": self.mean,
            "ci95": list(self.ci95),
            "wilcoxon_p": self.wilcoxon_p,
            "smallest_possible_p": self.smallest_p,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
        }


def scores(result: CellResult) -> Scores:
    """The scores of a cell's runs by one setting, by split; a run of an unknown one is left out.

    By one setting, since not every system has several to choose from.
    """
    return {
        (row.seed, row.split_digest): row.test_accuracy
        for row in result.by_one_setting.rows
        if row.test_accuracy is not None and row.split_digest
    }


def paired(first: CellResult, second: CellResult) -> Comparison | None:
    """Two systems in one column; None if they have no split in common."""
    ours, theirs = scores(first), scores(second)
    both = sorted(set(ours) & set(theirs))
    if not both:
        return None
    differences = tuple(round(ours[split] - theirs[split], DIGITS) for split in both)
    return Comparison(first.cell.system, second.cell.system, first.cell.heading, differences)


@dataclass(frozen=True)
class Ranking:
    """Systems by their average rank over columns, the best first.

    >>> best = rank_systems({"a": [0.9, 0.8], "b": [0.7, 0.8], "c": [0.5, 0.6]}, ["x", "y"])
    >>> best.systems, best.ranks
    (('a', 'b', 'c'), (1.25, 1.75, 3.0))
    """

    systems: tuple[str, ...]
    ranks: tuple[float, ...]
    headings: tuple[str, ...]
    """The columns that were ranked: those in which all systems have splits in common."""
    friedman_p: float | None
    """Of the hypothesis that all systems are equal; two systems are too few for it."""

    @cached_property
    def critical_difference(self) -> float:
        """Nemenyi's, at the level of 5 %: average ranks nearer than that tell nothing."""
        from scipy.stats import studentized_range  # takes a second: only when it is needed

        k, n = len(self.systems), len(self.headings)
        q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)
        return q * math.sqrt(k * (k + 1) / (6 * n))

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Which systems cannot be told apart: first and last of each group, none inside another."""
        found: list[tuple[int, int]] = []
        for start, low in enumerate(self.ranks):
            # A little room: equal but for rounding errors is within.
            near = [i for i, r in enumerate(self.ranks) if low <= r <= low + self._reach]
            if near[-1] > start and (not found or near[-1] > found[-1][1]):
                found.append((start, near[-1]))
        return found

    @property
    def _reach(self) -> float:
        return self.critical_difference + 1e-9

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "average_ranks": dict(zip(self.systems, self.ranks, strict=True)),
            "columns": list(self.headings),
            "friedman_p": self.friedman_p,
            "critical_difference": self.critical_difference,
            "indistinguishable": [list(self.systems[a : b + 1]) for a, b in self.groups],
        }


def rank_systems(means: Mapping[str, Sequence[float]], headings: Sequence[str]) -> Ranking:
    """Average ranks, 1 for the best; equal means share the mean of their ranks.

    Args:
        means: For each system its score in each column.
        headings: The columns' names.
    """
    from scipy.stats import friedmanchisquare, rankdata  # takes a second: only when it is needed

    if len(means) < 2 or len(headings) < 2:
        raise UsageError(
            "Average ranks need at least two systems and two columns; "
            f"there are {len(means)} and {len(headings)}."
        )
    values = np.round(np.array([means[name] for name in means], dtype=float).T, DIGITS)
    ranks = rankdata(-values, axis=1)
    average = ranks.mean(axis=0)
    p = None
    if len(means) > 2:
        # Where all are equal everywhere the statistic is 0 / 0.
        alike = bool((values == values[:, :1]).all())
        p = 1.0 if alike else float(friedmanchisquare(*values.T).pvalue)
    names = list(means)
    order = sorted(range(len(names)), key=lambda i: (average[i], names[i]))
    return Ranking(
        tuple(names[i] for i in order),
        tuple(float(average[i]) for i in order),
        tuple(headings),
        p,
    )


def common_means(results: Sequence[CellResult]) -> dict[str, float] | None:
    """Each system's mean in a column over the splits that all of them have, if there are any."""
    each = {result.cell.system: scores(result) for result in results}
    shared = sorted(set.intersection(*(set(found) for found in each.values()))) if each else []
    if not shared:
        return None
    return {
        name: float(np.mean([found[split] for split in shared])) for name, found in each.items()
    }


def rank_columns(results: Sequence[CellResult], systems: Sequence[str]) -> Ranking | None:
    """The ranking of some systems over a table; None if fewer than two columns have all of them."""
    headings = dict.fromkeys(result.cell.heading for result in results)
    means: dict[str, list[float]] = {name: [] for name in systems}
    ranked = []
    for heading in headings:
        here = [r for r in results if r.cell.heading == heading and r.cell.system in systems]
        found = common_means(here)
        if found is None or len(found) < len(systems):
            continue
        ranked.append(heading)
        for name in systems:
            means[name].append(found[name])
    return rank_systems(means, ranked) if len(ranked) > 1 else None
