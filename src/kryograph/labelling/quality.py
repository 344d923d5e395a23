"""Quality of a labelled graph, measured by held-out predictions: accuracy, baseline, classes.

An accuracy says little where one class is frequent, so the accuracy of always answering the most
frequent class stands beside it, and each class has its precision and recall. All of them are
estimated with the same weights of the held-out nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.node_ranking import NodeRanking, rank_nodes
from kryograph.stats import balanced_accuracy, wilson_interval
from kryograph.systems.base import Probabilities
from kryograph.text import percent, quoted


@dataclass(frozen=True)
class ShareEstimate:
    """An estimated share, and the ends of Wilson's 95 % interval."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON; all are fractions."""
        return {"mean": self.value, "ci95": [self.low, self.high]}


@dataclass(frozen=True)
class Baseline:
    """Always answering the most frequent class: the number of that class, and the accuracy."""

    label: int
    accuracy: float


@dataclass(frozen=True)
class ClassQuality:
    """Quality of the held-out predictions of one class; None where nothing can be said.

    Args:
        labels: Number of given labels of the class.
        held_out: Number of them that were held out (support).
        precision: Share of correct ones among the predictions of the class.
        recall: Share of the held-out labels of the class that were predicted.
        predicted: Number of unlabelled nodes that are predicted to have the class.
    """

    labels: int
    held_out: int
    precision: ShareEstimate | None
    recall: ShareEstimate | None
    predicted: int

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall."""
        if self.precision is None or self.recall is None:
            return None
        total = self.precision.value + self.recall.value
        return 2 * self.precision.value * self.recall.value / total if total else 0.0


@dataclass(frozen=True)
class Quality:
    """Quality of a labelled graph.

    Args:
        accuracy: Accuracy expected on other nodes.
        baseline: Accuracy of always answering the most frequent class.
        balanced_accuracy: Mean recall of the classes that have held-out labels.
        per_class: Quality of each class.
        ranking: Ranking by the probability of the positive class; None unless there are two
            classes, both with held-out labels.
    """

    accuracy: ShareEstimate
    baseline: Baseline
    balanced_accuracy: float
    per_class: tuple[ClassQuality, ...]
    ranking: NodeRanking | None

    def warning(self, classes: tuple[str, ...], metric: str) -> str | None:
        """Sentence for a fit that is not more accurate than the baseline; None for a better one.

        Args:
            classes: Names of the classes.
            metric: What the fit was made for; a fit for accuracy gets a hint at another metric.
        """
        if self.accuracy.value > self.baseline.accuracy:
            return None
        hint = ""
        if metric == "accuracy":
            other = "f1" if len(classes) == 2 else "balanced-accuracy"
            hint = f"; a fit for the metric {other!r} predicts rare classes more often"
        return (
            f"The accuracy of {percent(self.accuracy.value)} % is no better than always answering "
            f"{quoted(classes[self.baseline.label])}, which is right for "
            f"{percent(self.baseline.accuracy)} %. Look at precision and recall of the classes"
            f"{hint}."
        )

    def as_dict(self, classes: tuple[str, ...]) -> dict[str, Any]:
        """Values for JSON by name; shares are fractions, and None is a share that is unknown."""
        return {
            "baseline": {
                "class": classes[self.baseline.label],
                "accuracy": self.baseline.accuracy,
            },
            "per_class": [
                {
                    "class": name,
                    "labels": one.labels,
                    "support": one.held_out,
                    "precision": one.precision and one.precision.as_dict(),
                    "recall": one.recall and one.recall.as_dict(),
                    "f1": one.f1,
                    "predicted": one.predicted,
                }
                for name, one in zip(classes, self.per_class, strict=True)
            ],
            "ranking": self.ranking and self.ranking.as_dict(classes),
        }


def measure_quality(
    held_out: HeldOut,
    labels: Indices,
    calibrated: Probabilities,
    probabilities: Probabilities,
    positive: int | None,
) -> Quality:
    """Measure the quality of predictions by those of held-out nodes.

    Args:
        held_out: Predictions for known labels by models that have not seen them.
        labels: The labels that were known: N class numbers, `UNKNOWN` elsewhere.
        calibrated: Calibrated probabilities of the held-out nodes, n × C.
        probabilities: Calibrated probabilities of all nodes, N × C.
        positive: Number of the class by which nodes are ranked; None for no ranking.
    """
    classes, weights = probabilities.shape[1], held_out.importance
    shares = np.bincount(held_out.labels, weights, minlength=classes) / weights.sum()
    frequent = int(shares.argmax())
    ranking = None
    if positive is not None and 0 < shares[positive] < 1:
        free = probabilities[labels == UNKNOWN, positive]
        is_positive = held_out.labels == positive
        ranking = rank_nodes(positive, calibrated[:, positive], is_positive, weights, free)
    return Quality(
        estimate_accuracy(held_out),
        Baseline(frequent, float(shares[frequent])),
        balanced_accuracy(held_out.probabilities, held_out.labels),
        class_qualities(held_out, labels, probabilities),
        ranking,
    )


def estimate_accuracy(held_out: HeldOut) -> ShareEstimate:
    """Estimate the accuracy on other nodes by the weighted share of correct predictions.

    The interval is wider where the weights of the classes are estimates themselves.
    """
    weights = held_out.importance
    effective = _effective_number(weights)
    share = min(float(held_out.right @ weights / weights.sum()), 1.0)
    # As many labels as have this variance together with that of the classes' shares.
    smooth = (share * effective + 2) / (effective + 4)
    spread = smooth * (1 - smooth)
    effective = spread / (spread / effective + held_out.variance)
    return ShareEstimate(*wilson_interval(share * effective, effective))


def class_qualities(
    held_out: HeldOut, labels: Indices, probabilities: Probabilities
) -> tuple[ClassQuality, ...]:
    """Measure precision and recall of each class; see `measure_quality` for the arguments."""
    answers, right = held_out.probabilities.argmax(axis=1), held_out.right
    free = labels == UNKNOWN
    predicted = probabilities[free].argmax(axis=1)
    return tuple(
        ClassQuality(
            labels=int((labels == c).sum()),
            held_out=int((held_out.labels == c).sum()),
            precision=_share(right, answers == c, held_out.importance),
            recall=_share(right, held_out.labels == c, held_out.importance),
            predicted=int((predicted == c).sum()),
        )
        for c in range(probabilities.shape[1])
    )


def _share(
    right: npt.NDArray[np.bool_],
    among: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64],
) -> ShareEstimate | None:
    """Weighted share of correct predictions among some nodes; None if there are none."""
    w = weights[among]
    if not w.size:
        return None
    effective = _effective_number(w)
    share = float(right[among] @ w / w.sum())
    return ShareEstimate(*wilson_interval(share * effective, effective))


def _effective_number(weights: npt.NDArray[np.float64]) -> float:
    """Number of nodes of equal weight whose mean varies as much (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())
