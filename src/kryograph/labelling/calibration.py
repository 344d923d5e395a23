"""Calibration: a temperature for the probabilities, and prediction sets with a stated coverage.

Both are learned from held-out predictions. The temperature T maximises the likelihood of the true
classes under probabilities proportional to p^{1/T}. A prediction set holds every class whose
probability is at least a threshold. The threshold is chosen by split conformal prediction: the set
of a new node holds its true class with the stated probability.

That probability is one over all nodes: the sets of a rare class may hold it seldom. With a
threshold for each class (class-conditional or Mondrian conformal prediction), a node of any class
has its true class in its set with the stated probability. Such a set may lack the most probable
class: with thresholds of 0.95 and 0.05, it is {rare} for the probabilities 0.9 and 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import Indices
from kryograph.stats import tempered
from kryograph.systems.base import Probabilities
from kryograph.text import plural, quoted
from kryograph.training.pooling import best_temperature

COVERAGES_BY = ("all", "class")
"""Nodes over which the coverage of prediction sets is stated: all of them, or those of a class."""


def labels_needed(coverage: float) -> int:
    """Number of held-out labels without which no threshold can guarantee the coverage.

    >>> labels_needed(0.9), labels_needed(0.95), labels_needed(0.5)
    (9, 19, 1)
    """
    return math.ceil(coverage / (1 - coverage) - 1e-9)


def check_labels_of_classes(labels: Indices, classes: Sequence[str], coverage: float) -> None:
    """Check that every class has labels enough for prediction sets with a coverage by class."""
    needed = labels_needed(coverage)
    counts = np.bincount(labels, minlength=len(classes)).tolist()
    few = [(name, n) for name, n in zip(classes, counts, strict=True) if n < needed]
    if few:
        listed = ", ".join(f"{quoted(name)} has {n}" for name, n in few[:5])
        more = f" and {plural(len(few) - 5, 'more class', 'more classes')}" if len(few) > 5 else ""
        raise UsageError(
            f"Sets with a coverage of {100 * coverage:g} % by class need at least "
            f"{plural(needed, 'label')} of each class, which are held out; {listed}{more}. Label "
            "more nodes, lower the coverage, or take the coverage over all nodes."
        )


@dataclass(frozen=True)
class Calibration:
    """Temperature, and thresholds of the prediction sets.

    Args:
        temperature: T, above 0; above 1 if the raw probabilities are too extreme.
        coverage: Stated probability that a set holds the true class.
        threshold: Smallest calibrated probability of a class in a set.
        class_thresholds: The same for each class, if the coverage is stated by class; they take the
            place of `threshold`. None if it is stated over all nodes.
    """

    temperature: float
    coverage: float
    threshold: float
    class_thresholds: tuple[float, ...] | None = None

    def as_extra(self) -> dict[str, Any]:
        """Convert to an entry of the `extra` of a model."""
        entry = asdict(self)
        if self.class_thresholds is None:
            del entry["class_thresholds"]
        return entry

    @classmethod
    def from_extra(cls, extra: Mapping[str, Any]) -> Calibration:
        """Read the calibration from the `extra` of a model that `label_nodes` built."""
        try:
            entry = dict(extra["calibration"])
            by_class = entry.pop("class_thresholds", None)
            values = {key: float(value) for key, value in entry.items()}
            thresholds = None if by_class is None else tuple(map(float, by_class))
            calibration = cls(**values, class_thresholds=thresholds)
        except (KeyError, TypeError, ValueError):
            raise UsageError(
                "The model has no calibration: only `kryograph fit` and `label_nodes` write one."
            ) from None
        t, coverage = calibration.temperature, calibration.coverage
        limits = (calibration.threshold, *(thresholds or ()))
        if not (0 < t < 1e6 and 0 < coverage < 1 and all(0 <= limit <= 1 for limit in limits)):
            if thresholds is not None:
                values |= {f"threshold of class {c}": limit for c, limit in enumerate(thresholds)}
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

        No set is empty: the most probable class is always in the set, or, with a threshold for each
        class, the class that is nearest to its threshold if none reaches it.
        """
        if self.class_thresholds is not None:
            thresholds = np.maximum(self.class_thresholds, 1e-12)
            sets = calibrated >= thresholds
            empty = ~sets.any(axis=1)
            sets[empty, (calibrated[empty] / thresholds).argmax(axis=1)] = True
            return sets
        sets = calibrated >= self.threshold
        sets[np.arange(len(sets)), calibrated.argmax(axis=1)] = True
        return sets


