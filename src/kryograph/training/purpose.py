"""Purpose of a pool: the metric that it is made for, and how much each class counts.

The weights of a pool minimise a log-loss. In that loss all labels count alike, or all classes do.
Average precision needs the former too: counting classes alike made rankings of rare classes worse.
The decision, the class with the largest probability, is then moved by factors of the classes
(`training.class_shares`). For F1 the positive class gets a further factor: with the threshold τ,
the nodes with p > τ are taken for positive, and their expected F1 is
2 Σ_{p>τ} p / (Σ p + Σ_{p>τ} 1). The best τ is half of the largest expected F1, so the factor is
(1 - τ) / τ. It follows from held-out probabilities and not from their labels: with few positive
labels, the threshold that is best for exactly these labels is mostly chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError
from kryograph.graph import Indices, Task
from kryograph.training.class_shares import fitted_power, reweighted
from kryograph.training.pooling import mean_one

_Array = npt.NDArray[np.float64]

PURPOSES = ("accuracy", "balanced-accuracy", "f1", "average-precision")
"""Metrics that a pool can be made for."""

ONE_CLASS_METRICS = ("f1", "average-precision")
"""Metrics of the positive one of two classes."""

WEIGHTINGS = ("by metric", "none", "balanced")


def rarer_class(shares: npt.NDArray[np.floating | np.integer]) -> int:
    """Number of the rarest class; of equally rare ones, the last.

    >>> rarer_class(np.array([0.9, 0.1])), rarer_class(np.array([0.5, 0.5]))
    (1, 1)
    """
    rounded = np.round(shares, 9)
    return int(rounded.size - 1 - rounded[::-1].argmin())


def drawn_shares(task: Task) -> _Array:
    """Shares of the classes among the training labels; no label counts as half a label."""
    counts = np.bincount(task.labels[task.split.train], minlength=len(task.classes))
    present = np.maximum(counts, 0.5)
    return np.asarray(present / present.sum())


@dataclass(frozen=True)
class Purpose:
    """The metric that a pool is made for, and how much each class counts in its loss.

    Args:
        metric: One of `PURPOSES`.
        weighting: "balanced" if all classes count alike in the log-loss that gives the weights,
            "none" if all labels do; "by metric" is "balanced" for balanced accuracy only.
        positive: Number of the positive class; -1 for the rarer one. Only F1 needs it.
    """

    metric: str
    weighting: str
    positive: int

    def check(self, classes: int) -> None:
        """Check that the metric and the positive class suit the number of classes."""
        if self.metric in ONE_CLASS_METRICS and classes != 2:
            raise UsageError(
                f"The metric {self.metric!r} is one of two classes, and there are {classes}: use "
                "'balanced-accuracy'."
            )
        if self.positive >= classes:
            raise UsageError(
                f"The positive class has the number {self.positive}, and there are {classes}."
            )

    def importance(self, labels: Indices, drawn: _Array) -> _Array:
        """Weights of labelled nodes in the log-loss, with mean 1.

        Args:
            labels: Their classes.
            drawn: Shares of the classes among the labels.
        """
        by_metric = "balanced" if self.metric == "balanced-accuracy" else "none"
        kind = by_metric if self.weighting == "by metric" else self.weighting
        return mean_one((1 / drawn)[labels]) if kind == "balanced" else np.ones(labels.size)

    def label_factors(self, held_out: _Array, labels: Indices, drawn: _Array) -> _Array:
        """Factors of the classes' probabilities if the labels say how frequent classes are, C.

        For balanced accuracy all classes count alike, however frequent they are.

        Args:
            held_out: Probabilities of labelled nodes by pools that did not see their labels, n × C.
            labels: Their classes, n.
            drawn: Shares of the classes among the labels.
        """
        if self.metric == "balanced-accuracy":
            by_class = mean_one((1 / drawn)[labels])
            return fitted_power(held_out, labels, by_class, 1 / (drawn.size * drawn))
        return fitted_power(held_out, labels, np.ones(labels.size), drawn * drawn.size)

    def decision_factors(
        self, plain: _Array, labels: Indices, shares: _Array, growth: _Array
    ) -> _Array:
        """Further factors, C: for the shares of the classes in the graph, and for F1.

        Args:
            plain: Held-out probabilities after the factors of `label_factors`, n × C.
            labels: Classes of these nodes, n.
            shares: Estimated shares of the classes in the graph.
            growth: The same over the shares that the labels have.
        """
        if self.metric == "balanced-accuracy":
            return np.ones_like(shares)
        factors = growth.copy()
        if self.metric == "f1" and labels.size:
            positive = rarer_class(shares) if self.positive < 0 else self.positive
            chances = reweighted(plain, factors)[:, positive]
            factors[positive] *= f1_factor(chances, growth[labels])
        return factors


def f1_factor(chances: _Array, weights: _Array) -> float:
    """Factor of the odds of the positive class that maximises the expected F1.

    Args:
        chances: Probabilities of the positive class.
        weights: How many nodes of the graph each of them stands for, up to a factor.

    >>> f1_factor(np.array([1.0, 0.0, 0.0]), np.ones(3))  # the threshold is 1/2
    1.0
    """
    order = np.argsort(-chances)
    p, w = chances[order], weights[order]
    expected = 2 * np.cumsum(w * p) / (np.cumsum(w) + (w * p).sum())
    threshold = float(np.clip(expected.max() / 2, 1e-6, 0.5))
    return (1 - threshold) / threshold
