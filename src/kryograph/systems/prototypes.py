"""Prototypes: a closed form of our own, the bar that a network at few labels has to clear.

The blocks X, LX, …, L^K X are averaged, rows are scaled to unit length, and a node is scored by
the cosine to the mean of each class's labelled nodes. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from kryograph.graph import Task
from kryograph.nn import krylov_blocks
from kryograph.operators import operator
from kryograph.systems.base import Fit, System, register
from kryograph.systems.network import features_on_device
from kryograph.systems.settings import Range, Settings, setting
from kryograph.training.loop import Conditions, Epoch


@dataclass(frozen=True)
class PrototypesSettings(Settings):
    """Settings of the prototypes; ours."""

    hops: int = setting(
        16, "K: how often to diffuse at most", low=0, below=10_000, search=Range(0, 32)
    )
    sharpness: float = setting(
        20.0, "by which cosines are multiplied before the softmax", low=1e-6, below=1e6
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
        """Average, scale, compare."""
        device = conditions.device
        L, x = operator(task.graph, self.operator), features_on_device(task, device)
        total = torch.zeros(tuple(x.shape), device=device)
        for block in krylov_blocks(L, x, self.settings.hops + 1):
            total += block
        scaled = nn.functional.normalize(total, dim=1)
        train = torch.from_numpy(task.split.train.copy()).to(device)
        labels = torch.from_numpy(task.labels[task.split.train]).to(device)
        sums = torch.zeros(len(task.classes), x.shape[1], device=device)
        prototypes = nn.functional.normalize(sums.index_add_(0, labels, scaled[train]), dim=1)
        scores = self.settings.sharpness * (scaled @ prototypes.T).double()
        scores[:, np.bincount(labels.cpu(), minlength=len(task.classes)) == 0] = -torch.inf
        return Fit(task, scores.softmax(dim=1).cpu().numpy(), epochs=0)
