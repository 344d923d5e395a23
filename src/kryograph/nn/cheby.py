r"""Chebyshev networks (Defferrard, Bresson, Vandergheynst): polynomials of a Laplacian as filters.

.. math::
    H_{l+1} = f\Big(\sum_{k=0}^{K-1} T_k(M) H_l W_{l,k} + b_l\Big), \quad
    T_0 = I, \; T_1 = M, \; T_k = 2 M T_{k-1} - T_{k-2}

M is a Laplacian, moved and scaled or not; logits come without f. The sum is taken by Clenshaw's
recurrence, from the last term to the first, so that M meets matrices as wide as the output only,
and sparse features stay sparse.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.nn.functional import Diffusion, Matrix, glorot_
from kryograph.nn.stack import Stack


class ChebyConv(nn.Module):
    r"""One Chebyshev layer, :math:`\sum_k T_k(M) X W_k + b`.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        order: Number K of terms: order 1 is a linear layer.
        bias: Whether to add b.

    Shapes:
        - **input:** features (N, F) dense or sparse, and M
        - **output:** (N, out_channels)
        - **weight:** W_0, W_1, … side by side, (F, K out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        if order < 1:
            raise ValueError(f"a Chebyshev layer has 1 term or more, not {order}")
        self.in_channels, self.out_channels, self.order = in_channels, out_channels, order
        self.weight = nn.Parameter(torch.empty(in_channels, order * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew, each term's like a layer's of its own."""
        for term in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(term, self.bias, generator)

    def forward(self, x: Matrix, M: Diffusion) -> Tensor:
        """The layer's output for every node."""
        first, *rest = torch.split(x @ self.weight, self.out_channels, dim=1)
        # B_k = X W_k + 2 M B_{k+1} - B_{k+2}; the sum is X W_0 + M B_1 - B_2.
        after: Tensor | None = None
        last: Tensor | None = None
        for term in reversed(rest):
            b = term if after is None else term + 2 * (M @ after)
            last, after = after, b if last is None else b - last
        out = first if after is None else first + M @ after
        out = out if last is None else out - last
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.in_channels}, {self.out_channels}, order={self.order}"


class ChebyNet(Stack):
    """A stack of Chebyshev layers.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        order: Number of terms.
        layers: Number of hidden layers.
        bias: Whether layers have biases.
        options: Activation, dropout and operator, as for `Stack`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        order: int,
        layers: int = 1,
        *,
        bias: bool = True,
        **options: Any,
    ) -> None:
        conv = partial(ChebyConv, order=order, bias=bias)
        super().__init__(conv, in_channels, hidden_channels, out_channels, layers, **options)
