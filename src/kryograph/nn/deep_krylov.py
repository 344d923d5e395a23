r"""Deep networks of analytic filters, the paper's general form (section 4.2, equation 7).

.. math::
    H_0 = X, \quad H_{l+1} = f(g_l(L) H_l W_l + b_l), \quad
    \text{logits} = g_n(L) H_n W_n + b_n, \quad g_l(x) = \sum_{k<m} c_k x^k

With g = 1 it is a multilayer perceptron, with g(x) = x a GCN. Blocks of weights instead of
coefficients, :math:`K_m(L, H) W`, contain ChebNet. Sums of powers are computed by Horner's rule on
the narrow side of W; no power of L is ever formed, and sparse features stay sparse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.errors import unknown
from kryograph.nn.functional import Diffusion, NodeFeatures, glorot_
from kryograph.nn.stack import Stack

LEARN = ("nothing", "coefficients", "blocks")


@dataclass(frozen=True)
class PolynomialFilter:
    """A polynomial g, and what of it is learned.

    Args:
        coefficients: c_0, c_1, …, of the powers of L.
        learn: "nothing"; "coefficients", which start as given; or "blocks", a whole weight matrix
            for each power, of which the coefficients only count the number.
    """

    coefficients: tuple[float, ...]
    learn: str = "nothing"

    def __post_init__(self) -> None:
        if self.learn not in LEARN:
            raise unknown("thing to learn", self.learn, LEARN)
        if not self.coefficients:
            raise ValueError("a filter has at least one coefficient")


IDENTITY = PolynomialFilter((1.0,))
DIFFUSION = PolynomialFilter((0.0, 1.0))


def geometric(order: int, reach: float, learn: str = "nothing") -> PolynomialFilter:
    """(1 - a) / (1 - a x) up to the power order - 1, where a random walk takes `reach` steps.

    >>> geometric(3, reach=1.0).coefficients
    (0.5, 0.25, 0.125)
    """
    a = reach / (1 + reach)
    return PolynomialFilter(tuple((1 - a) * a**k for k in range(order)), learn)


def exponential(order: int, reach: float, learn: str = "nothing") -> PolynomialFilter:
    """exp(reach · (x - 1)) up to the power order - 1: heat, after that time."""
    series = (math.exp(-reach) * reach**k / math.factorial(k) for k in range(order))
    return PolynomialFilter(tuple(series), learn)


class FilterConv(nn.Module):
    r"""One layer, :math:`g(L) X W + b`.

    Args:
        in_channels: Size of each node's features.
        out_channels: Size of each node's output.
        filter: g.
        bias: Whether to add b.

    Shapes:
        - **input:** features (N, in_channels) dense or sparse, and an `Operator`
        - **output:** (N, out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, filter: PolynomialFilter, *, bias: bool = True
    ) -> None:
        super().__init__()
        self.filter, self.in_channels = filter, in_channels
        blocks = len(filter.coefficients) if filter.learn == "blocks" else 1
        self.weight = nn.Parameter(torch.empty(blocks * in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        learned = filter.learn == "coefficients"
        self.coefficients = nn.Parameter(torch.empty(len(filter.coefficients))) if learned else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew; learned coefficients start as the filter has them."""
        glorot_(self.weight, self.bias, generator)
        if self.coefficients is not None:
            with torch.no_grad():
                self.coefficients.copy_(torch.tensor(self.filter.coefficients))

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        """The layer's output for every node."""
        *lower, last = self._terms(x)
        out: Tensor = last
        for term in reversed(lower):
            # A term is None where its coefficient is zero.
            out = L @ out if term is None else term + L @ out
        return out if self.bias is None else out + self.bias

    def _terms(self, x: NodeFeatures) -> list[Any]:
        """What g(L) X W is a sum of, before the powers of L."""
        if self.filter.learn == "blocks":
            return [x @ block for block in torch.split(self.weight, self.in_channels)]
        z = x @ self.weight
        if self.coefficients is not None:
            return [c * z for c in self.coefficients]
        *lower, last = self.filter.coefficients
        return [c * z if c else None for c in lower] + [last * z]


class DeepKrylov(Stack):
    """A stack of filters, one for each layer.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        filters: g_0, …, g_n: one for each hidden layer, and the output's.
        bias: Whether layers have biases.
        options: Activation, dropout and operator, as for `Stack`.

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
