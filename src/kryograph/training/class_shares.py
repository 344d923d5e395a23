"""Shares of the classes in a graph, estimated from predictions.

If somebody chose how many nodes of each class to label, the labels do not tell how frequent the
classes are. The predictions do: if M is the mean prediction for a node of each class (C × C, from
held-out labels), then the mean prediction for all nodes is M q, where q are the shares (black-box
shift estimation; Lipton, Wang, Smola, ICML 2018). M is known from few labels only, so q is the most
probable one under its sampling error and a prior around the shares of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import null_space
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax

from kryograph.graph import Indices

_Array = npt.NDArray[np.float64]

EVENNESS = 10.0
"""Strength of the prior for the estimate: that many nodes that were observed at random."""

CAUTION = 3.0
"""The same for the variance of the estimate: the classes of real graphs are less even than the
prior that gives the best estimates."""

DOUBTFUL = 0.3
"""How many observed nodes a label counts as if it is unknown how labels were drawn."""

POWER_STRENGTH = 10.0
"""Factor of half the squared power in `fitted_power`: few labels do not tell which one is best."""

BIAS = 0.55
"""Systematic error of M, because held-out predictions are made with fewer labels than the final
ones: with k labels per class its variance is (BIAS / k)²."""

NO_LABEL = 1e-6
"""Number of labels of a class without any, so that logarithms of its share are finite."""

SHARE_ROUNDS = 3
"""The sampling error depends on q itself; the estimate is repeated that often."""


@dataclass(frozen=True, eq=False)
class SharePrior:
    """Knowledge of the shares of the classes before any prediction.

    Args:
        centre: Shares of the classes among the labels, C.
        observed: How many nodes that were observed at random the labels count as. It is 0 if their
            numbers are a design, and infinite if they are known to be drawn at random.
    """

    centre: _Array
    observed: float

    @classmethod
    def of_labels(cls, counts: Indices, design: str) -> SharePrior:
        """The prior of these numbers of labels by class; a class without labels has no share.

        Args:
            counts: Number of labels of each class, C.
            design: "balanced" by design, "as drawn" at random, or "guess": equal numbers are taken
                for a design, and others for a bit of evidence.
        """
        present = np.maximum(counts, NO_LABEL)
        balanced = design == "balanced" or (design == "guess" and look_balanced(counts))
        doubtful = 0.0 if balanced else DOUBTFUL * float(counts.sum())
        return cls(present / present.sum(), np.inf if design == "as drawn" else doubtful)


def look_balanced(counts: Indices) -> bool:
    """Whether numbers of labels by class are so even that somebody made them so.

    More than half of the classes that have labels must share the largest number. A random draw is
    seldom that even: of 6 labels of two classes, one in seven compositions is 3 and 3.

    >>> look_balanced(np.array([3, 3])), look_balanced(np.array([20, 11, 14]))
    (True, False)
    """
    present = counts[counts > 0]
    return bool(present.max(initial=0) > 1 and (present == present.max()).mean() > 0.5)


def class_shares(held_out: _Array, labels: Indices, predicted: _Array, prior: SharePrior) -> _Array:
    """Estimate the shares of the classes, C numbers with the sum 1.

    Args:
        held_out: Probabilities of labelled nodes by models that did not see their labels, n × C;
            perhaps none.
        labels: Their classes, n.
        predicted: Probabilities of the other nodes, N × C.
        prior: What the labels say.
    """
    shares = prior.centre
    if np.isinf(prior.observed) or not labels.size:
        return shares
    means, within, counts = _confusions(held_out, labels)
    floor, target = _floor(counts), predicted.mean(axis=0)
    pseudo = (EVENNESS + prior.observed) * prior.centre
    for _ in range(SHARE_ROUNDS):
        error = within * (shares**2 / np.maximum(counts, 1)).sum() + floor
        precision = np.linalg.inv(error)

        def loss(logits: _Array, precision: _Array = precision) -> tuple[float, _Array]:
            q = softmax(logits)
            residual = means @ q - target
            pull = precision @ residual
            value = residual @ pull / 2 - pseudo @ np.log(q)
            gradient = means.T @ pull - pseudo / q
            return float(value), q * (gradient - gradient @ q)

        result = minimize(loss, np.log(shares), jac=True, method="L-BFGS-B")
        shares = softmax(result.x)
    return shares


def share_covariance(
    held_out: _Array, labels: Indices, shares: _Array, prior: SharePrior
) -> _Array:
    """Covariance of the estimated shares, C × C; see `class_shares` for the arguments."""
    if np.isinf(prior.observed) or not labels.size:
        return np.zeros((shares.size, shares.size))
    means, within, counts = _confusions(held_out, labels)
    error = within * (shares**2 / np.maximum(counts, 1)).sum() + _floor(counts)
    curvature = means.T @ np.linalg.solve(error, means)
    pseudo = (CAUTION + prior.observed) * prior.centre
    curvature += np.diag(pseudo / np.maximum(shares, 1e-12) ** 2)
    # Shares add up to 1, so they vary only in directions whose sum is 0.
    directions = null_space(np.ones((1, len(shares))))
    inner = np.linalg.inv(directions.T @ curvature @ directions)
    return np.asarray(directions @ inner @ directions.T)


def accuracy_variance(
    plain: _Array, final: _Array, labels: Indices, shares: _Array, prior: SharePrior
) -> float:
    """Variance of the accuracy Σ_c q_c r_c that is due to the estimated shares q.

    Args:
        plain: Probabilities from which the shares were estimated, n × C.
        final: Probabilities after their correction by the shares, n × C; r are their recalls.
        labels: True classes, n.
        shares: Estimated shares.
        prior: What the labels say of them.
    """
    if not labels.size:
        return 0.0
    right = final.argmax(axis=1) == labels
    counts = np.bincount(labels, minlength=shares.size)
    hits = np.bincount(labels, right, minlength=shares.size)
    recalls = np.where(counts > 0, hits / np.maximum(counts, 1), right.mean())
    return float(recalls @ share_covariance(plain, labels, shares, prior) @ recalls)


def _confusions(held_out: _Array, labels: Indices) -> tuple[_Array, _Array, Indices]:
    """Mean prediction of each class (M, C × C), covariance within classes, labels by class."""
    classes = held_out.shape[1]
    counts = np.bincount(labels, minlength=classes)
    seen = counts > 0
    totals = np.zeros((classes, classes))
    np.add.at(totals, labels, held_out)
    means = np.where(seen[:, None], totals / np.maximum(counts, 1)[:, None], 1 / classes).T
    residuals = held_out - means[:, labels].T
    within = residuals.T @ residuals / max(len(labels) - int(seen.sum()), 1)
    return means, within, counts


def _floor(counts: Indices) -> _Array:
    """Covariance of the systematic error of M."""
    classes = len(counts)
    variance = float((BIAS * (counts > 0).sum() / counts.sum()) ** 2 / classes)
    return variance * np.eye(classes)


def fitted_power(
    held_out: _Array,
    labels: Indices,
    importance: _Array,
    ratio: _Array,
) -> _Array:
    """Factors of the classes: `ratio` to the power from 0 to 1 that is best for held-out labels.

    Heads differ in whether they predict a class as often as it has labels (trees do, class means do
    not), so how far a correction must go is not known beforehand. With few labels it hardly goes.
    """
    if not labels.size:
        return np.ones_like(ratio)
    rows = np.arange(len(labels))

    def loss(power: float) -> float:
        of_true_class = reweighted(held_out, ratio**power)[rows, labels]
        likelihood = float((importance * np.log(of_true_class)).sum())
        return POWER_STRENGTH * power**2 / 2 - likelihood

    return np.asarray(ratio ** minimize_scalar(loss, bounds=(0, 1), method="bounded").x)


def reweighted(probabilities: _Array, ratio: _Array) -> _Array:
    """Multiply the probabilities of each class by its factor, so that rows add up to 1 again."""
    result: _Array = softmax(np.log(np.maximum(probabilities, 1e-300) * ratio), axis=1)
    return result
