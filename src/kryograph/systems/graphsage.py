"""GraphSAGE with means over whole neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import nn

from kryograph.graph import Graph
from kryograph.nn.sage import SAGEConv, unit_relu
from kryograph.nn.stack import Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


@dataclass(frozen=True)
class GraphSAGESettings(NetworkSettings):
    """Settings of GraphSAGE, both variants."""

    hidden: int = inherited(NetworkSettings, "hidden", 64)
    dropout: float = inherited(
        NetworkSettings, "dropout", 0.5, "rate, on every layer's input; none in the original"
    )
    lr: float = inherited(NetworkSettings, "lr", 0.01, "learning rate, that of the original")
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    root_weight: bool = setting(
        False,
        "a weight for the node itself (the original), or the node among its neighbours "
        "(LanczosNet's comparison, Liao and others 2019; stronger under validation)",
        search=(True, False),
    )
    normalise: bool = setting(
        True, "hidden outputs of unit length, as in the original", search=(True, False)
    )


@register(
    "graphsage",
    summary="Means over neighbourhoods, hidden outputs of unit length.",
    paper="Hamilton, Ying, Leskovec: Inductive Representation Learning on Large Graphs. "
    "NeurIPS 2017",
    equation="h_i' = unit(ReLU(mean_j(h_j) W + b)), with h_i V in the original; logits without "
    "unit and ReLU",
    settings=GraphSAGESettings,
)
class GraphSAGESystem(NetworkSystem):
    """The mean is the method: it takes no other operator."""

    uses_operator = False

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return Stack(
            partial(SAGEConv, root_weight=s.root_weight),
            features,
            s.hidden,
            classes,
            s.layers,
            activation=unit_relu if s.normalise else "relu",
            dropout=s.dropout,
        )

    def diffusion(self, graph: Graph) -> Operator:
        """The mean over neighbours, or over them and the node."""
        return operator(graph, "neighbour-mean" if self.settings.root_weight else "rw")
