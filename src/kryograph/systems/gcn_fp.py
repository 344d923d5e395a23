r"""Neural fingerprints (Duvenaud and others): sums over neighbours, weights chosen by the degree.

.. math:: h_i' = f\Big(h_i V_{d(i)} + \sum_{j \in N(i)} h_j W_{d(i)} + b_{d(i)}\Big)

where d(i) is the number of i's neighbours, or a largest one that has weights. PyTorch Geometric's
MFConv is the same function of dense features.

GCN-FP: neural fingerprints, as published or with the same weights for every degree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import NodeFeatures, glorot_, unit_relu
from kryograph.nn.stack import GCN, Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


class FingerprintConv(nn.Module):
    r"""One layer with weights by degree.

    All nodes meet the weights of all degrees, in one product, and each keeps what is its own: a few
    times the work, but features stay sparse and nothing is sorted.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        max_degree: Nodes with more neighbours share the weights of this degree.

    Shapes:
        - **input:** features (N, F) dense or sparse, the operator A + I
        - **output:** (N, out_channels)
        - **weight:** W_0, W_1, … side by side, then V_0, V_1, …
    """

    def __init__(self, in_channels: int, out_channels: int, max_degree: int) -> None:
        super().__init__()
        self.out_channels, self.max_degree = out_channels, max_degree
        degrees = max_degree + 1
        self.weight = nn.Parameter(torch.empty(in_channels, 2 * degrees * out_channels))
        self.bias = nn.Parameter(torch.empty(degrees, out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for part in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(part, self.bias, generator)

    def forward(self, x: NodeFeatures, L: Operator) -> Tensor:
        """The layer's output for every node."""
        neighbours, own = (x @ self.weight).chunk(2, dim=1)
        every = L @ neighbours.contiguous() - neighbours + own
        degree = np.minimum(np.diff(L.matrix.indptr) - 1, self.max_degree)
        mine = torch.from_numpy(degree.astype(np.int64)).to(every.device)
        by_degree = every.view(L.n, self.max_degree + 1, self.out_channels)
        return by_degree[torch.arange(L.n, device=mine.device), mine] + self.bias[mine]


@dataclass(frozen=True)
class GCNFPSettings(NetworkSettings):
    """Settings of GCN-FP, both variants."""

    hidden: int = inherited(NetworkSettings, "hidden", 64)
    dropout: float = inherited(NetworkSettings, "dropout", 0.5, "rate, on every layer's input")
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    variant: str = setting(
        "lanczosnet",
        "weights by degree (the original), or the same for every node (LanczosNet's comparison, "
        "Liao and others 2019; stronger under validation)",
        choices=("original", "lanczosnet"),
    )
    max_degree: int = setting(
        5, "largest degree with weights of its own, that of the original", low=0, below=1000
    )
    normalise: bool = setting(
        True,
        "hidden outputs of unit length: sums at hubs are large (the original normalises over all "
        "nodes instead)",
        search=(True, False),
    )


@register(
    "gcn-fp",
    summary="Sums over neighbours, as in neural fingerprints of molecules.",
    paper="Duvenaud and others: Convolutional Networks on Graphs for Learning Molecular "
    "Fingerprints. NeurIPS 2015",
    equation="original: h_i' = unit(ReLU(h_i V_d(i) + Σ_j h_j W_d(i) + b_d(i))); lanczosnet: "
    "H_{l+1} = unit(ReLU((A + I) H_l W_l + b_l))",
    settings=GCNFPSettings,
)
class GCNFPSystem(NetworkSystem):
    """The sum is the method: it takes no other operator."""

    uses_operator = False

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        activation = unit_relu if s.normalise else "relu"
        sizes = (features, s.hidden, classes, s.layers)
        if s.variant == "lanczosnet":
            return GCN(*sizes, activation=activation, dropout=s.dropout)
        conv = partial(FingerprintConv, max_degree=s.max_degree)
        return Stack(conv, *sizes, activation=activation, dropout=s.dropout)

    def diffusion(self, graph: Graph) -> Operator:
        """A + I."""
        return operator(graph, "affinity")
