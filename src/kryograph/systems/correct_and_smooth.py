"""Correct and smooth: softmax regression on the features alone, then two label propagations.

1. Z: probabilities of softmax regression on the rows of X; without features, the shares of the
   labels.
2. Correct: the errors E = Y − Z of the labelled nodes spread, E ← αLE + (1 − α)E₀. Each row of the
   result is scaled to the mean length of the known errors ("autoscale") and added to Z.
3. Smooth: labelled nodes get their labels, and the sum spreads in the same way.

L has self-loops here (the paper's has none), so that a node on its own keeps what its features say
(D33).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from kryograph.basis import Basis
from kryograph.engine.cost import Estimate
from kryograph.graph import Graph, Task
from kryograph.operators import Operator, operator
from kryograph.systems.base import Fit, Probabilities, System, Weights, register
from kryograph.systems.diffused_logistic import DiffusedLogisticSettings, DiffusedLogisticSystem
from kryograph.systems.head import STATE, closed_form_estimate
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions, OnEpoch, ignore_epoch

STEPS = 50
"""Number of steps of both propagations."""

LARGEST_SCALE = 1000.0
"""An error that would be enlarged more than this is added as it is, as in the authors' code."""


@dataclass(frozen=True)
class CorrectAndSmoothSettings(Settings):
    """Settings of correct and smooth."""

    correct: float = setting(
        0.8,
        "α of the errors: how far they spread",
        low=0.0,
        below=1.0,
        search=SearchRange(0.1, 0.98),
    )
    smooth: float = setting(
        0.8,
        "α of the predictions: how far they spread",
        low=0.0,
        below=1.0,
        search=SearchRange(0.1, 0.98),
    )
    penalty: float = setting(
        1.0,
        "λ of the softmax regression",
        low=1e-8,
        below=1e6,
        search=SearchRange(1e-3, 10, log=True),
    )


@register(
    "correct-and-smooth",
    summary="Softmax regression on the features; its errors, then its predictions, are propagated.",
    paper="Huang, He, Singh, Lim, Benson: Combining Label Propagation and Simple Models "
    "Out-performs Graph Neural Networks. ICLR 2021",
    equation="G ← αLG + (1 − α)(Z + sÊ), G₀ = Y if labelled; Ê ← αLÊ + (1 − α)(Y − Z)",
    settings=CorrectAndSmoothSettings,
)
class CorrectAndSmoothSystem(System[CorrectAndSmoothSettings]):
    """Correct and smooth; labelled nodes are known by their indices."""

    uses_seed = False
    inductive = False
    component_wise = False  # the scale of the features and of the errors is that of all nodes

    @cached_property
    def base(self) -> DiffusedLogisticSystem:
        """Softmax regression on the rows of X."""
        return DiffusedLogisticSystem(
            DiffusedLogisticSettings(representation="features", penalty=self.settings.penalty)
        )

    def fit(
        self,
        task: Task,
        *,
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        on_epoch: OnEpoch = ignore_epoch,
    ) -> Fit:
        basis, nodes, classes = Basis(task.graph), task.split.train, len(task.classes)
        labels = task.labels[nodes]
        weights = {
            "nodes": torch.from_numpy(nodes.copy()),
            "labels": torch.from_numpy(labels.copy()),
        }
        if self.base.exists(basis):
            weights |= self.base.learn(basis, nodes, labels, classes, seed)
            weights |= {STATE + name: value for name, value in basis.state.items()}
        return Fit(task, self.apply(weights, task.graph, classes), 0, weights)

    def estimate(self, task: Task, conditions: Conditions = DEFAULT_CONDITIONS) -> Estimate | None:
        return closed_form_estimate(task, hops=2 * STEPS)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        nodes, labels = weights["nodes"].numpy(), weights["labels"].numpy()
        if "weights" in weights:
            state = {k.removeprefix(STATE): v for k, v in weights.items() if k.startswith(STATE)}
            base = self.base.score(Basis(graph, state), weights, classes)
        else:
            shares = np.bincount(labels, minlength=classes) / labels.size
            base = np.tile(shares, (graph.n, 1))
        onehot = np.eye(classes)[labels]
        matrix = operator(graph, self.operator)
        start = corrected(base, nodes, onehot, matrix, self.settings.correct)
        start[nodes] = onehot
        result = spread(start, matrix, self.settings.smooth, lowest=0.0)
        total = result.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(result, total, out=base.copy(), where=total > 0))


def spread(
    start: npt.NDArray[np.float64], matrix: Operator, alpha: float, *, lowest: float = -1.0
) -> npt.NDArray[np.float64]:
    """Apply G ← αLG + (1 − α)G₀ to the N × C matrix G₀ `STEPS` times, within `lowest` and 1."""
    result = start
    for _ in range(STEPS):
        result = np.clip(alpha * (matrix @ result) + (1 - alpha) * start, lowest, 1.0)
    return result


def corrected(
    base: Probabilities,
    nodes: npt.NDArray[np.int64],
    onehot: npt.NDArray[np.float64],
    matrix: Operator,
    alpha: float,
) -> npt.NDArray[np.float64]:
    """Add the errors of the labelled nodes, spread and scaled, to the predictions, N × C."""
    errors = np.zeros_like(base)
    errors[nodes] = onehot - base[nodes]
    mean_length = abs(errors[nodes]).sum(axis=1).mean()
    near = spread(errors, matrix, alpha)
    length = abs(near).sum(axis=1, keepdims=True)
    scale = np.divide(mean_length, length, out=np.ones_like(length), where=length > 0)
    return np.asarray(base + np.where(scale > LARGEST_SCALE, 1.0, scale) * near)
