"""Ranking of nodes by the probability of the positive one of two classes.

Where one class is rare, few nodes reach one half, and the question is rather: in which order are
the nodes to be looked at, and how many of the first ones are positive? The curve of precision
against recall is that of held-out predictions. The expected number of positive nodes is a sum of
chances: log-odds a z + b of the calibrated log-odds z, where a and b are fitted to held-out labels
(Platt), because a pool that is made for balanced accuracy or F1 raises the rare class on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logit

from kryograph.graph import Indices
from kryograph.stats import precision_recall
from kryograph.text import plural, quoted

_Array = npt.NDArray[np.float64]

MAX_CURVE_POINTS = 100
"""A curve with more points is thinned, evenly on a logarithmic scale."""

LOPSIDED_SHARE = 0.2
"""If the positive class is rarer, the summary of a fit states its ranking."""

TOP_COUNTS = (1000, 500, 200, 100, 50, 20, 10)
"""Numbers of top-ranked nodes of which a summary may speak."""

OFFSET_DEVIATION = 5.0
"""Standard deviation of the normal prior of b; log a has a standard normal one."""


@dataclass(frozen=True)
class CurvePoint:
    """One threshold of the curve of precision against recall.

    Args:
        threshold: Calibrated probability; nodes that reach it are taken for positive.
        precision: Share of positive ones among the held-out nodes that are taken.
        recall: Share of the positive held-out nodes that are taken.
        selected: Number of unlabelled nodes that are taken.
        expected: Expected number of positive ones among them.
    """

    threshold: float
    precision: float
    recall: float
    selected: int
    expected: float


@dataclass(frozen=True)
class NodeRanking:
    """Ranking of the nodes by the probability of the positive class.

    Args:
        positive: Number of the positive class.
        share: Its estimated share in the graph, which is the average precision of a random order.
        average_precision: Average precision of held-out predictions.
        points: The curve of precision against recall, the highest threshold first.
        unlabelled: Number of unlabelled nodes.
        expected: Expected number of positive ones among them.
        top: Number of top-ranked unlabelled nodes that the summary speaks of.
        expected_in_top: Expected number of positive ones among these.
    """

    positive: int
    share: float
    average_precision: float
    points: tuple[CurvePoint, ...]
    unlabelled: int
    expected: float
    top: int
    expected_in_top: float

    @property
    def lopsided(self) -> bool:
        """Whether the positive class is so rare that accuracy says little."""
        return self.share < LOPSIDED_SHARE

    def sentence(self, classes: tuple[str, ...]) -> str:
        """State how many positive nodes are expected among the top-ranked ones."""
        return (
            f"{self.top:,} top-ranked of {plural(self.unlabelled, 'unlabelled node')}: about "
            f"{self.expected_in_top:,.0f} {quoted(classes[self.positive])} expected, of about "
            f"{self.expected:,.0f} in all."
        )

    def as_dict(self, classes: tuple[str, ...]) -> dict[str, Any]:
        """Values for JSON; the curve is a list of values for each quantity."""
        return {
            "positive": classes[self.positive],
            "share": self.share,
            "average_precision": self.average_precision,
            "top": self.top,
            "expected_in_top": self.expected_in_top,
            "unlabelled": self.unlabelled,
            "expected": self.expected,
            "curve": {
                "threshold": [point.threshold for point in self.points],
                "precision": [point.precision for point in self.points],
                "recall": [point.recall for point in self.points],
            },
        }


def rank_nodes(
    positive: int,
    held_out: _Array,
    is_positive: npt.NDArray[np.bool_],
    weights: _Array,
    unlabelled: _Array,
) -> NodeRanking:
    """Measure the ranking by one class.

    Args:
        positive: Number of the class.
        held_out: Calibrated probabilities of the class for held-out nodes, n.
        is_positive: Whether they have the class; some do and some do not.
        weights: Weight of each of them in a mean that stands for the whole graph.
        unlabelled: Calibrated probabilities of the class for unlabelled nodes.
    """
    chances = fitted_chances(held_out, is_positive, weights)(unlabelled)
    order = np.argsort(-unlabelled, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(chances[order])])
    ranked = -unlabelled[order]
    curve = precision_recall(held_out, is_positive, weights)
    count = curve.thresholds.size
    # The curve is finest at its beginning, where a rare class is found.
    spread = np.geomspace(1, count, MAX_CURVE_POINTS).round().astype(int) - 1
    kept = np.arange(count) if count <= MAX_CURVE_POINTS else np.unique(spread)
    selected = np.searchsorted(ranked, -curve.thresholds[kept], side="right")
    points = tuple(
        CurvePoint(
            threshold=float(curve.thresholds[k]),
            precision=float(curve.precision[k]),
            recall=float(curve.recall[k]),
            selected=int(taken),
            expected=float(sums[taken]),
        )
        for k, taken in zip(kept, selected, strict=True)
    )
    free = unlabelled.size
    top = next((number for number in TOP_COUNTS if number * 5 <= free), free)
    return NodeRanking(
        positive=positive,
        share=float(weights @ is_positive / weights.sum()),
        average_precision=curve.average_precision,
        points=points,
        unlabelled=free,
        expected=float(sums[-1]),
        top=top,
        expected_in_top=float(sums[top]),
    )


@dataclass(frozen=True)
class PlattScale:
    """Chances with the log-odds a z + b, where z are the log-odds of a probability."""

    slope: float
    offset: float

    def __call__(self, probabilities: _Array) -> _Array:
        return np.asarray(expit(self.slope * _log_odds(probabilities) + self.offset))


def fitted_chances(
    probabilities: _Array, is_positive: npt.NDArray[np.bool_], weights: _Array
) -> PlattScale:
    """Fit slope and offset at which the true classes are most probable, under weak priors."""
    z = _log_odds(probabilities)
    sign = np.where(is_positive, 1.0, -1.0)

    def loss(x: _Array) -> float:
        margins = sign * (np.exp(x[0]) * z + x[1])
        likelihood = weights @ np.logaddexp(0, -margins)
        return float(likelihood + x[0] ** 2 / 2 + (x[1] / OFFSET_DEVIATION) ** 2 / 2)

    log_slope, offset = minimize(loss, np.zeros(2), method="L-BFGS-B").x
    return PlattScale(float(np.exp(log_slope)), float(offset))


def node_ranks(probabilities: _Array) -> Indices:
    """Rank of each node by its probability, from 1; of equal ones the first node comes first.

    >>> node_ranks(np.array([0.2, 0.9, 0.2]))
    array([2, 1, 3])
    """
    ranks = np.empty(len(probabilities), dtype=np.int64)
    ranks[np.argsort(-probabilities, kind="stable")] = np.arange(1, len(probabilities) + 1)
    return ranks


def _log_odds(probabilities: _Array) -> _Array:
    return np.asarray(logit(np.clip(probabilities, 1e-9, 1 - 1e-9)))
