"""GCN-FP: neural fingerprints, as published or with the same weights for every degree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import nn

from kryograph.graph import Graph
from kryograph.nn.fingerprint import FingerprintConv
from kryograph.nn.gcn import GCN
from kryograph.nn.sage import unit_relu
from kryograph.nn.stack import Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


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
