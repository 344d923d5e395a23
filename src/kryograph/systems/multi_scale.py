"""The paper's three architectures: linear Snowball, Snowball and truncated block Krylov networks.

H_{l+1} = f(L [X, H_1, …, H_l] W_l + b_l), logits = L [X, H_1, …, H_n] W_C + b_C (section 5.1) and
H_{l+1} = tanh([H_l, L H_l, …, L^{m-1} H_l] W_l + b_l), logits = H_n W_C + b_C (section 5.2), where
H_0 = X are the features, L is the operator, n the number of hidden layers and m the order. f is
tanh or the identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from kryograph.engine.forward import Forward, InputDropped, Workload
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.explain.layers import PolynomialLayer
from kryograph.nn import KrylovConv, Network, Snowball, SnowballConv, TruncatedKrylov
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

    def polynomial_layers(self, network: Network) -> Sequence[PolynomialLayer]:
        assert isinstance(network, Snowball)
        layers: list[PolynomialLayer] = []
        widths = {0: network.output.in_channels}
        for conv in network.convs:
            assert isinstance(conv, SnowballConv)
            widths[0] = min(widths[0], conv.in_channels)
            layers.append(_snowball_layer(conv, widths, self.activation))
            widths[len(layers)] = conv.out_channels
        return [*layers, _snowball_layer(network.output, widths)]


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

    def polynomial_layers(self, network: Network) -> Sequence[PolynomialLayer]:
        assert isinstance(network, TruncatedKrylov)
        layers: list[PolynomialLayer] = []
        for conv in (network.first, *network.further):
            assert isinstance(conv, KrylovConv)
            blocks = np.split(_float64(conv.weight), conv.order)
            by_power = {len(layers): dict(enumerate(blocks))}
            layers.append(PolynomialLayer(by_power, _float64(conv.bias), "tanh"))
        if network.classifier is not None:
            widths = {len(layers): network.classifier.in_channels}
            layers.append(_snowball_layer(network.classifier, widths, "tanh"))
        widths = {len(layers): network.output.in_channels}
        return [*layers, _snowball_layer(network.output, widths)]


def _snowball_layer(
    conv: SnowballConv, widths: Mapping[int, int], activation: str = "identity"
) -> PolynomialLayer:
    """Describe a Snowball layer that reads the layers with these numbers and widths."""
    parts = np.split(_float64(conv.weight), np.cumsum([*widths.values()])[:-1])
    by_layer = {i: {conv.p: part} for i, part in zip(widths, parts, strict=True)}
    return PolynomialLayer(by_layer, _float64(conv.bias), activation)


def _float64(parameter: Tensor | None) -> npt.NDArray[np.float64]:
    assert parameter is not None  # the systems of this file have biases
    return parameter.detach().double().numpy()
