r"""Graph attention networks (Veličković and others): each node weighs its neighbours itself.

.. math::
    e_{ij} = \text{LeakyReLU}(a^T [W h_i \,\|\, W h_j]), \quad
    \alpha_{ij} = \text{softmax}_{j \in N(i) \cup \{i\}}(e_{ij}), \quad
    h_i' = f\Big(\sum_j \alpha_{ij} W h_j + b\Big)

with several heads side by side in hidden layers, their mean in the last. Of the operator only the
places of its entries are used. PyTorch Geometric's GATConv is the same function of dense features.

GAT: attention to neighbours instead of fixed weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Activation, Masks, NodeFeatures, check_rate, dropout, glorot_
from kryograph.nn.network import Layered
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

SLOPE = 0.2
"""Of LeakyReLU below zero."""


class GATConv(nn.Module):
    r"""One layer of graph attention.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each head's output.
        heads: How many.
        concat: Heads side by side, or their mean.
        rate: Dropout on the attention α.
        projected_rate: Dropout on W h.
        first_mask: The number of the layer's first mask; it takes two.

    Shapes:
        - **input:** features (N, F) dense or sparse, an `Operator` whose entry (i, j) says that i
          sees j
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
        """Draw the weights anew."""
        glorot_(self.weight, self.bias, generator)
        glorot_(self.source, None, generator)
        glorot_(self.target, None, generator)

    def forward(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        """The layer's output for every node; in training, dropout asks `masks` what to keep."""
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
    """α of every edge and head, given what sender and receiver add to its score."""
    score = nn.functional.leaky_relu(
        sent.index_select(0, senders) + received.index_select(0, receivers), SLOPE
    )
    with torch.no_grad():
        # Against overflow; the quotient does not depend on it.
        places = receivers[:, None].expand_as(score)
        largest = torch.zeros_like(sent).scatter_reduce(
            0, places, score, "amax", include_self=False
        )
    share = (score - largest.index_select(0, receivers)).exp()
    total = torch.zeros_like(sent).index_add(0, receivers, share)
    return share / total.index_select(0, receivers)


class GAT(Layered):
    """Layers of graph attention.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Size of each head's output in hidden layers.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        heads: Heads of each hidden layer.
        output_heads: Heads of the last layer, whose mean is taken.
        activation: f.
        dropout: Rate, on every layer's input, the features included.
        attention_dropout: Rate, on α.
        drop_projected: Whether to drop from W h as well, at the rate of the inputs.

    Shapes:
        - **input:** features (N, F) dense or sparse, an `Operator`
        - **output:** logits (N, out_channels)
    """

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
        super().__init__(activation, dropout)
        widths = [in_channels, *[heads * hidden_channels] * layers]
        self.convs = nn.ModuleList(
            GATConv(
                width,
                out_channels if layer == layers else hidden_channels,
                output_heads if layer == layers else heads,
                concat=layer < layers,
                rate=attention_dropout,
                projected_rate=dropout if drop_projected else 0.0,
                first_mask=3 * layer + 1,
            )
            for layer, width in enumerate(widths)
        )

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for conv in self.convs:
            conv.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, x: NodeFeatures, L: Operator, *, masks: Masks | None = None) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        masks = masks or Masks()
        h = x
        for layer, conv in enumerate(self.convs):
            if layer > 0:
                assert isinstance(h, Tensor)
                h = self.activation(h)
            h = dropout(h, self.dropout, masks, 3 * layer) if self.training else h
            h = conv(h, L, masks)
        assert isinstance(h, Tensor)
        return h


@dataclass(frozen=True)
class GATSettings(NetworkSettings):
    """Settings of GAT: those of the original."""

    hidden: int = inherited(
        NetworkSettings, "hidden", 8, "width of each head in hidden layers, as in the original"
    )
    dropout: float = inherited(NetworkSettings, "dropout", 0.6, "rate, on every layer's input")
    lr: float = inherited(NetworkSettings, "lr", 0.005)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
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
class GATSystem(NetworkSystem):
    """Who sees whom is all that attention needs of a graph."""

    uses_operator = False

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return GAT(
            features,
            s.hidden,
            classes,
            s.layers,
            heads=s.heads,
            output_heads=s.output_heads,
            dropout=s.dropout,
            attention_dropout=s.attention_dropout,
            drop_projected=s.drop_projected,
        )

    def diffusion(self, graph: Graph) -> Operator:
        """A + I, of which the places of its entries are used."""
        return operator(graph, "affinity")
