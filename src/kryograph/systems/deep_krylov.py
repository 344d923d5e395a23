r"""Deep networks of analytic filters, the general form that the paper derives (equation 7).

.. math::
    H_0 = X, \quad H_{l+1} = f(g_l(L) H_l W_l + b_l), \quad
    \text{logits} = g_n(L) H_n W_n + b_n, \quad g_l(x) = \sum_{k<m} c_k x^k

X are the features, L is the operator, n the number of hidden layers, m the number of powers. With
g = 1 this is a multilayer perceptron, with g(x) = x a GCN. Blocks of weights instead of
coefficients, :math:`K_m(L, H) W`, contain ChebNet. Sums of powers are computed by Horner's rule
after the product with W; no power of L is formed, and sparse features stay sparse.

Luan, Zhao, Chang, Precup: Break the Ceiling. NeurIPS 2019. The paper gives no settings; the default
filters are those of Klicpera, Bojchevski, Günnemann: Predict then Propagate. ICLR 2019. One filter
serves all hidden layers, another one the output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.errors import check_known
from kryograph.nn.functional import ACTIVATIONS, Diffusion, Layer, NodeFeatures, horner
from kryograph.nn.network import Network, Stack
from kryograph.systems.base import BREAK_THE_CEILING, register
from kryograph.systems.network import KipfSettings, NetworkSystem
from kryograph.systems.settings import SearchRange, inherited, setting

LEARN = ("nothing", "coefficients", "blocks")


@dataclass(frozen=True)
class PolynomialFilter:
    """A polynomial g with coefficients c_0, c_1, …, and the part of it that is learned.

    `learn` is "nothing"; "coefficients", which start at these values; or "blocks", a weight matrix
    for each power, where only the number of coefficients matters.
    """

    coefficients: tuple[float, ...]
    learn: str = "nothing"

    def __post_init__(self) -> None:
        check_known("thing to learn", self.learn, LEARN)
        if not self.coefficients:
            raise ValueError("a filter has at least one coefficient")


IDENTITY = PolynomialFilter((1.0,))
DIFFUSION = PolynomialFilter((0.0, 1.0))


def geometric(order: int, reach: float, learn: str = "nothing") -> PolynomialFilter:
    """Series of (1 - a) / (1 - a x) up to the power order - 1; `reach` is its mean power.

    >>> geometric(3, reach=1.0).coefficients
    (0.5, 0.25, 0.125)
    """
    a = reach / (1 + reach)
    return PolynomialFilter(tuple((1 - a) * a**k for k in range(order)), learn)


def exponential(order: int, reach: float, learn: str = "nothing") -> PolynomialFilter:
    """Series of exp(reach · (x - 1)), heat after the time `reach`, up to the power order - 1."""
    series = (math.exp(-reach) * reach**k / math.factorial(k) for k in range(order))
    return PolynomialFilter(tuple(series), learn)


class FilterConv(Layer):
    r"""One layer, :math:`g(L) X W + b`, with Glorot's initialisation."""

    def __init__(
        self, in_channels: int, out_channels: int, filter: PolynomialFilter, *, bias: bool = True
    ) -> None:
        blocks = len(filter.coefficients) if filter.learn == "blocks" else 1
        super().__init__(in_channels, out_channels, rows=blocks, bias=bias)
        self.filter = filter
        learned = filter.learn == "coefficients"
        self.coefficients = nn.Parameter(torch.tensor(filter.coefficients)) if learned else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; learned coefficients get the values of the filter."""
        super().reset_parameters(generator)
        coefficients = getattr(self, "coefficients", None)  # absent while the layer is built
        if coefficients is not None:
            with torch.no_grad():
                coefficients.copy_(torch.tensor(self.filter.coefficients))

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        return self.plus_bias(horner(L, self._terms(x)))

    def _terms(self, x: NodeFeatures) -> dict[int, Tensor]:
        """B_k with g(L) X W = Σ_k L^k B_k; powers whose fixed coefficient is zero are left out."""
        if self.filter.learn == "blocks":
            blocks = torch.split(self.weight, self.in_channels)
            return {k: x @ block for k, block in enumerate(blocks)}
        z = x @ self.weight
        if self.coefficients is not None:
            return {k: c * z for k, c in enumerate(self.coefficients)}
        last = len(self.filter.coefficients) - 1
        return {k: c * z for k, c in enumerate(self.filter.coefficients) if c or k == last}


class DeepKrylov(Stack):
    """A stack of layers with one filter each; g_n, the last one, is that of the output layer.

    Widths and options are those of `Stack`.

    >>> network = DeepKrylov(2, 4, 3, [IDENTITY, geometric(10, reach=9.0)])
    >>> network(torch.ones(5, 2), torch.tensor([[0, 1, 2], [1, 0, 1]])).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        filters: Sequence[PolynomialFilter],
        *,
        bias: bool = True,
        **options: Any,
    ) -> None:
        remaining = iter(filters)
        super().__init__(
            lambda inward, outward: FilterConv(inward, outward, next(remaining), bias=bias),
            *(in_channels, hidden_channels, out_channels, len(filters) - 1),
            **options,
        )


DEEP_KRYLOV_FILTERS = ("identity", "diffusion", "exponential", "geometric")


@dataclass(frozen=True)
class DeepKrylovSettings(KipfSettings):
    """Settings of networks of analytic filters."""

    weight_decay: float = inherited(KipfSettings, "weight_decay", 2e-3)
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
class DeepKrylovSystem(NetworkSystem[DeepKrylovSettings]):
    """System of the network `DeepKrylov`."""

    def network(self, features: int, classes: int) -> Network:
        s = self.settings
        filters = [self._filter(s.filter)] * s.layers + [self._filter(s.output_filter)]
        options = self.options("activation", "dropout")
        return DeepKrylov(features, s.hidden, classes, filters, **options)

    def _filter(self, name: str) -> PolynomialFilter:
        s = self.settings
        if name == "geometric":
            return geometric(s.order, s.reach, s.learn)
        if name == "exponential":
            return exponential(s.order, s.reach, s.learn)
        return {"identity": IDENTITY, "diffusion": DIFFUSION}[name]
