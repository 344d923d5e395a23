"""A log-linear pool of several predictions, with weights learned from held-out labels.

p = softmax(Σ_m w_m log p_m), where p_m are the probabilities of member m after its temperature.
Few labels cannot tell which member is best, so the weights are shrunk towards starting weights,
and these fall with the evidence against a member.

Symbols: members m, repeats r of the folds, labelled nodes i, classes c. Held-out predictions are
arrays m × r × i × c. A node that was never held out has NaN there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp

from kryograph.graph import Indices
from kryograph.stats import tempered
from kryograph.training.folds import draw_folds

_Array = npt.NDArray[np.float64]

SMALLEST = 1e-6
"""Lower bound of a probability before its logarithm is taken."""

DOUBT = 2.0
"""A member z standard errors worse than the best one starts with exp(-2 z) of its weight."""

PRIOR_LABELS, PRIOR_VARIANCE = 10, 0.49
"""Variance of paired differences of log-losses that is assumed beforehand, and its strength."""

SHRINKAGE = 15.0
"""Factor of half the squared distance from the starting weights."""

LARGEST_WEIGHT = 3.0

POOL_TEMPERATURE, POOL_STRENGTH = 1.2, 15.0
"""Temperature of a pool beforehand, and how strongly: a pool of tempered members needs hardly any
more, and is a little too sure of other nodes, whose shares of the classes are estimated."""

CROSS_PARTS = 5
"""Parts of the labels: the pool of the others predicts each."""


@dataclass(frozen=True)
class Pool:
    """Temperatures and weights of the members of a pool.

    Args:
        temperatures: T_m of each member.
        weights: w_m of each member.
        losses: Mean log-loss of each member on labels it had not seen.
    """

    temperatures: _Array
    weights: _Array
    losses: _Array

    def logits(self, logs: _Array) -> _Array:
        """Pooled log-probabilities (… × c) of members' log-probabilities (m × … × c)."""
        tempered = log_softmax(
            logs / self.temperatures.reshape(-1, *[1] * (logs.ndim - 1)), axis=-1
        )
        result: _Array = log_softmax(np.tensordot(self.weights, tempered, axes=1), axis=-1)
        return result


def logarithms(probabilities: npt.ArrayLike) -> _Array:
    """Logarithms of probabilities, bounded from below."""
    return np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), SMALLEST))


def learn_pool(
    logs: _Array,
    labels: Indices,
    prior: Sequence[float] | _Array,
    node_weights: _Array | None = None,
) -> Pool:
    """Learn temperatures and weights from held-out predictions.

    Args:
        logs: Held-out log-probabilities, m × r × i × c, without NaN.
        labels: True classes, i.
        prior: Relative weights of the members before any evidence, m.
        node_weights: Importance of each node, with mean 1; None means that all count alike.
    """
    members = len(logs)
    importance = np.ones(len(labels)) if node_weights is None else node_weights
    temperatures = np.array([best_temperature(member, labels, importance) for member in logs])
    tempered = log_softmax(logs / temperatures[:, None, None, None], axis=-1)
    of_true = tempered[:, :, np.arange(len(labels)), labels]  # m × r × i
    losses = -(of_true * importance).mean(axis=1)  # m × i
    start = starting_weights(losses, np.asarray(prior, dtype=np.float64))
    repeats = logs.shape[1]

    def objective(w: _Array) -> tuple[float, _Array]:
        pooled = np.tensordot(w, tempered, axes=1)  # r × i × c
        normaliser = logsumexp(pooled, axis=-1)
        shares = np.exp(pooled - normaliser[..., None])
        value = ((normaliser - np.tensordot(w, of_true, axes=1)) * importance).sum() / repeats
        expected = np.einsum("mric,ric->mri", tempered, shares)
        gradient = ((expected - of_true) * importance).sum(axis=(1, 2)) / repeats
        distance = w - start
        return (
            float(value + SHRINKAGE / 2 * distance @ distance),
            gradient + SHRINKAGE * distance,
        )

    bounds = [(0.0, LARGEST_WEIGHT)] * members
    result = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return Pool(temperatures, result.x, losses.mean(axis=1))


