"""Honest probabilities: a temperature, and sets that have the true class as often as they say.

Both are learned from held-out predictions. The temperature T minimises the negative logarithm of
the probability that p^{1/T} gives the true classes. A prediction set has every class whose
probability is at least a threshold; by split-conformal counting, the threshold is such that the
true class of a new node is in its set with the stated probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from kryograph.graph import Indices
from kryograph.stats import tempered
from kryograph.systems.base import Probabilities

SMALLEST_PROBABILITY = 1e-12
"""Probabilities are at least this before their logarithm is taken."""


def best_temperature(probabilities: Probabilities, labels: Indices) -> float:
    """The temperature under which the true classes are most probable.

    A handful of labels that are all predicted rightly would ask for T = 0; so log T has a standard
    normal prior, which a hundred labels outweigh.
    """
    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        true = tempered(probabilities, math.exp(log_temperature))[rows, labels]
        return float(-np.log(np.maximum(true, SMALLEST_PROBABILITY)).sum() + log_temperature**2 / 2)

    return math.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)


@dataclass(frozen=True)
class Calibration:
    """What was learned from held-out predictions.

    Args:
        temperature: T.
        coverage: How often a set shall have the true class.
        threshold: The probability from which on a class is in the set.
    """

    temperature: float
    coverage: float
    threshold: float

    def probabilities(self, raw: Probabilities) -> Probabilities:
        """Calibrated ones."""
        return tempered(raw, self.temperature)

    def sets(self, calibrated: Probabilities) -> npt.NDArray[np.bool_]:
        """N × C: which classes are in each node's set. The most probable one always is."""
        found = calibrated >= self.threshold
        found[np.arange(len(found)), calibrated.argmax(axis=1)] = True
        return found


def calibrate(raw: Probabilities, labels: Indices, coverage: float = 0.9) -> Calibration:
    """Learn temperature and threshold from held-out predictions."""
    temperature = best_temperature(raw, labels)
    true = np.sort(tempered(raw, temperature)[np.arange(len(labels)), labels])
    # Of n + 1 exchangeable nodes, the new one included, this many may be left out.
    spare = math.floor((len(labels) + 1) * (1 - coverage) + 1e-9)
    threshold = float(true[spare - 1]) if spare > 0 else 0.0
    return Calibration(temperature, coverage, threshold)


@dataclass(frozen=True)
class Bin:
    """Nodes of similar confidence: how sure the predictions are, and how often they are right."""

    confidence: float
    accuracy: float
    count: int


def reliability(probabilities: Probabilities, labels: Indices, bins: int = 10) -> list[Bin]:
    """The reliability curve, in bins of equal width; empty ones are left out."""
    sure = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    at = np.minimum((sure * bins).astype(int), bins - 1)
    return [
        Bin(float(sure[at == b].mean()), float(right[at == b].mean()), int((at == b).sum()))
        for b in np.unique(at)
    ]