def calibrate(
    raw: Probabilities,
    labels: Indices,
    coverage: float = 0.9,
    importance: npt.NDArray[np.float64] | None = None,
    *,
    temperature: float | None = None,
    by_class: bool = False,
) -> Calibration:
    """Learn temperature and thresholds from held-out predictions and the true classes.

    Args:
        raw: Probabilities of the held-out nodes, n × C.
        labels: True classes of these nodes.
        coverage: Stated probability that a set holds the true class.
        importance: Weight of each node in a mean that stands for the whole graph, with mean 1;
            None means that all weights are 1.
        temperature: The temperature if it is known; None means that it is learned.
        by_class: Whether each class has a threshold of its own. That of a class with fewer labels
            than `labels_needed` is 0: every set holds it.
    """
    weights = np.ones(len(labels)) if importance is None else importance
    if temperature is None:
        temperature = best_temperature(np.log(np.maximum(raw, 1e-12))[None], labels, weights)
    of_true_class = tempered(raw, temperature)[np.arange(len(labels)), labels]
    threshold = _threshold(of_true_class, weights, coverage)
    if not by_class:
        return Calibration(temperature, coverage, threshold)
    masks = [labels == c for c in range(raw.shape[1])]
    thresholds = tuple(_threshold(of_true_class[m], weights[m], coverage) for m in masks)
    return Calibration(temperature, coverage, threshold, thresholds)


def _threshold(
    of_true_class: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], coverage: float
) -> float:
    """Threshold of split conformal prediction; 0 if there are too few nodes for the coverage."""
    if not weights.size:
        return 0.0
    order = np.argsort(of_true_class)
    # Of n + 1 exchangeable nodes, the new one included, this many may be outside of their sets.
    allowed = (weights.sum() + weights.mean()) * (1 - coverage) + 1e-9
    outside = int(np.searchsorted(np.cumsum(weights[order]), allowed, side="right"))
    return float(of_true_class[order[outside - 1]]) if outside > 0 else 0.0


def positive_class(extra: Mapping[str, Any], classes: int) -> int | None:
    """Read the number of the class that ranks nodes from the `extra` of a model.

    None if there are other than two classes, or if the model is older than rankings.
    """
    number = extra.get("positive")
    if number is None or classes != 2:
        return None
    if number not in (0, 1):
        raise UsageError(f"model.json: 'positive' is {number!r}. Expected: 0 or 1.")
    return int(number)


@dataclass(frozen=True)
class Bin:
    """Nodes with similar confidence: mean confidence, share of correct predictions, and number."""

    confidence: float
    accuracy: float
    count: int


def reliability(
    probabilities: Probabilities, labels: Indices, bins: int = 10, fewest: int = 1
) -> list[Bin]:
    """Compute the reliability curve in bins of equal width.

    A bin with fewer than `fewest` labels is merged with the next one, the last with the one before
    it; with fewer labels in all there is no bin.
    """
    if len(labels) < fewest:
        return []
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    masks = [np.zeros(len(labels), dtype=bool)]
    for number in np.unique(bin_of):
        if masks[-1].sum() >= fewest:
            masks.append(np.zeros(len(labels), dtype=bool))
        masks[-1] |= bin_of == number
    if masks[-1].sum() < fewest:
        masks[-2:] = [masks[-2] | masks[-1]]
    return [Bin(float(confidence[m].mean()), float(right[m].mean()), int(m.sum())) for m in masks]
