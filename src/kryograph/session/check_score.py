"""Check score: accuracy on nodes that were drawn at random, before their labels were seen.

Suggested nodes are those that the model finds hard, so that accuracy on them says nothing about the
graph. Earlier check nodes were predicted by earlier, weaker models: only the last 50 count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kryograph.stats import wilson_interval

WINDOW = 50
"""Number of check nodes that count, the latest ones."""

FEWEST = 10
"""Smallest number of check nodes from which an accuracy is given."""

NARROW = 0.10
"""Width of the interval below which more labels hardly help."""


@dataclass(frozen=True)
class CheckScore:
    """Accuracy on check nodes.

    Args:
        n: Number of check nodes that count.
        total: Number of all check nodes.
        right: Number of those that count and were predicted correctly.
        share: Accuracy; None if there are too few check nodes.
        low: Lower end of Wilson's 95 % interval; None without an accuracy.
        high: Upper end of the interval; None without an accuracy.
        curve: Accuracy, low and high after each check node from the tenth on.
        enough: Whether more labels hardly help: the interval is narrower than ten points.
    """

    n: int
    total: int
    right: int
    share: float | None
    low: float | None
    high: float | None
    curve: tuple[tuple[float, float, float], ...]
    enough: bool

    def as_dict(self) -> dict[str, Any]:
        """Convert to values for JSON."""
        return asdict(self)


def score_checks(outcomes: Sequence[bool]) -> CheckScore:
    """Score check nodes; `outcomes` says in their order which were predicted correctly.

    >>> score = score_checks([True] * 9 + [False])
    >>> score.n, score.share, round(score.low, 2), round(score.high, 2)
    (10, 0.9, 0.6, 0.98)
    >>> score_checks([True] * 9).share is None
    True
    """
    curve = tuple(_window(outcomes[:end]) for end in range(FEWEST, len(outcomes) + 1))
    last = list(outcomes[-WINDOW:])
    share, low, high = curve[-1] if curve else (None, None, None)
    enough = low is not None and high is not None and high - low < NARROW
    return CheckScore(len(last), len(outcomes), sum(last), share, low, high, curve, enough)


def _window(outcomes: Sequence[bool]) -> tuple[float, float, float]:
    last = outcomes[-WINDOW:]
    return wilson_interval(sum(last), len(last))
