"""GGNN: nodes with a gated state that neighbours change (Li, Tarlow, Brockschmidt, Zemel)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.graph import Graph
from kryograph.nn.gated import Gated
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


@dataclass(frozen=True)
class GatedSettings(NetworkSettings):
    """What all networks with a gated state have; defaults are GCN's where it has them."""

    layers: int = inherited(NetworkSettings, "layers", 2, "number T of steps")
    hidden: int = inherited(NetworkSettings, "hidden", 64, "size of a node's state")
    dropout: float = inherited(
        NetworkSettings, "dropout", 0.5, "rate, on the features and on the last state (GCN's)"
    )
    lr: float = inherited(NetworkSettings, "lr", 0.01, "learning rate (GCN's)")
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")


@dataclass(frozen=True)
class GGNNSettings(GatedSettings):
    """Settings of GGNN."""

    message: str = setting(
        "linear",
        "'linear' (the original) or 'mlp' (Liao et al. 2019)",
        choices=("linear", "mlp"),
        search=("linear", "mlp"),
    )
    aggregate: str = setting(
        "operator",
        "'operator': by L, with 'rw' a mean incl. the node itself (Liao et al. 2019); "
        "'sum': over neighbours (the original)",
        choices=("operator", "sum"),
        search=("operator", "sum"),
    )


@register(
    "ggnn",
    summary="States changed by a gated recurrent unit, given what the neighbours send.",
    paper="Li, Tarlow, Brockschmidt, Zemel: Gated Graph Sequence Neural Networks. ICLR 2016",
    equation="h^0 = X W_in, h^{t+1} = GRU(L MSG(h^t), h^t), logits = h^T W_out",
    settings=GGNNSettings,
)
class GGNNSystem(NetworkSystem):
    """One type of edge, T steps with the same weights."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return Gated(*(features, s.hidden, classes, s.layers), message=s.message, dropout=s.dropout)

    def diffusion(self, graph: Graph) -> Operator:
        """L, or the adjacency itself."""
        if self.settings.aggregate == "sum":
            return Operator("adjacency", graph.adjacency, symmetric=True)
        return super().diffusion(graph)
