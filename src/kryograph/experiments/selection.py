"""Selection: how far the best of several trials lies above their mean by luck alone.

Who tries many settings, each on draws of its own, and prints the highest mean, prints the luckiest
draws too. For trials that are equally good, with normal errors, this luck is the expected maximum
of as many standard normals, times the standard error of a trial's mean.
"""

from __future__ import annotations

from functools import cache
from math import exp, inf, pi, sqrt

TRIALS = 20
"""Few for a Bayesian search; how many the paper's had is not known."""

RUNS = 10
"""Of each trial: as many as the paper averages."""


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


def luck_of_the_best(spread: float, trials: int = TRIALS, runs: int = RUNS) -> float:
    """What the best of the trials is above their mean.

    Args:
        spread: Standard deviation between runs.
        trials: How many are equally good.
        runs: How many each is the mean of.
    """
    return expected_maximum(trials) * spread / sqrt(runs)
