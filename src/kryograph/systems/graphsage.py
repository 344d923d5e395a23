r"""GraphSAGE (Hamilton, Ying, Leskovec): a node's own features beside the mean of its neighbours'.

.. math:: h_i' = f\Big(h_i V + \text{mean}_{j \in N(i)}(h_j) W + b\Big)

with f a ReLU whose result is scaled to unit length. With a root weight V it is PyTorch Geometric's
SAGEConv; LanczosNet's comparison has none, and i among its own neighbours.

GraphSAGE with means over whole neighbourhoods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Diffusion, NodeFeatures, glorot_, unit_relu
from kryograph.nn.stack import Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


class SAGEConv(nn.Module):
    r"""One layer, :math:`X V + L X W + b`, where L takes a mean.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        root_weight: Whether there is a V.

    Shapes:
        - **input:** features (N, F) dense or sparse, an operator
        - **output:** (N, out_channels)
        - **weight:** W, or W and V side by side
    """

    def __init__(self, in_channels: int, out_channels: int, *, root_weight: bool = True) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(in_channels, (1 + root_weight) * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for part in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(part, self.bias, generator)

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        """The layer's output for every node."""
        neighbours, *own = torch.split(x @ self.weight, self.out_channels, dim=1)
        out = L @ neighbours.contiguous()
        return sum(own, start=out) + self.bias


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
