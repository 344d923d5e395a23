r"""GAT: graph attention, where every node computes the weights of its neighbours.

.. math::
    e_{ij} = \text{LeakyReLU}(a^T [W h_i \,\|\, W h_j]), \quad
    \alpha_{ij} = \text{softmax}_{j \in N(i) \cup \{i\}}(e_{ij}), \quad
    h_i' = f\Big(\sum_j \alpha_{ij} W h_j + b\Big)

Hidden layers have several heads side by side; the last layer takes their mean and has no f. Only
the sparsity pattern of the operator matters. PyTorch Geometric's GATConv is the same function of
dense features.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Activation, Masks, NodeFeatures, check_rate, dropout, glorot_
from kryograph.nn.network import Network, Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import KipfSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

NEGATIVE_SLOPE = 0.2
"""Slope of LeakyReLU below zero."""


class GATConv(nn.Module):
    r"""One layer of graph attention.

    With `concat` heads stand side by side; otherwise their mean is taken. Dropout on the attention
    α has the `rate`, dropout on W h the `projected_rate`; `first_mask` numbers the first of the two
    dropout masks.

    Shapes:
        - **input:** features (N, F) dense or sparse, an `Operator` whose entry (i, j) says that i
          attends to j
        - **output:** (N, heads · out_channels), or (N, out_channels) if not `concat`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int,
        *,
        concat: bool = True,
        rate: float = 0.0,
        projected_rate: float = 0.0,
        first_mask: int = 0,
    ) -> None:
        super().__init__()
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.rate, self.projected_rate = check_rate(rate), check_rate(projected_rate)
        self.first_mask = first_mask
        self.weight = nn.Parameter(torch.empty(in_channels, heads * out_channels))
        self.source = nn.Parameter(torch.empty(heads, out_channels))
        self.target = nn.Parameter(torch.empty(heads, out_channels))
        self.bias = nn.Parameter(torch.empty(heads * out_channels if concat else out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; None draws from torch's generator."""
        glorot_(self.weight, self.bias, generator)
        glorot_(self.source, None, generator)
        glorot_(self.target, None, generator)

    def forward(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        senders, receivers = L.edge_index(self.weight.device)
        flat = x @ self.weight
        h = flat.view(-1, self.heads, self.out_channels)
        sent, received = ((h * a).sum(dim=2) for a in (self.source, self.target))
        alpha = attention(sent, received, senders, receivers)
        if self.training:
            alpha = dropout(alpha, self.rate, masks, self.first_mask)
            h = dropout(flat, self.projected_rate, masks, self.first_mask + 1).view_as(h)
        messages = alpha[:, :, None] * h.index_select(0, senders)
        out = torch.zeros_like(h).index_add(0, receivers, messages)
        return (out.flatten(1) if self.concat else out.mean(dim=1)) + self.bias


def attention(sent: Tensor, received: Tensor, senders: Tensor, receivers: Tensor) -> Tensor:
    """Compute α of every edge and head from what both ends add to its score, N × heads each."""
    score = sent.index_select(0, senders) + received.index_select(0, receivers)
    score = nn.functional.leaky_relu(score, NEGATIVE_SLOPE)
    with torch.no_grad():
        # The largest score is subtracted against overflow; the quotient does not depend on it.
        indices = receivers[:, None].expand_as(score)
        largest = torch.zeros_like(sent).scatter_reduce(
            0, indices, score, "amax", include_self=False
        )
    share = (score - largest.index_select(0, receivers)).exp()
    total = torch.zeros_like(sent).index_add(0, receivers, share)
    return share / total.index_select(0, receivers)


class GAT(Stack):
    """A stack of graph attention layers; arguments not explained here are those of `Stack`.

    Each head of a hidden layer is `hidden_channels` wide; the mean of the `output_heads` of the
    last layer is taken. With `drop_projected` W h has dropout as well, at the rate of the inputs.
    """

    masks_per_layer = 3

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 1,
        *,
        heads: int = 8,
        output_heads: int = 1,
        activation: Activation = "elu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        drop_projected: bool = False,
    ) -> None:
        numbers = count()

        def conv(inward: int, outward: int) -> GATConv:
            layer = next(numbers)
            hidden = layer < layers
            return GATConv(
                inward,
                hidden_channels if hidden else outward,
                heads if hidden else output_heads,
                concat=hidden,
                rate=attention_dropout,
                projected_rate=dropout if drop_projected else 0.0,
                first_mask=self.masks_per_layer * layer + 1,
            )

        super().__init__(
            *(conv, in_channels, heads * hidden_channels, out_channels, layers),
            activation=activation,
            dropout=dropout,
            operator="affinity",
        )

    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        return self.through_layers(x, masks, L, masks)


@dataclass(frozen=True)
class GATSettings(KipfSettings):
    """Settings of GAT: those of the original."""

    hidden: int = inherited(
        KipfSettings, "hidden", 8, "width of each head in hidden layers, as in the original"
    )
    dropout: float = inherited(KipfSettings, "dropout", 0.6)
    lr: float = inherited(KipfSettings, "lr", 0.005)
    heads: int = setting(
        8, "heads of each hidden layer, as in the original", low=1, below=1000, search=(1, 4, 8)
    )
    output_heads: int = setting(
        1, "heads of the last layer; 8 for PubMed in the original", low=1, below=1000, search=(1, 8)
    )
    attention_dropout: float = setting(
        0.6,
        "rate, on the attention, as in the original",
        low=0,
        below=1,
        search=SearchRange(0, 0.9),
    )
    drop_projected: bool = setting(
        True, "dropout on W h too, as in the authors' code; PyTorch Geometric has none"
    )


@register(
    "gat",
    summary="Attention over neighbours, several heads, ELU.",
    paper="Veličković, Cucurull, Casanova, Romero, Liò, Bengio: Graph Attention Networks. "
    "ICLR 2018",
    equation="h_i' = ELU(Σ_j α_ij W h_j + b), α_ij = softmax_j LeakyReLU(a^T [W h_i, W h_j])",
    settings=GATSettings,
)
class GATSystem(NetworkSystem[GATSettings]):
    """System of the network `GAT`; it needs the edges of the graph and no operator."""

    uses_operator = False

    def network(self, features: int, classes: int) -> Network:
        names = ("heads", "output_heads", "dropout", "attention_dropout", "drop_projected")
        return GAT(*self.sizes(features, classes), **self.options(*names))

    def diffusion(self, graph: Graph) -> Operator:
        return operator(graph, "affinity")
