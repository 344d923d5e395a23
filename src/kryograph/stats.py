"""Statistics: metrics of predictions, means with intervals, and what luck alone gives."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

Metric: TypeAlias = Callable[[npt.NDArray[np.float64], npt.NDArray[np.int64]], float]
"""Function of class probabilities (n × C) and true classes (n); higher values are better."""


def accuracy(probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> float:
    """Share of nodes whose most probable class is the true one.

    >>> accuracy(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 0]))
    0.5
    """
    return float(np.mean(probabilities.argmax(axis=1) == labels))


def balanced_accuracy(
    probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]
) -> float:
    """Mean over the classes of the share of their nodes that are predicted correctly.

    >>> balanced_accuracy(np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]), np.array([0, 0, 1]))
    0.5
    """
    right = probabilities.argmax(axis=1) == labels
    return float(np.mean([right[labels == c].mean() for c in np.unique(labels)]))


def calibration_error(
    probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], bins: int = 10
) -> float:
    """Expected calibration error: the mean gap between confidence and share of right predictions.

    Nodes are put into bins of equal width by the probability of their most probable class; a bin
    counts by its nodes.

    >>> calibration_error(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    0.25
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_of, weights=confidence - right, minlength=bins)
    return float(abs(gaps).sum() / labels.size)


def f1_score(
    probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], positive: int
) -> float:
    """Harmonic mean of precision and recall of the class `positive`; 0 if it is never predicted.

    >>> f1_score(np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]), np.array([1, 0, 0]), 1)
    0.6666666666666666
    """
    predicted, true = probabilities.argmax(axis=1) == positive, labels == positive
    return 2 * float((predicted & true).sum()) / max(int(predicted.sum() + true.sum()), 1)


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall of a ranking: an entry for each distinct score, the highest first.

    Args:
        thresholds: The scores; the nodes with this score or a higher one are taken.
        precision: Share of positive nodes among those that are taken.
        recall: Share of the positive nodes that are taken.
    """

    thresholds: npt.NDArray[np.float64]
    precision: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]

    @property
    def average_precision(self) -> float:
        """Mean of the precision, weighted by the steps of the recall."""
        return float(np.diff(self.recall, prepend=0.0) @ self.precision)


def precision_recall(
    scores: npt.NDArray[np.float64],
    positive: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64] | None = None,
) -> PrecisionRecall:
    """Compute precision and recall at every threshold; at least one node must be positive.

    >>> positive = np.array([True, True, False, True])
    >>> curve = precision_recall(np.array([0.9, 0.5, 0.5, 0.1]), positive)
    >>> curve.recall.round(2), curve.precision.round(2)
    (array([0.33, 0.67, 1.  ]), array([1.  , 0.67, 0.75]))
    >>> round(curve.average_precision, 4)
    0.8056
    """
    w = np.ones(len(scores)) if weights is None else weights
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    hits, taken = np.cumsum((w * positive)[order])[last], np.cumsum(w[order])[last]
    return PrecisionRecall(ranked[last], hits / taken, hits / (w * positive).sum())


METRICS: dict[str, Metric] = {"accuracy": accuracy}
"""Metrics by name. Every run records all of them on its test nodes."""


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and Student's 95 % interval of the mean, within [0, 1].

    The standard deviation and the ends of the interval are None if there is one value only.

    >>> summarise([0.80, 0.82, 0.84]).ci95
    (0.7703..., 0.8696...)
    """

    mean: float
    std: float | None
    ci95: tuple[float | None, float | None]
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Summarise scores, which are fractions; there must be at least one."""
    n = len(values)
    mean = statistics.fmean(values)
    if n == 1:
        return Summary(mean, None, (None, None), 1)
    std = statistics.stdev(values)
    half = student_half_width(std, n)
    return Summary(mean, std, (max(mean - half, 0.0), min(mean + half, 1.0)), n)


def tempered(probabilities: npt.NDArray[np.float64], temperature: float) -> npt.NDArray[np.float64]:
    """Raise probabilities (n × C) to the power 1/T and scale each row to the sum one.

    >>> tempered(np.array([[0.8, 0.2]]), 2.0).round(3)
    array([[0.667, 0.333]])
    """
    logs = np.log(np.maximum(probabilities, 1e-12)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    result: npt.NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return result


def wilson_interval(right: float, n: float) -> tuple[float, float, float]:
    """Share `right / n` and the ends of its 95 % interval by Wilson's score, which contains it.

    >>> [round(value, 3) for value in wilson_interval(8, 10)]
    [0.8, 0.49, 0.943]
    """
    z = 1.959964
    share = min(max(float(right / n), 0.0), 1.0)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding may put an end of the interval beyond a share of 0 or 1.
    low, high = min(float(centre - half), share), max(float(centre + half), share)
    return share, max(low, 0.0), min(high, 1.0)


def student_half_width(std: float, n: int) -> float:
    """Half the width of Student's 95 % interval of the mean of n values.

    >>> round(student_half_width(0.02, 4), 4)
    0.0318
    """
    return float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)


@cache
def expected_maximum(count: int) -> float:
    """Expected maximum of `count` independent standard normal numbers.

    >>> expected_maximum(1), expected_maximum(2)  # the latter is 1/√π
    (0.0, 0.5641...)
    """
    from scipy.integrate import quad  # slow to import, and few commands need it

    def weighted_density(x: float) -> float:
        normal = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return float(x * count * normal * ndtr(x) ** (count - 1))

    value, _ = quad(weighted_density, -math.inf, math.inf)
    return float(value)
