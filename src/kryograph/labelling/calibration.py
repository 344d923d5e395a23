"""Calibration: a temperature for the probabilities, and prediction sets with a stated coverage.

Both are learned from held-out predictions. The temperature T maximises the likelihood of the true
classes under probabilities proportional to p^{1/T}. A prediction set holds every class whose
probability is at least a threshold. The threshold is chosen by split conformal prediction: the set
of a new node holds its true class with the stated probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.stats import tempered
from kryograph.systems.base import Probabilities
from kryograph.training.pooling import best_temperature


@dataclass(frozen=True)
class Calibration:
    """Temperature, and threshold of the prediction sets.

    Args:
        temperature: T, above 0; above 1 if the raw probabilities are too extreme.
        coverage: Stated probability that a set holds the true class.
        threshold: Smallest calibrated probability of a class in a set.
    """

    temperature: float
    coverage: float
    threshold: float

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any]) -> Calibration:
        """Read the calibration from the `extra` of a model that `label_nodes` built."""
        try:
            values = {key: float(value) for key, value in dict(extra["calibration"]).items()}
            calibration = cls(**values)
        except (KeyError, TypeError, ValueError):
            raise UsageError(
                "The model has no calibration: only `kryograph fit` and `label_nodes` write one."
            ) from None
        t, coverage, threshold = astuple(calibration)
        if not (0 < t < 1e6 and 0 < coverage < 1 and 0 <= threshold <= 1):
            entries = ", ".join(f"{key} {value:g}" for key, value in values.items())
            raise UsageError(
                f"model.json: the calibration is out of range ({entries}). Expected: temperature "
                "above 0, coverage and threshold between 0 and 1."
            )
        return calibration

    def probabilities(self, raw: Probabilities) -> Probabilities:
        """Apply the temperature to the probabilities of a system, N × C."""
        return tempered(raw, self.temperature)

    def sets(self, calibrated: Probabilities) -> npt.NDArray[np.bool_]:
        """Mask N × C of the classes in the prediction set of each node.

        The most probable class is always in the set.
        """
        sets = calibrated >= self.threshold
        sets[np.arange(len(sets)), calibrated.argmax(axis=1)] = True
        return sets


def calibrate(
    raw: Probabilities,
    labels: Indices,
    coverage: float = 0.9,
    importance: npt.NDArray[np.float64] | None = None,
    temperature: float | None = None,
) -> Calibration:
    """Learn temperature and threshold from held-out predictions and the true classes.

    Args:
        raw: Probabilities of the held-out nodes, n × C.
        labels: True classes of these nodes.
        coverage: Stated probability that a set holds the true class.
        importance: Weight of each node in a mean that stands for the whole graph, with mean 1;
            None means that all weights are 1.
        temperature: The temperature if it is known; None means that it is learned.
    """
    weights = np.ones(len(labels)) if importance is None else importance
    if temperature is None:
        temperature = best_temperature(np.log(np.maximum(raw, 1e-12))[None], labels, weights)
    of_true_class = tempered(raw, temperature)[np.arange(len(labels)), labels]
    order = np.argsort(of_true_class)
    # Of n + 1 exchangeable nodes, the new one included, this many may be outside of their sets.
    allowed = (weights.sum() + weights.mean()) * (1 - coverage) + 1e-9
    outside = int(np.searchsorted(np.cumsum(weights[order]), allowed, side="right"))
    threshold = float(of_true_class[order[outside - 1]]) if outside > 0 else 0.0
    return Calibration(temperature, coverage, threshold)


@dataclass(frozen=True)
class Bin:
    """Nodes with similar confidence: mean confidence, share of correct predictions, and number."""

    confidence: float
    accuracy: float
    count: int


def reliability(probabilities: Probabilities, labels: Indices, bins: int = 10) -> list[Bin]:
    """Compute the reliability curve in bins of equal width; empty bins are left out."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    masks = [bin_of == number for number in np.unique(bin_of)]
    return [Bin(float(confidence[m].mean()), float(right[m].mean()), int(m.sum())) for m in masks]
