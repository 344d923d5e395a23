"""Truncated block Krylov network: m diffusion steps stacked in one layer (section 5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kryograph.graph import UNKNOWN, Task
from kryograph.nn import TruncatedKrylov, krylov_blocks
from kryograph.nn.functional import Matrix
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import setting
from kryograph.training.loop import Logits


@dataclass(frozen=True)
class TruncatedKrylovSettings(NetworkSettings):
    """Settings of the truncated Krylov network."""

    order: int = setting(10, "number m of blocks X, LX, …", low=1, below=10_000)
    classifier: bool = setting(False, "the paper's tanh layer C before the output (D2)")


@register(
    "truncated-krylov",
    summary="Blocks X, LX, … stacked side by side in each layer, tanh.",
    paper="Luan, Zhao, Chang, Precup: Break the Ceiling. NeurIPS 2019",
    settings=TruncatedKrylovSettings,
)
class TruncatedKrylovSystem(NetworkSystem):
    """f = g = tanh, p = 0."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return TruncatedKrylov(
            features,
            s.hidden,
            classes,
            s.order,
            layers=s.layers,
            dropout=s.dropout,
            classifier=s.classifier,
        )

    def logits(
        self, network: nn.Module, x: Matrix, L: Operator, task: Task, generator: torch.Generator
    ) -> Logits:
        """With one layer a node's logits need its own blocks only: keep those of labelled nodes."""
        assert isinstance(network, TruncatedKrylov)
        if not network.nodewise:
            return super().logits(network, x, L, task, generator)
        kept = torch.from_numpy((task.labels != UNKNOWN).nonzero()[0]).to(x.device)
        K = torch.cat([block[kept] for block in krylov_blocks(L, x, self.settings.order)], dim=1)

        def of(nodes: Tensor) -> Callable[[], Tensor]:
            rows = K[torch.searchsorted(kept, nodes)]
            return lambda: network.from_blocks([rows], generator=generator)

        return of
