"""GCN: graph convolutions with the renormalised adjacency (Kipf and Welling)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torch import nn

from kryograph.nn import GCN
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


@dataclass(frozen=True)
class GCNSettings(NetworkSettings):
    """Settings of GCN: those of the original."""

    hidden: int = inherited(NetworkSettings, "hidden", 16)
    dropout: float = inherited(NetworkSettings, "dropout", 0.5, "rate, on every layer's input")
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4, "L2")
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    decay_all: bool = setting(
        False, "L2 on all parameters (Li, Han, Wu 2018), not the first layer's alone (Kipf)"
    )
    bias: bool = setting(True, "whether layers have biases; not so in Li, Han, Wu 2018")


@register(
    "gcn",
    summary="Graph convolutions with ReLU.",
    paper="Kipf, Welling: Semi-Supervised Classification with GCNs. ICLR 2017",
    equation="H_{l+1} = ReLU(L H_l W_l + b_l), logits = L H_n W_n + b_n",
    settings=GCNSettings,
)
class GCNSystem(NetworkSystem):
    """The original has one hidden layer."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return GCN(features, s.hidden, classes, s.layers, dropout=s.dropout, bias=s.bias)

    def decayed(self, network: nn.Module) -> Collection[nn.Parameter] | None:
        """The first layer's weights, as in the original, or all."""
        assert isinstance(network, GCN)
        return None if self.settings.decay_all else [network.convs[0].weight]  # type: ignore[list-item]
