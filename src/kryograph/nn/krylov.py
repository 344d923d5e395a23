r"""Truncated block Krylov networks (the paper's section 5.2), in their literal form.

.. math::
    H_0 = X, \quad H_{l+1} = f([H_l, L H_l, \dots, L^{m-1} H_l] W_l + b_l), \quad
    C = g(H_n W_n + b_n), \quad \text{logits} = L^p C W_C + b_C

Blocks come from repeated sparse products, L(L(LH)), never from powers of L.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.krylov.power_blocks import krylov_blocks
from kryograph.nn.functional import (
    Activation,
    Diffusion,
    Masks,
    NodeFeatures,
    as_operator,
    side_by_side,
    uniform_,
)
from kryograph.nn.network import Layered
from kryograph.nn.snowball import SnowballConv


class KrylovConv(nn.Module):
    r"""One truncated block Krylov layer, :math:`[X, LX, \dots, L^{m-1}X] W + b`.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        order: Number m of blocks, X itself included: order 1 is a linear layer.
        bias: Whether to add b.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F) dense or sparse, `edge_index` (2, E) with `edge_weight` (E)
          or an `Operator` (made once, it saves every call the normalisation)
        - **output:** (N, out_channels)

    >>> conv = KrylovConv(2, 3, order=4)
    >>> conv(torch.ones(5, 2), torch.tensor([[0, 1, 2], [1, 0, 1]])).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        order: int,
        *,
        bias: bool = True,
        operator: str = "sym",
    ) -> None:
        super().__init__()
        if order < 1:
            raise ValueError(f"order must be at least 1, not {order}")
        self.in_channels, self.out_channels, self.order = in_channels, out_channels, order
        self.operator = operator
        self.weight = nn.Parameter(torch.empty(order * in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        uniform_(self.weight, self.bias, generator)

    def forward(
        self, x: NodeFeatures, edge_index: Diffusion | Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The layer's output for every node."""
        operator = as_operator(edge_index, edge_weight, x.shape[0], self.operator)
        return self.combine(krylov_blocks(operator, x, self.order))

    def weighed_first(self, x: NodeFeatures, operator: Diffusion) -> Tensor:
        """The same, as Σ L^k (X W_k) by Horner's rule: products as wide as the output."""
        blocks = self.weight.view(self.order, self.in_channels, self.out_channels)
        side = blocks.transpose(0, 1).reshape(self.in_channels, -1)
        *parts, out = torch.split(x @ side, self.out_channels, dim=1)
        for part in reversed(parts):
            out = operator @ out + part
        return out if self.bias is None else out + self.bias

    def combine(self, blocks: Iterable[Tensor]) -> Tensor:
        """The output for given blocks; all nodes, or the same rows of each block."""
        out = side_by_side(blocks, self.weight)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.in_channels}, {self.out_channels}, order={self.order}"


class TruncatedKrylov(Layered):
    r"""Krylov layers, an optional classifier C, and a linear output diffused p times.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        order: Number m of blocks in every layer.
        layers: Number n of hidden layers.
        activation: f and g.
        dropout: Rate, on the output of hidden layers only; never on C or logits.
        input_dropout: Rate, on X.
        classifier: Whether :math:`C = g(H_n W_n + b_n)` stands between (the paper) or
            :math:`C = H_n` (the authors' code); deviation D2.
        p: How often the output is diffused, 0 or 1.
        bias: Whether layers have biases.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F), graph as in `KrylovConv`
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        order: int,
        *,
        layers: int = 1,
        activation: Activation = "tanh",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        classifier: bool = False,
        p: int = 0,
        bias: bool = True,
        operator: str = "sym",
    ) -> None:
        super().__init__(activation, dropout, input_dropout)
        if layers < 1:
            raise ValueError(f"layers must be at least 1, not {layers}")
        conv = partial(KrylovConv, order=order, bias=bias, operator=operator)
        linear = partial(SnowballConv, hidden_channels, bias=bias, operator=operator)
        self.first = conv(in_channels, hidden_channels)
        self.further = nn.ModuleList(
            conv(hidden_channels, hidden_channels) for _ in range(layers - 1)
        )
        self.classifier = linear(hidden_channels, p=0) if classifier else None
        self.output = linear(out_channels, p=p)
        self.operator = operator

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for layer in (self.first, *self.further, self.classifier, self.output):
            if layer is not None:
                layer.reset_parameters(generator)

    def forward(
        self,
        x: NodeFeatures,
        edge_index: Diffusion | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        operator = as_operator(edge_index, edge_weight, x.shape[0], self.operator)
        # Nothing is kept of blocks that are another's in the next step: so the weights come first.
        first = self.first.weighed_first if self.drops_features else self.first
        h = self.hidden(first(self.entering(x, masks), operator), 0, masks)
        for layer, conv in enumerate(self.further, start=1):
            h = self.hidden(conv(h, operator), layer, masks)
        return self.head(h, operator)

    def head(self, h: Tensor, operator: Diffusion | None = None) -> Tensor:
        """Logits given H_n; without an operator if p = 0."""
        if self.classifier is not None:
            h = self.activation(self.classifier(h))
        logits: Tensor = self.output(h, operator)
        return logits
