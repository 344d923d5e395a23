"""GAT: attention to neighbours instead of fixed weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.graph import Graph
from kryograph.nn.gat import GAT
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import Range, inherited, setting


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
        0.6, "rate, on the attention, as in the original", low=0, below=1, search=Range(0, 0.9)
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
