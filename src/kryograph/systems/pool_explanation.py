"""Contributions to the log-odds of a pool: the weighted sum of those of its members.

The pool is log-linear: with weights w_m, temperatures T_m of the members and T of the pool, and
factors r of the classes,

    log p_c - log p_d = Σ_m w_m / (T_m T) (log p_mc - log p_md) + log r_c - log r_d.

A member without an exact form, such as trees, adds one number that is not divided. Where a
probability of a member is below the floor of the pool, its contributions are scaled with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from kryograph.errors import UsageError
from kryograph.explain.contributions import (
    AdditiveForm,
    Contributions,
    Values,
    added,
    floored,
)
from kryograph.graph import Indices
from kryograph.systems.base import Probabilities
from kryograph.training.pooling import SMALLEST, Pool

PROBABILITY_FLOOR = 1e-12
"""Smallest probability to which `stats.tempered` applies a temperature."""


@dataclass(frozen=True, eq=False)
class ExplainedMember:
    """A member of a fitted pool.

    Args:
        name: The system with its settings.
        form: Its exact form; None if it has none.
        probabilities: Returns its probabilities of all nodes, N × C; used if there is no form.
    """

    name: str
    form: AdditiveForm | None
    probabilities: Callable[[], Probabilities]

    def log_probabilities(self, node: int) -> Values:
        """Logarithms of the member's probabilities of a node, C."""
        if self.form is not None:
            return self.form.log_probabilities(node)
        return np.asarray(np.log(np.maximum(self.probabilities()[node], SMALLEST)))


@dataclass(frozen=True, eq=False)
class PooledForm(AdditiveForm):
    """A fitted pool on the graph of its fit.

    Args:
        members: Its members.
        pool: Their weights and temperatures.
        temperature: T.
        log_factors: log r, C.
        shape: Numbers of nodes and features of the graph.
    """

    members: Sequence[ExplainedMember]
    pool: Pool
    temperature: float
    log_factors: Values
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        if all(member.form is None for member in self.members):
            raise UsageError(
                "There is no exact explanation for this pool, none of whose members has one; "
                "--system truncated-krylov has one, and so has the default pool."
            )

    def log_probabilities(self, node: int) -> Values:
        logs = np.maximum(self._pooled(node), np.log(PROBABILITY_FLOOR))
        return np.asarray(log_softmax(logs / self.temperature + self.log_factors))

    def contributions(self, node: int, first: int, second: int) -> Contributions:
        weights = self.pool.weights / self.pool.temperatures
        parts = []
        for member, weight in zip(self.members, weights, strict=True):
            if weight > 0:
                part = self._member(member, node, first, second).scaled(weight / self.temperature)
                parts.append(replace(part, members={member.name: part.total}))
        pooled = self._pooled(node)
        # The pool's own floor acts before its temperature.
        total = floored(added(parts), pooled, first, second, PROBABILITY_FLOOR, self.temperature)
        return total.plus_intercept(float(self.log_factors[first] - self.log_factors[second]))

    def similarity(self, node: int, others: Indices) -> Values:
        total, weights = np.zeros(others.size), 0.0
        for member, weight in zip(self.members, self.pool.weights, strict=True):
            if member.form is not None and weight > 0:
                total += weight * member.form.similarity(node, others)
                weights += weight
        return total / max(weights, 1e-12)

    def _member(self, member: ExplainedMember, node: int, first: int, second: int) -> Contributions:
        logs = member.log_probabilities(node)
        if member.form is not None:
            part = member.form.contributions(node, first, second)
            return floored(part, logs, first, second, SMALLEST)
        nothing = Contributions.none(*self.shape)
        return replace(nothing, others={member.name: float(logs[first] - logs[second])})

    def _pooled(self, node: int) -> Values:
        """Pooled log-probabilities of a node before the temperature of the pool, C."""
        logs = np.stack([member.log_probabilities(node) for member in self.members])
        return self.pool.logits(np.maximum(logs, np.log(SMALLEST)))
