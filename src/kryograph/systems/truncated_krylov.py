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
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting
from kryograph.training.loop import Logits


@dataclass(frozen=True)
class TruncatedKrylovSettings(NetworkSettings):
    """Settings of the truncated Krylov network."""

    dropout: float = inherited(NetworkSettings, "dropout", 0.97)
    lr: float = inherited(NetworkSettings, "lr", 0.0115)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 4e-4)
    order: int = setting(12, "number m of blocks X, LX, …", low=1, below=10_000)
    classifier: bool = setting(False, "the paper's tanh layer C before the output (D2)")


@register(
    "truncated-krylov",
    summary="Blocks X, LX, … stacked side by side in each layer, tanh.",
    paper=BREAK_THE_CEILING,
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
            at = torch.searchsorted(kept, nodes)
            if not torch.equal(kept[at.clamp(max=len(kept) - 1)], nodes):
                raise ValueError("only labelled nodes are trained on or scored")
            rows = K[at]
            return lambda: network.from_blocks([rows], generator=generator)

        return of
