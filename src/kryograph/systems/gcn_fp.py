r"""GCN-FP: neural fingerprints, sums over neighbours with weights that depend on the degree.

.. math:: h_i' = f\Big(h_i V_{d(i)} + \sum_{j \in N(i)} h_j W_{d(i)} + b_{d(i)}\Big)

d(i) is the number of neighbours of i, at most the largest degree that has weights; f is a ReLU
whose result is scaled to unit length, and the logits come without it. PyTorch Geometric's MFConv is
the same function of dense features. LanczosNet's comparison has equal weights for all degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Layer, NodeFeatures, unit_relu
from kryograph.nn.network import GCN, Network, Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import KipfSettings, NetworkSystem
from kryograph.systems.settings import setting


class FingerprintConv(Layer):
    r"""One layer with weights by degree.

    One product multiplies all nodes by the weights of all degrees, and each node keeps the columns
    of its own degree: a few times the work, but features stay sparse and nothing is sorted. Nodes
    with more than `max_degree` neighbours share the weights of this degree.

    The operator is A + I; the weight holds W_0, W_1, … side by side, then V_0, V_1, ….
    """

    def __init__(self, in_channels: int, out_channels: int, max_degree: int) -> None:
        degrees = max_degree + 1
        super().__init__(in_channels, out_channels, columns=2 * degrees)
        self.max_degree = max_degree
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(degrees, out_channels))

    def forward(self, x: NodeFeatures, L: Operator) -> Tensor:
        neighbours, own = (x @ self.weight).chunk(2, dim=1)
        all_degrees = L @ neighbours.contiguous() - neighbours + own
        capped = np.minimum(np.diff(L.matrix.indptr) - 1, self.max_degree)
        degree = torch.from_numpy(capped.astype(np.int64)).to(all_degrees.device)
        by_degree = all_degrees.view(L.n, self.max_degree + 1, self.out_channels)
        return by_degree[torch.arange(L.n, device=degree.device), degree] + self.bias[degree]


@dataclass(frozen=True)
class GCNFPSettings(KipfSettings):
    """Settings of GCN-FP, both variants."""

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
class GCNFPSystem(NetworkSystem[GCNFPSettings]):
    """Neural fingerprints; the sum is part of the method, so no operator is chosen."""

    uses_operator = False

    def network(self, features: int, classes: int) -> Network:
        s, sizes = self.settings, self.sizes(features, classes)
        activation = unit_relu if s.normalise else "relu"
        if s.variant == "lanczosnet":
            return GCN(*sizes, activation=activation, dropout=s.dropout)
        conv = partial(FingerprintConv, max_degree=s.max_degree)
        return Stack(conv, *sizes, activation=activation, dropout=s.dropout)

    def diffusion(self, graph: Graph) -> Operator:
        return operator(graph, "affinity")
