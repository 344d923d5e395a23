"""Results: runs of one system under one protocol, and what they come to."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, pi, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and Student's 95 % interval of the mean, within [0, 1].

    One run has neither of the latter.

    >>> summarise([0.80, 0.82, 0.84]).ci95
    (0.7703..., 0.8696...)
    """

    mean: float
    std: float | None
    ci95: tuple[float | None, float | None]
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """The summary of some scores."""
    n = len(values)
    mean = statistics.fmean(values)
    if n == 1:
        return Summary(mean, None, (None, None), 1)
    std = statistics.stdev(values)
    half = float(stdtrit(n - 1, 0.975)) * std / n**0.5
    return Summary(mean, std, (max(mean - half, 0.0), min(mean + half, 1.0)), n)


def tempered(probabilities: npt.NDArray[np.float64], temperature: float) -> npt.NDArray[np.float64]:
    """p^{1/T}, rows summing to one again.

    >>> tempered(np.array([[0.8, 0.2]]), 2.0).round(3)
    array([[0.667, 0.333]])
    """
    logs = np.log(np.maximum(probabilities, 1e-12)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    result: npt.NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return result


def wilson_interval(right: int, n: int) -> tuple[float, float, float]:
    """A share and its 95 % interval by Wilson's score.

    >>> [round(value, 3) for value in wilson_interval(8, 10)]
    [0.8, 0.49, 0.943]
    """
    z = 1.959964
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return share, max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def student_half_width(std: float, n: int) -> float:
    """Half of Student's 95 % interval of a mean of n values.

    >>> round(student_half_width(0.02, 4), 4)
    0.0318
    """
    return float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)


@cache
def expected_maximum(count: int) -> float:
    """Of that many independent standard normals.

    >>> expected_maximum(1), expected_maximum(2)  # the latter is 1/√π
    (0.0, 0.5641...)
    """
    from scipy.integrate import quad  # slow to import, and few commands need it
    from scipy.special import ndtr

    def weighed(x: float) -> float:
        density: float = count * exp(-x * x / 2) / sqrt(2 * pi) * ndtr(x) ** (count - 1)
        return x * density

    value, _ = quad(weighed, -inf, inf)
    return float(value)
