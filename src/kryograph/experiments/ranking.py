"""Average ranks of systems over several columns, and Nemenyi's critical difference.

Average ranks that differ by less than the critical difference do not differ significantly (Demšar,
JMLR 2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from kryograph.errors import UsageError
from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import DIGITS, LEVEL, scores


@dataclass(frozen=True)
class Ranking:
    """Systems by their average rank over columns, the best first.

    Args:
        systems: Names of the systems.
        ranks: Average rank of each system; 1 is the best.
        headings: The columns that were ranked: those in which all systems have common splits.
        friedman_p: P-value of Friedman's test that all systems are equal; None for two systems.

    >>> best = rank_systems({"a": [0.9, 0.8], "b": [0.7, 0.8], "c": [0.5, 0.6]}, ["x", "y"])
    >>> best.systems, best.ranks
    (('a', 'b', 'c'), (1.25, 1.75, 3.0))
    """

    systems: tuple[str, ...]
    ranks: tuple[float, ...]
    headings: tuple[str, ...]
    friedman_p: float | None

    @cached_property
    def critical_difference(self) -> float:
        """Nemenyi's critical difference of two average ranks at the level of 5 %."""
        k, n = len(self.systems), len(self.headings)
        q = float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)
        return q * math.sqrt(k * (k + 1) / (6 * n))

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Positions of the first and last system of each group without significant differences.

        No group is contained in another.
        """
        groups: list[tuple[int, int]] = []
        reach = self.critical_difference + 1e-9  # room for rounding errors
        for start, low in enumerate(self.ranks):
            last = max(i for i, rank in enumerate(self.ranks) if rank <= low + reach)
            if last > start and (not groups or last > groups[-1][1]):
                groups.append((start, last))
        return groups

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold."""
        return {
            "average_ranks": dict(zip(self.systems, self.ranks, strict=True)),
            "columns": list(self.headings),
            "friedman_p": self.friedman_p,
            "critical_difference": self.critical_difference,
            "indistinguishable": [list(self.systems[a : b + 1]) for a, b in self.groups],
        }


def rank_systems(means: Mapping[str, Sequence[float]], headings: Sequence[str]) -> Ranking:
    """Rank systems in each column and average the ranks; equal means share their mean rank.

    Args:
        means: Score of each system in each column.
        headings: Names of the columns.
    """
    if len(means) < 2 or len(headings) < 2:
        raise UsageError(
            "Average ranks need at least two systems and two columns; "
            f"there are {len(means)} and {len(headings)}."
        )
    names = list(means)
    values = np.round(np.array([means[name] for name in names], dtype=float).T, DIGITS)
    average = rankdata(-values, axis=1).mean(axis=0)
    p = None
    if len(names) > 2:
        # If all scores are equal, Friedman's statistic is 0 / 0.
        all_equal = bool((values == values[:, :1]).all())
        p = 1.0 if all_equal else float(friedmanchisquare(*values.T).pvalue)
    order = sorted(range(len(names)), key=lambda i: (average[i], names[i]))
    return Ranking(
        tuple(names[i] for i in order),
        tuple(float(average[i]) for i in order),
        tuple(headings),
        p,
    )


def common_means(results: Sequence[CellResult]) -> dict[str, float] | None:
    """Mean score of each system in one column over their common splits; None if there are none."""
    by_system = {result.cell.system: scores(result) for result in results}
    common = sorted(set.intersection(*map(set, by_system.values()))) if by_system else []
    if not common:
        return None
    return {
        name: float(np.mean([values[split] for split in common]))
        for name, values in by_system.items()
    }


def rank_columns(results: Sequence[CellResult], systems: Sequence[str]) -> Ranking | None:
    """Rank systems over the columns in which all have common splits; None if these are under two.

    Args:
        results: Cells of a result table.
        systems: Names of the systems to rank.
    """
    means: dict[str, list[float]] = {name: [] for name in systems}
    ranked = []
    for heading in dict.fromkeys(result.cell.heading for result in results):
        column = [r for r in results if r.cell.heading == heading and r.cell.system in systems]
        in_column = common_means(column)
        if in_column is None or len(in_column) < len(systems):
            continue
        ranked.append(heading)
        for name in systems:
            means[name].append(in_column[name])
    return rank_systems(means, ranked) if len(ranked) > 1 else None
