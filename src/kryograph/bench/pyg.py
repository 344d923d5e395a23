"""The networks of the benchmarks as a user of PyTorch Geometric writes them.

They have its layers and torch's dropout, on dense features: `SIGN` and an MLP for truncated Krylov,
`GCNConv` on concatenated features for Snowball, and two `GCNConv` or `GATConv` layers, as in its
examples, for GCN and GAT. Given the same weights, the logits of all but GAT are those of
kryograph's networks with the operator `sym`; the tests show it.

The builders take the number of features, the number of classes, and the settings of the system.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, Sequential
from torch_geometric.transforms import SIGN, AddSelfLoops, Compose


def sign_blocks(data: Data, order: int) -> Tensor:
    """Compute [X, LX, …, L^{order-1} X] by `SIGN`, as one dense matrix.

    `SIGN` normalises the adjacency to D^{-1/2} A D^{-1/2} and adds no self-loops. With
    `AddSelfLoops` before it, L is the paper's operator.
    """
    with warnings.catch_warnings():
        # SIGN makes a sparse tensor: torch announces that these are in beta and not checked.
        warnings.filterwarnings("ignore", message="Sparse (CS[CR] tensor|invariant)")
        data = Compose([AddSelfLoops(), SIGN(order - 1)])(data)
    return torch.cat([data.x, *(data[f"x{k}"] for k in range(1, order))], dim=1)


def sign_mlp(features: int, classes: int, settings: Any) -> nn.Module:
    """Truncated Krylov with one hidden layer: an MLP on the `features` columns of the blocks."""
    if settings.layers != 1:
        raise ValueError(f"SIGN is a network of one hidden layer, not {settings.layers}")
    return nn.Sequential(
        nn.Linear(features, settings.hidden),
        nn.Tanh(),
        nn.Dropout(settings.dropout),
        nn.Linear(settings.hidden, classes),
    )


class GCNSnowball(nn.Module):
    """Snowball: `GCNConv` layers, each on the features and the outputs of all layers before it."""

    def __init__(
        self, features: int, classes: int, settings: Any, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        widths = [features + k * settings.hidden for k in range(settings.layers + 1)]
        outputs = [settings.hidden] * settings.layers + [classes]
        self.convs = nn.ModuleList(
            GCNConv(width, out, cached=True) for width, out in zip(widths, outputs, strict=True)
        )
        self.activation, self.dropout = activation or nn.Tanh(), settings.dropout

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Compute the logits of every node."""
        *hidden, last = self.convs
        blocks = [x]
        for conv in hidden:
            h = self.activation(conv(torch.cat(blocks, dim=1), edge_index, edge_weight))
            blocks.append(dropout(h, self.dropout, self.training))
        logits: Tensor = last(torch.cat(blocks, dim=1), edge_index, edge_weight)
        return logits


def _gcn(features: int, classes: int, settings: Any) -> nn.Module:
    first = GCNConv(features, settings.hidden, cached=True)
    second = GCNConv(settings.hidden, classes, cached=True)
    return _two_layers(first, nn.ReLU(), second, settings.dropout)


def _gat(features: int, classes: int, settings: Any) -> nn.Module:
    hidden, heads, rate = settings.hidden, settings.heads, settings.attention_dropout
    first = GATConv(features, hidden, heads=heads, dropout=rate)
    second = GATConv(heads * hidden, classes, heads=1, concat=False, dropout=rate)
    return _two_layers(first, nn.ELU(), second, settings.dropout)


def _two_layers(
    first: nn.Module, activation: nn.Module, second: nn.Module, rate: float
) -> nn.Module:
    """Two layers with dropout on the input of each; the examples use no weights of edges."""
    network: nn.Module = Sequential(
        "x, edge_index, edge_weight",
        [
            (nn.Dropout(rate), "x -> x"),
            (first, "x, edge_index -> x"),
            (nn.Sequential(activation, nn.Dropout(rate)), "x -> x"),
            (second, "x, edge_index -> x"),
        ],
    )
    return network


PYG_NETWORKS: dict[str, Callable[[int, int, Any], nn.Module]] = {
    "truncated-krylov": sign_mlp,
    "snowball": GCNSnowball,
    "linear-snowball": partial(GCNSnowball, activation=nn.Identity()),
    "gcn": _gcn,
    "gat": _gat,
}
"""Builders of the networks, by the name of the system with the same network."""
