"""Deep networks of analytic filters g_l(L), the general form that the paper derives (eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from kryograph.nn.deep_krylov import (
    DIFFUSION,
    IDENTITY,
    LEARN,
    DeepKrylov,
    PolynomialFilter,
    exponential,
    geometric,
)
from kryograph.nn.functional import ACTIVATIONS
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.gcn import GCNSettings
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

DEEP_KRYLOV_FILTERS = ("identity", "diffusion", "exponential", "geometric")


@dataclass(frozen=True)
class DeepKrylovSettings(NetworkSettings):
    """Settings of the general form; the paper has none for it."""

    dropout: float = inherited(GCNSettings, "dropout", 0.5)
    lr: float = inherited(NetworkSettings, "lr", 0.01, "learning rate (GCN's)")
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 2e-3)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    filter: str = setting(
        "identity",
        "g of hidden layers (Klicpera et al. 2019)",
        choices=DEEP_KRYLOV_FILTERS,
        search=DEEP_KRYLOV_FILTERS,
    )
    output_filter: str = setting(
        "geometric",
        "g of the output (Klicpera et al. 2019)",
        choices=DEEP_KRYLOV_FILTERS,
        search=DEEP_KRYLOV_FILTERS,
    )
    order: int = setting(
        11,
        "number m of powers 1, L, …, L^{m-1} (Klicpera et al. 2019)",
        low=1,
        below=150,
        search=SearchRange(2, 30),
    )
    reach: float = setting(
        9.0,
        "mean number of diffusions of a geometric or exponential g (Klicpera et al. 2019)",
        low=0,
        below=100,
        search=SearchRange(0.5, 20, log=True),
    )
    learn: str = setting(
        "nothing", "what of each g is learned, its weight aside", choices=LEARN, search=LEARN
    )
    activation: str = setting(
        "relu", "f (GCN's)", choices=tuple(ACTIVATIONS), search=("relu", "tanh", "identity")
    )


@register(
    "deep-krylov",
    summary="Layers of analytic filters g(L), of which MLP, GCN and ChebNet are special cases.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = f(g_l(L) H_l W_l + b_l), logits = g_n(L) H_n W_n + b_n",
    settings=DeepKrylovSettings,
)
class DeepKrylovSystem(NetworkSystem):
    """One filter for all hidden layers, one for the output."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        filters = [self._filter(s.filter)] * s.layers + [self._filter(s.output_filter)]
        return DeepKrylov(
            *(features, s.hidden, classes, filters), activation=s.activation, dropout=s.dropout
        )

    def _filter(self, name: str) -> PolynomialFilter:
        s = self.settings
        if name == "geometric":
            return geometric(s.order, s.reach, s.learn)
        if name == "exponential":
            return exponential(s.order, s.reach, s.learn)
        return {"identity": IDENTITY, "diffusion": DIFFUSION}[name]
