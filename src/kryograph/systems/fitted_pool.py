"""Fitted pool: members, weights and factors of a pool, read from its tensors and applied."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from kryograph.basis import Basis
from kryograph.errors import UsageError
from kryograph.explain.contributions import AdditiveForm, Values
from kryograph.stats import tempered
from kryograph.systems.base import Probabilities, System, Weights, member_text
from kryograph.systems.head import HeadSystem
from kryograph.systems.pool_explanation import ExplainedMember, PooledForm
from kryograph.training.class_shares import reweighted
from kryograph.training.pooling import Pool, logarithms


@dataclass(frozen=True, eq=False)
class FittedPool:
    """A fitted pool.

    Args:
        members: Its members and their weights.
        pool: Their temperatures and weights in the pool.
        temperature: Temperature of the pool itself.
        log_factors: Logarithms of the factors of the classes, C.
    """

    members: Sequence[tuple[System, Weights]]
    pool: Pool
    temperature: float
    log_factors: Values

    @classmethod
    def read(cls, systems: Sequence[System], weights: Weights, prefix: str) -> FittedPool:
        """Read the part of a pool whose tensors have a prefix: "pool." or "inductive."."""
        own = weights["pool.kept"].numpy().tolist()
        members = []
        for k in weights[prefix + "kept"].tolist():
            start = f"{own.index(k)}."
            mine = {n.removeprefix(start): v for n, v in weights.items() if n.startswith(start)}
            members.append((systems[k], mine))
        temperatures, values = (
            weights[prefix + name].numpy() for name in ("temperatures", "weights")
        )
        return cls(
            members,
            Pool(temperatures, values, np.zeros(len(members))),
            float(weights[prefix + "temperature"]),
            weights[prefix + "ratio"].numpy(),
        )

    def probabilities(self, basis: Basis, classes: int) -> Probabilities:
        """Compute the probabilities of all nodes of a basis, N × C."""
        logs = [logarithms(_apply(member, own, basis, classes)) for member, own in self.members]
        raw = tempered(np.exp(self.pool.logits(np.stack(logs))), self.temperature)
        return reweighted(raw, np.exp(self.log_factors))

    @property
    def not_recomputed(self) -> list[str]:
        """Members with a weight whose predictions are those of the fit on every basis."""
        return [
            member_text(member)
            for (member, _), weight in zip(self.members, self.pool.weights, strict=True)
            if weight > 0 and not member.recomputed
        ]

    def additive(self, basis: Basis, classes: int) -> PooledForm:
        """Form in which the log-odds of every node of a basis are a sum."""
        members = []
        for member, weights in self.members:
            form: AdditiveForm | None = None
            if isinstance(member, HeadSystem):
                form = member.additive_on(basis, weights)
            else:
                with suppress(UsageError):  # there is no exact form
                    form = member.additive(weights, basis.graph, classes)
            probabilities = cache(partial(_apply, member, weights, basis, classes))
            members.append(ExplainedMember(member_text(member), form, probabilities))
        n, features = basis.graph.features.shape
        return PooledForm(members, self.pool, self.temperature, self.log_factors, (n, features))


def _apply(member: System, weights: Weights, basis: Basis, classes: int) -> Probabilities:
    """Probabilities of all nodes of a basis by one member, N × C."""
    if isinstance(member, HeadSystem):
        return member.score(basis, weights, classes)
    return member.apply(weights, basis.graph, classes)
