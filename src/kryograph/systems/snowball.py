"""Snowball and linear Snowball: each layer sees X and all layers before it (section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from kryograph.engine.forward import Forward, Nodes, dropping_features
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.nn import Snowball
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.operators import Operator
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.network import MultiScaleSettings, NetworkSystem


@dataclass(frozen=True)
class LinearSnowballSettings(MultiScaleSettings):
    """Settings of linear Snowball."""


@dataclass(frozen=True)
class SnowballSettings(MultiScaleSettings):
    """Settings of Snowball."""


class _AnySnowball(NetworkSystem):
    """C = [H_0, …, H_n], p = 1."""

    activation: ClassVar[str]

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return Snowball(
            features,
            s.hidden,
            classes,
            s.layers,
            activation=self.activation,
            dropout=s.dropout,
            input_dropout=s.input_dropout,
        )

    def engine(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """On the rows that a step needs."""
        assert isinstance(network, Snowball)
        return dropping_features(SnowballForward(network, x, L, nodes, masks))


@register(
    "linear-snowball",
    summary="Densely connected graph convolutions without non-linearity.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = L [X, H_1, …, H_l] W_l + b_l, logits = L [X, H_1, …, H_n] W_C + b_C",
    settings=LinearSnowballSettings,
)
class LinearSnowballSystem(_AnySnowball):
    """f = identity."""

    activation = "identity"


@register(
    "snowball",
    summary="Densely connected graph convolutions, tanh.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = tanh(L [X, H_1, …, H_l] W_l + b_l), logits = L [X, H_1, …, H_n] W_C + b_C",
    settings=SnowballSettings,
)
class SnowballSystem(_AnySnowball):
    """f = tanh."""

    activation = "tanh"
