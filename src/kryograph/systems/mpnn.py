"""MPNN: messages that depend on both ends of an edge, and gated states (Gilmer et al.)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.nn.gated import Gated
from kryograph.systems.base import register
from kryograph.systems.ggnn import GatedSettings, GatedSystem
from kryograph.systems.settings import inherited


@dataclass(frozen=True)
class MPNNSettings(GatedSettings):
    """Settings of MPNN: those of gated networks."""

    hidden: int = inherited(GatedSettings, "hidden", 32)
    dropout: float = inherited(GatedSettings, "dropout", 0.5)


@register(
    "mpnn",
    summary="States changed by a gated recurrent unit, given a message for each pair of nodes.",
    paper="Gilmer et al.: Neural Message Passing for Quantum Chemistry. ICML 2017",
    equation="h^0 = X W_in, h_i^{t+1} = GRU(Σ_j L_ij MLP(h_i^t, h_j^t), h_i^t), logits = h^T W_out",
    settings=MPNNSettings,
)
class MPNNSystem(GatedSystem):
    """Messages by an MLP with one hidden layer; there are no features of edges."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        size = (features, s.hidden, classes, s.layers)
        return Gated(*size, message="pair", **self.options())
