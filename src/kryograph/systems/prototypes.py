"""Prototypes: a closed form of our own, the bar that a network at few labels has to clear.

The blocks X, LX, …, L^K X are averaged, rows are scaled to unit length, and a node is scored by
the cosine to the mean of each class's labelled nodes. Nothing is trained.

The mean of two or three nodes is a poor one. With `rounds`, unlabelled nodes have a say: each gives
itself to the classes by its probabilities, and a prototype becomes the mean of the labelled nodes
and of these, the latter counting as `pull` labels. With many labels that is next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from kryograph.engine.cost import Estimate, gemm_cost, memory_pass_cost, spmm_cost, temporary
from kryograph.graph import Graph, Task
from kryograph.nn import krylov_blocks
from kryograph.operators import operator
from kryograph.systems.base import Fit, Probabilities, System, Weights, register
from kryograph.systems.network import features_on_device
from kryograph.systems.settings import SearchRange, Settings, setting
from kryograph.training.loop import Conditions, Epoch

LARGEST_EXACT = 2 * 10**8
"""With more entries than this (nodes × features) the features are projected."""

PROJECTED = 512
"""To how many columns."""


@dataclass(frozen=True)
class PrototypesSettings(Settings):
    """Settings of the prototypes; ours."""

    hops: int = setting(
        16, "K: how often to diffuse at most", low=0, below=10_000, search=SearchRange(0, 32)
    )
    sharpness: float = setting(
        20.0, "by which cosines are multiplied before the softmax", low=1e-6, below=1e6
    )
    rounds: int = setting(
        0, "how often unlabelled nodes improve the means", low=0, below=10_000, search=(0, 5, 10)
    )
    pull: float = setting(
        5.0,
        "how many labels the unlabelled nodes of a class count as; by validation nodes",
        low=0,
        below=1e6,
        search=SearchRange(0.5, 20, log=True),
    )


@register(
    "prototypes",
    summary="Cosine to the classes' mean diffused features; no training.",
    paper="kryograph, 2026",
    equation="S = X + LX + … + L^K X, rows at unit length; score_c = cos(S_i, mean of class c)",
    settings=PrototypesSettings,
)
class PrototypesSystem(System):
    """A class without labelled nodes is never predicted."""

    uses_seed = False

    def _fit(
        self, task: Task, seed: int, conditions: Conditions, on_epoch: Callable[[Epoch], None]
    ) -> Fit:
        """Average, scale, add up."""
        wide = math.prod(task.graph.features.shape) > LARGEST_EXACT
        diffused = self._diffused(task.graph, conditions.device, wide)
        nodes = task.split.train
        train = torch.from_numpy(nodes.copy()).to(diffused.device)
        labels = torch.from_numpy(task.labels[nodes]).to(diffused.device)
        sums = diffused.new_zeros(len(task.classes), diffused.shape[1])
        given = normalize(sums.index_add_(0, labels, diffused[train]), dim=1)
        weights = {
            "prototypes": given,
            "labelled": labels.bincount(minlength=len(task.classes)),
        }
        for _ in range(self.settings.rounds):
            shares = torch.from_numpy(self._compared(diffused, weights)).to(diffused)
            shares[train] = 0
            taken = normalize(shares.T @ diffused, dim=1)
            counts = weights["labelled"][:, None].to(diffused)
            weights["prototypes"] = normalize(counts * given + self.settings.pull * taken, dim=1)
        return Fit(task, self._compared(diffused, weights), 0, weights)

    def estimate(self, task: Task, conditions: Conditions | None = None) -> Estimate:
        n, features = task.graph.features.shape
        width = PROJECTED if n * features > LARGEST_EXACT else features
        hop = spmm_cost(task.graph.adjacency.nnz + n, n, width) + memory_pass_cost(3 * n * width)
        means = gemm_cost(n, width, len(task.classes)) * (2 * self.settings.rounds + 1)
        once = hop * self.settings.hops + means + temporary(3 * n * width)
        return Estimate(len(task.classes) * width, once, epochs=1)

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        """Average, scale, compare."""
        wide = weights["prototypes"].shape[1] != graph.features.shape[1]
        return self._compared(self._diffused(graph, "cpu", wide), weights)

    def _diffused(self, graph: Graph, device: str, wide: bool) -> Tensor:
        """X + LX + … + L^K X, rows at unit length."""
        L, x = operator(graph, self.operator), features_on_device(graph, device)
        if wide:
            # A random projection keeps cosines, up to a few hundredths. It depends on nothing but
            # the number of features, so that every graph gets the same.
            generator = torch.Generator().manual_seed(x.shape[1])
            x = x @ torch.randn(x.shape[1], PROJECTED, generator=generator).to(device)
        total = torch.zeros(tuple(x.shape), device=device)
        for block in krylov_blocks(L, x, self.settings.hops + 1):
            total += block
        return normalize(total, dim=1)

    def _compared(self, diffused: Tensor, weights: Weights) -> Probabilities:
        scores = self.settings.sharpness * (diffused @ weights["prototypes"].T).double()
        scores[:, weights["labelled"] == 0] = -torch.inf
        probabilities: Probabilities = scores.softmax(dim=1).cpu().numpy()
        return probabilities