def starting_weights(losses: _Array, prior: _Array) -> _Array:
    """Weights that fall with the evidence that another member is better; their sum is 1.

    Args:
        losses: Log-loss of each member at each labelled node, m × i.
        prior: Weights before any evidence, m.
    """
    n = losses.shape[1]
    difference = losses - losses[losses.mean(axis=1).argmin()]
    mean = difference.mean(axis=1)
    spread = ((difference - mean[:, None]) ** 2).sum(axis=1)
    error = np.sqrt((spread + PRIOR_LABELS * PRIOR_VARIANCE) / ((n + PRIOR_LABELS) * n))
    weights = prior * np.exp(-DOUBT * np.maximum(mean / error, 0))
    result: _Array = weights / weights.sum()
    return result


def best_temperature(
    logs: _Array,
    labels: Indices,
    importance: _Array,
    usual: float = 1.0,
    strength: float = 1.0,
) -> float:
    """Temperature at which the true classes are most probable; its logarithm has a normal prior.

    Args:
        logs: Log-probabilities of one member or pool, r × i × c.
        labels: True classes, i.
        importance: Importance of each node, i.
        usual: Temperature that is most probable beforehand.
        strength: Inverse variance of the prior.
    """
    nodes, repeats, centre = np.arange(len(labels)), len(logs), math.log(usual)

    def loss(log_temperature: float) -> float:
        tempered = log_softmax(logs * math.exp(-log_temperature), axis=-1)
        likelihood = (tempered[:, nodes, labels] * importance).sum() / repeats
        return float(-likelihood + strength * (log_temperature - centre) ** 2 / 2)

    return math.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)


def cross_fitted(
    logs: _Array,
    labels: Indices,
    prior: _Array,
    importance: _Array,
    seed: int,
) -> _Array:
    """_Array of each labelled node by a pool whose weights have not seen its label, n × C.

    Args:
        logs: Held-out log-probabilities of the members, m × r × n × C.
        labels: True classes, n.
        prior: What a member counts before any evidence, m.
        importance: Importance of each node, n.
        seed: Determines the parts.
    """
    result = np.zeros(logs.shape[2:])
    parts = [fold.held_out for fold in draw_folds(labels, seed, CROSS_PARTS)]
    alone = np.setdiff1d(np.arange(len(labels)), np.concatenate(parts))
    for part in [*parts, *([alone] if alone.size else [])]:
        rest = np.setdiff1d(np.arange(len(labels)), part)
        pool = learn_pool(logs[:, :, rest], labels[rest], prior, mean_one(importance[rest]))
        result[part] = np.exp(pool.logits(logs[:, :, part])).mean(axis=0)
    return result


@dataclass(frozen=True, eq=False)
class PooledMembers:
    """Result of pooling: the pool, its temperature, and calibrated probabilities."""

    pool: Pool
    temperature: float
    held_out: _Array
    """Probabilities of the held-out nodes by pools that have not seen their labels, n × C."""
    probabilities: _Array
    """Probabilities of all nodes, N × C."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Predictions of the members of a pool, and labels that were held out from them.

    Args:
        held_out: Held-out log-probabilities, m × r × n × C.
        final: Log-probabilities of all nodes, m × N × C.
        labels: True classes of the held-out nodes, n; perhaps none.
        prior: What each member counts before any evidence, m.
        importance: Importance of each held-out node, n.
        seed: Determines the parts of the labels for cross-fitting.
    """

    held_out: _Array
    final: _Array
    labels: Indices
    prior: _Array
    importance: _Array
    seed: int

    def pooled(self, kept: npt.NDArray[np.bool_]) -> PooledMembers:
        """Pool the members that `kept` marks; without labels their weights are the prior."""
        logs, final, prior = self.held_out[kept], self.final[kept], self.prior[kept]
        if not self.labels.size:
            pool = Pool(np.ones(len(prior)), prior / prior.sum(), np.zeros(len(prior)))
            nothing = np.zeros((0, final.shape[-1]))
            return PooledMembers(pool, 1.0, nothing, np.exp(pool.logits(final)))
        pool = learn_pool(logs, self.labels, prior, self.importance)
        crossed = cross_fitted(logs, self.labels, prior, self.importance, self.seed)
        t = best_temperature(
            np.log(crossed)[None], self.labels, self.importance, POOL_TEMPERATURE, POOL_STRENGTH
        )
        probabilities = tempered(np.exp(pool.logits(final)), t)
        return PooledMembers(pool, t, tempered(crossed, t), probabilities)


def mean_one(values: _Array) -> _Array:
    """Divide positive numbers by their mean."""
    return np.asarray(values / values.mean()) if values.size else values
