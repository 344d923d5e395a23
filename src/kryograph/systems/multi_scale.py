"""The paper's three architectures: linear Snowball, Snowball and truncated block Krylov networks.

H_{l+1} = f(L [X, H_1, …, H_l] W_l + b_l), logits = L [X, H_1, …, H_n] W_C + b_C (section 5.1) and
H_{l+1} = tanh([H_l, L H_l, …, L^{m-1} H_l] W_l + b_l), logits = H_n W_C + b_C (section 5.2), where
H_0 = X are the features, L is the operator, n the number of hidden layers and m the order. f is
tanh or the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kryograph.engine.forward import Forward, InputDropped, Workload
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.nn import Network, Snowball, TruncatedKrylov
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting


@dataclass(frozen=True)
class MultiScaleSettings(NetworkSettings):
    """Settings of the paper's three architectures."""

    input_dropout: float = setting(
        0.0,
        "rate, on the features; the paper has none",
        low=0,
        below=1,
        search=SearchRange(0, 0.9),
        neutral=0.0,
    )


class _MultiScaleSystem(NetworkSystem[MultiScaleSettings]):
    """Base of the three systems."""

    rows_only: ClassVar[type[Forward]]
    """Form that computes the rows that a step needs."""

    def fast_forward(self, load: Workload) -> Forward | None:
        rows = self.rows_only(load)
        return InputDropped(rows) if self.settings.input_dropout > 0 else rows


@register(
    "linear-snowball",
    summary="Densely connected graph convolutions without non-linearity.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = L [X, H_1, …, H_l] W_l + b_l, logits = L [X, H_1, …, H_n] W_C + b_C",
    settings=MultiScaleSettings,
)
class LinearSnowballSystem(_MultiScaleSystem):
    """Snowball with f = identity."""

    rows_only = SnowballForward
    activation: ClassVar[str] = "identity"
    """Name of f."""

    def network(self, features: int, classes: int) -> Network:
        options = self.options("dropout", "input_dropout")
        return Snowball(*self.sizes(features, classes), activation=self.activation, **options)


@register(
    "snowball",
    summary="Densely connected graph convolutions, tanh.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = tanh(L [X, H_1, …, H_l] W_l + b_l), logits = L [X, H_1, …, H_n] W_C + b_C",
    settings=MultiScaleSettings,
)
class SnowballSystem(LinearSnowballSystem):
    """Snowball with f = tanh."""

    activation = "tanh"


@dataclass(frozen=True)
class TruncatedKrylovSettings(MultiScaleSettings):
    """Settings of the truncated Krylov network."""

    dropout: float = inherited(MultiScaleSettings, "dropout", 0.97)
    lr: float = inherited(MultiScaleSettings, "lr", 0.0115)
    weight_decay: float = inherited(MultiScaleSettings, "weight_decay", 4e-4)
    order: int = setting(
        12, "number m of blocks X, LX, …", low=1, below=10_000, search=SearchRange(2, 30)
    )
    classifier: bool = setting(False, "the paper's tanh layer C before the output (D2)")


@register(
    "truncated-krylov",
    summary="Blocks X, LX, … stacked side by side in each layer, tanh.",
    paper=BREAK_THE_CEILING,
    equation="H_{l+1} = tanh([H_l, L H_l, …, L^{m-1} H_l] W_l + b_l), logits = H_n W_C + b_C",
    settings=TruncatedKrylovSettings,
)
class TruncatedKrylovSystem(_MultiScaleSystem):
    """System of the network `TruncatedKrylov` with p = 0."""

    rows_only = KrylovForward

    def network(self, features: int, classes: int) -> Network:
        options = self.options("order", "layers", "dropout", "input_dropout", "classifier")
        return TruncatedKrylov(features, self.settings.hidden, classes, **options)
