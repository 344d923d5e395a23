"""GPNN: gated states that change by messages inside clusters and across the cut (Liao et al.)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.graph import Graph
from kryograph.nn.partition import Partition, partitioned
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.ggnn import CHOSEN, GatedSettings, GatedSystem
from kryograph.systems.settings import Range, inherited, setting


@dataclass(frozen=True)
class GPNNSettings(GatedSettings):
    """Settings of GPNN."""

    layers: int = inherited(
        GatedSettings, "layers", 2, f"number of passes (the authors: 3 to 5); {CHOSEN}"
    )
    lr: float = inherited(GatedSettings, "lr", 0.01)
    clusters: int = setting(
        10, "number of clusters (the authors: 5 to 20)", low=1, below=100_000, search=Range(2, 50)
    )
    means: bool = setting(
        False,
        "rows of each part of L scaled to means (the authors: averages), or the parts as they are",
        search=(True, False),
    )


@register(
    "gpnn",
    summary="Gated states that travel inside clusters of the graph and across their borders.",
    paper="Liao et al.: Graph Partition Neural Networks. ICLR workshop 2018",
    equation="h ← GRU(m + L_cut m, h), m = L_in h W, L = L_in + L_cut; logits = h W_out",
    settings=GPNNSettings,
)
class GPNNSystem(GatedSystem):
    """Linear messages; clusters by flood fill."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        size = (features, s.hidden, classes, s.layers)
        return Partition(*size, clusters=s.clusters, means=s.means, **self.options())

    def diffusion(self, graph: Graph) -> Operator:
        """L in two parts: inside clusters, and between them."""
        return partitioned(
            super().diffusion(graph), self.settings.clusters, means=self.settings.means
        )
