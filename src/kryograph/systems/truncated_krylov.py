"""Truncated block Krylov network: m diffusion steps stacked in one layer (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.engine.forward import Forward, Nodes, dropping_features
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.nn import TruncatedKrylov
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.network import MultiScaleSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting


@dataclass(frozen=True)
class TruncatedKrylovSettings(MultiScaleSettings):
    """Settings of the truncated Krylov network."""

    dropout: float = inherited(MultiScaleSettings, "dropout", 0.97)
    lr: float = inherited(MultiScaleSettings, "lr", 0.0115)
    weight_decay: float = inherited(MultiScaleSettings, "weight_decay", 4e-4)
    order: int = setting(
        12, "number m of blocks X, LX, …", low=1, below=10_000, search=SearchRange(2, 30)
    )
    classifier: bool = setting(False, "the paper's tanh layer C before the output (D2)")


@register(
    "truncated-krylov",
    summary="Blocks X, LX, … stacked side by side in each layer, tanh.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = tanh([H_l, L H_l, …, L^{m-1} H_l] W_l + b_l), logits = H_n W_C + b_C",
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
            input_dropout=s.input_dropout,
            classifier=s.classifier,
        )

    def engine(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """On the rows that a step needs."""
        assert isinstance(network, TruncatedKrylov)
        return dropping_features(KrylovForward(network, x, L, nodes, masks))
