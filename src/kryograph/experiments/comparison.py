"""Paired comparisons of two systems in a column, over the splits that both were run on.

Splits differ far more from each other than systems do, so two systems are compared split by split
(same seed, same split).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.experiments.cells import CellResult
from kryograph.stats import student_half_width

LEVEL = 0.05
"""Level of significance of all tests."""

DIGITS = 9
"""Decimals of a difference that count: differences that are equal except for rounding are ties."""

Scores = Mapping[tuple[int, str], float]
"""Test scores by seed and digest of the split."""


def signed_rank_p(differences: npt.NDArray[np.float64]) -> float:
    """Exact two-sided p-value of Wilcoxon's signed-rank test; equal sizes share their mean rank.

    It counts the sums of positive ranks over all 2ⁿ signs. (SciPy samples ten thousand of them if
    two sizes are equal.)

    Args:
        differences: Differences of the pairs; none is zero.

    >>> signed_rank_p(np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.4]))
    0.03125
    """
    _, size, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(counts) - counts + 1)[size]  # doubled mean ranks, which are whole
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    positive = int(ranks[differences > 0].sum())
    smaller = min(positive, int(ranks.sum()) - positive)
    return min(1.0, float(2 * ways[: smaller + 1].sum() / 2.0 ** len(ranks)))


@dataclass(frozen=True)
class Comparison:
    """Comparison of two systems in a column: score of the first minus that of the second by split.

    >>> comparison = Comparison("a", "b", "Cora 1%", (0.02, 0.0, 0.04))
    >>> comparison.n, round(comparison.mean, 3)
    (3, 0.02)
    >>> comparison.wins, comparison.ties, comparison.losses
    (2, 1, 0)
    """

    first: str
    second: str
    heading: str
    differences: tuple[float, ...]

    @property
    def n(self) -> int:
        """Number of splits that both systems have."""
        return len(self.differences)

    @property
    def mean(self) -> float:
        """Mean difference over the common splits."""
        return float(np.mean(self.differences))

    @property
    def ci95(self) -> tuple[float | None, float | None]:
        """Student's 95 % interval of the mean difference; (None, None) if there is one split."""
        if self.n == 1:
            return None, None
        half = student_half_width(float(np.std(self.differences, ddof=1)), self.n)
        return self.mean - half, self.mean + half

    @property
    def wins(self) -> int:
        """Number of splits in which the first system is better."""
        return sum(d > 0 for d in self.differences)

    @property
    def losses(self) -> int:
        """Number of splits in which the second system is better."""
        return sum(d < 0 for d in self.differences)

    @property
    def ties(self) -> int:
        """Number of splits in which both are equal."""
        return self.n - self.wins - self.losses

    @cached_property
    def wilcoxon_p(self) -> float:
        """Two-sided p-value of Wilcoxon's signed-rank test; ties are left out, as by Wilcoxon."""
        unequal = np.array([d for d in self.differences if d != 0])
        return signed_rank_p(unequal) if unequal.size else 1.0

    @property
    def smallest_p(self) -> float:
        """The p-value if the first system had won every split that is not a tie."""
        return min(1.0, 2.0 ** (1 - self.wins - self.losses))

    @property
    def telling(self) -> bool:
        """Whether there are enough splits for a significant p-value."""
        return self.smallest_p < LEVEL

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold."""
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
    """Scores of a cell by split, with one setting because most systems have only one.

    Runs without the digest of their split are left out.
    """
    return {
        (row.seed, row.split_digest): row.test_accuracy
        for row in result.by_one_setting.rows
        if row.test_accuracy is not None and row.split_digest
    }


def paired(first: CellResult, second: CellResult) -> Comparison | None:
    """Compare two cells of one column; None if they have no split in common."""
    ours, theirs = scores(first), scores(second)
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    differences = tuple(round(ours[split] - theirs[split], DIGITS) for split in common)
    return Comparison(first.cell.system, second.cell.system, first.cell.heading, differences)


def compare_first(
    results: Sequence[CellResult], systems: Sequence[str]
) -> tuple[list[Comparison], list[str]]:
    """Compare the first system with each of the others, column by column.

    Returns:
        The comparisons, and for each pair with fewer than two splits in common its description,
        such as "gcn and gat in Cora 1%".
    """
    cells = {(result.cell.heading, result.cell.system): result for result in results}
    first, *others = systems
    comparisons, incomparable = [], []
    for heading in dict.fromkeys(heading for heading, _ in cells):
        for other in others:
            comparison = paired(cells[heading, first], cells[heading, other])
            if comparison is not None and comparison.n > 1:
                comparisons.append(comparison)
            else:
                incomparable.append(f"{first} and {other} in {heading}")
    return comparisons, incomparable
