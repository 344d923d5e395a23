"""Blend: the mean of what several systems say; ours, for a handful of labels.

Which system is best cannot be told from a handful of labels, but a mean of two that err differently
is seldom worse than either. Systems differ in how sure they are, so each is first given a
temperature at which the mean of its highest probabilities over all nodes is the same.

A system may be a member several times, each time with another seed: with much dropout the weights
of a single epoch are noisy, and the mean of a few fits is less so. Members that are all the same
system are as sure as each other already, and keep their own probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import brentq

from kryograph.engine.cost import Estimate
from kryograph.errors import UsageError
from kryograph.graph import Graph, Task
from kryograph.stats import tempered
from kryograph.systems.base import Fit, Probabilities, System, Weights, register, system
from kryograph.systems.settings import Settings, read_pairs, setting
from kryograph.training.loop import Conditions, Epoch

CONFIDENCE = 0.7
"""How sure each member is on average."""

COLDEST, HOTTEST = math.exp(-4), math.exp(4)

APART = 1_000_003
"""By how much the seeds of equal members differ: blends with seeds 0, 1, … shall share none."""


@dataclass(frozen=True)
class BlendSettings(Settings):
    """Settings of a blend."""

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
        """The members."""
        made = []
        for part in self.members.split("+"):
            name, _, text = part.strip().partition(":")
            if name.strip() == BlendSystem.name:
                raise UsageError("A blend cannot be a member of a blend.")
            made.append(system(name.strip(), read_pairs(text.split(",")), operator=operator))
        return made


@register(
    "blend",
    summary="The mean of several systems' probabilities, each made equally sure.",
    paper="kryograph, 2026",
    equation="p = mean_m p_m^{1/T_m} / Σ_c p_m^{1/T_m}, "
    "T_m such that mean_i max_c = 0.7; 1 if all are one system",
    settings=BlendSettings,
)
class BlendSystem(System):
    """Refined prototypes and truncated Krylov, unless others are named."""

    component_wise = False  # the temperatures look at all nodes

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """Fit every member; epochs are the members' own, so nobody is told of them."""
        total = np.zeros((task.graph.n, len(task.classes)))
        weights: dict[str, torch.Tensor] = {}
        epochs, before = 0, list[System]()
        members = list(self._members())
        alike = len(members) > 1 and all(member == members[0][1] for _, member in members)
        for prefix, member in members:
            own = seed + APART * before.count(member)
            fit = member.fit(task, seed=own, conditions=conditions)
            before.append(member)
            temperature = 1.0 if alike else even_temperature(fit.predict_proba())
            total += tempered(fit.predict_proba(), temperature)
            weights |= {f"{prefix}{name}": value for name, value in fit.weights.items()}
            weights[f"{prefix}temperature"] = torch.tensor(temperature, dtype=torch.float64)
            epochs += fit.epochs
        return Fit(task, total / total.sum(axis=1, keepdims=True), epochs, weights)

    def estimate(self, task: Task, conditions: Conditions | None = None) -> Estimate | None:
        total: Estimate | None = None
        for _, member in self._members():
            own = member.estimate(task, conditions)
            if own is None:
                return None
            total = replace(own, weights=own.weights + (total.weights if total else 0), after=total)
        return total

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """Apply every member, with the temperature that it had."""
        total = np.zeros((graph.n, classes))
        for prefix, member in self._members():
            own = _without(weights, prefix)
            temperature = float(own.pop("temperature"))
            total += tempered(member.apply(own, graph, classes), temperature)
        mean: Probabilities = total / total.sum(axis=1, keepdims=True)
        return mean

    def embed(self, weights: Weights, graph: Graph, classes: int) -> npt.NDArray[np.float64]:
        """As the last member sees them."""
        prefix, member = list(self._members())[-1]
        own = _without(weights, prefix)
        del own["temperature"]
        return member.embed(own, graph, classes)

    @property
    def inductive(self) -> bool:
        """If every member is."""
        return all(member.inductive for _, member in self._members())

    def _members(self) -> Iterator[tuple[str, System]]:
        for k, member in enumerate(self.settings.systems(self.operator)):
            yield f"{k}.", member


def _without(weights: Weights, prefix: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}


def even_temperature(probabilities: Probabilities) -> float:
    """The temperature at which the mean of the highest probabilities is `CONFIDENCE`."""

    def excess(log_temperature: float) -> float:
        now = tempered(probabilities, math.exp(log_temperature))
        return float(now.max(axis=1).mean()) - CONFIDENCE

    low, high = math.log(COLDEST), math.log(HOTTEST)
    if excess(low) <= 0:  # undecided everywhere
        return COLDEST
    if excess(high) >= 0:
        return HOTTEST
    return math.exp(brentq(excess, low, high, xtol=1e-6))
