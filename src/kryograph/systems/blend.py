"""Blend: mean of the probabilities of several systems; ours, for few labels.

p = mean_m p_m^{1/T_m} / Σ_c p_m^{1/T_m}, where p_m are the probabilities of member m and T_m is the
temperature at which its highest probabilities have the mean 0.7 over all nodes. Few labels cannot
tell which system is best, but a mean of two that err differently is seldom worse than either. The
temperatures are needed because systems differ in their confidence.

A system may be a member several times, each time with another seed: with much dropout the weights
of a single epoch are noisy, and the mean of a few fits is less so. If all members are the same
system, their confidence is equal already, and all temperatures are 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from torch import Tensor, float64, tensor

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError
from kryograph.graph import Graph, Task
from kryograph.stats import tempered
from kryograph.systems.base import (
    Embedding,
    Fit,
    Probabilities,
    System,
    Weights,
    member_systems,
    register,
)
from kryograph.systems.settings import Settings, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

CONFIDENCE = 0.7
"""Mean of the highest probabilities of each member."""

COLDEST, HOTTEST = math.exp(-4), math.exp(4)
"""Limits of the temperatures."""

SEED_STEP = 1_000_003
"""Difference of the seeds of equal members, so that blends with seeds 0, 1, … share none."""


@dataclass(frozen=True)
class BlendSettings(Settings):
    """Settings of a blend: its members."""

    members: str = setting(
        "prototypes:rounds=5 + truncated-krylov",
        "the systems, as NAME:SETTING=VALUE,… + NAME; chosen on validation nodes",
        search=(
            "prototypes:rounds=5 + truncated-krylov",
            "prototypes + truncated-krylov",
            "prototypes:rounds=5 + linear-snowball",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.systems("sym")

    def systems(self, operator: str) -> list[System]:
        """Build the members with this operator."""
        members = member_systems(self.members, operator)
        if any(member.name == BlendSystem.name for member in members):
            raise UsageError("A blend cannot be a member of a blend.")
        return members


@register(
    "blend",
    summary="The mean of several systems' probabilities, each made equally sure.",
    paper="kryograph, 2026",
    equation="p = mean_m p_m^{1/T_m} / Σ_c p_m^{1/T_m}, "
    "T_m such that mean_i max_c = 0.7; 1 if all are one system",
    settings=BlendSettings,
)
class BlendSystem(System[BlendSettings]):
    """Blend of refined prototypes and truncated Krylov, unless other members are named."""

    component_wise = False  # the temperatures depend on all nodes

    @cached_property
    def members(self) -> list[System]:
        """Systems whose probabilities are averaged; the weights of member k begin with "k."."""
        return self.settings.systems(self.operator)

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        """Fit every member; `on_epoch` is not called, since epochs belong to single members."""
        total = np.zeros((task.graph.n, len(task.classes)))
        weights: dict[str, Tensor] = {}
        epochs, members = 0, self.members
        equal = len(members) > 1 and all(member == members[0] for member in members)
        for k, member in enumerate(members):
            own_seed = seed + SEED_STEP * members[:k].count(member)
            fit = member.fit(task, seed=own_seed, conditions=conditions)
            temperature = 1.0 if equal else even_temperature(fit.predict_proba())
            total += tempered(fit.predict_proba(), temperature)
            weights |= {f"{k}.{name}": value for name, value in fit.weights.items()}
            weights[f"{k}.temperature"] = tensor(temperature, dtype=float64)
            epochs += fit.epochs
        return Fit(task, total / total.sum(axis=1, keepdims=True), epochs, weights)

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        total: Estimate | None = None
        for member in self.members:
            own = member.estimate(task, conditions)
            if own is None:
                return None
            total = replace(own, weights=own.weights + (total.weights if total else 0), after=total)
        return total

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        total = np.zeros((graph.n, classes))
        for k, member in enumerate(self.members):
            own = _of_member(weights, k)
            temperature = float(own.pop("temperature"))
            total += tempered(member.apply(own, graph, classes), temperature)
        mean: Probabilities = total / total.sum(axis=1, keepdims=True)
        return mean

    @property
    def has_hidden_layer(self) -> bool:
        """Whether the last member has one; `embed` is that of the last member."""
        return self.members[-1].has_hidden_layer

    def embed(self, weights: Weights, graph: Graph, classes: int) -> Embedding:
        own = _of_member(weights, len(self.members) - 1)
        del own["temperature"]
        return self.members[-1].embed(own, graph, classes)

    @property
    def inductive(self) -> bool:
        return all(member.inductive for member in self.members)


def _of_member(weights: Weights, k: int) -> dict[str, Tensor]:
    """Weights of member k under their own names, with its temperature."""
    prefix = f"{k}."
    return {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}


def even_temperature(probabilities: Probabilities) -> float:
    """Find the temperature at which the mean of the highest probabilities is `CONFIDENCE`."""

    def excess(log_temperature: float) -> float:
        now = tempered(probabilities, math.exp(log_temperature))
        return float(now.max(axis=1).mean()) - CONFIDENCE

    low, high = math.log(COLDEST), math.log(HOTTEST)
    if excess(low) <= 0:  # equal probabilities everywhere
        return COLDEST
    if excess(high) >= 0:
        return HOTTEST
    return math.exp(brentq(excess, low, high, xtol=1e-6))
