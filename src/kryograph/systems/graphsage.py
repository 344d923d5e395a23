r"""GraphSAGE: features of a node beside the mean of its neighbours' features.

.. math:: h_i' = f\Big(h_i V + \text{mean}_{j \in N(i)}(h_j) W + b\Big)

f is a ReLU whose result is scaled to unit length; the logits come without f. With a root weight V
this is PyTorch Geometric's SAGEConv; LanczosNet's comparison has none, and counts i among its own
neighbours. Means are taken over whole neighbourhoods, not over samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from kryograph.graph import Graph
from kryograph.nn.functional import Diffusion, Layer, NodeFeatures, unit_relu
from kryograph.nn.network import Network, Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import KipfSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


class SAGEConv(Layer):
    r"""One layer, :math:`X V + L X W + b`, where L takes a mean.

    The weight is W, or W and V side by side if there is a `root_weight` V.
    """

    def __init__(self, in_channels: int, out_channels: int, *, root_weight: bool = True) -> None:
        super().__init__(in_channels, out_channels, columns=1 + root_weight)

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        neighbours, *own = torch.split(x @ self.weight, self.out_channels, dim=1)
        return self.plus_bias(sum(own, start=L @ neighbours.contiguous()))


@dataclass(frozen=True)
class GraphSAGESettings(KipfSettings):
    """Settings of GraphSAGE, both variants."""

    dropout: float = inherited(
        KipfSettings, "dropout", 0.5, "rate, on every layer's input; none in the original"
    )
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
class GraphSAGESystem(NetworkSystem[GraphSAGESettings]):
    """A stack of `SAGEConv` layers; the mean is part of the method, so no operator is chosen."""

    uses_operator = False

    def network(self, features: int, classes: int) -> Network:
        return Stack(
            partial(SAGEConv, root_weight=self.settings.root_weight),
            *self.sizes(features, classes),
            activation=unit_relu if self.settings.normalise else "relu",
            dropout=self.settings.dropout,
        )

    def diffusion(self, graph: Graph) -> Operator:
        return operator(graph, "neighbour-mean" if self.settings.root_weight else "rw")
