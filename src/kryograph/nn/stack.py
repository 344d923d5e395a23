r"""Stack: layers one after the other, with an activation between and dropout on every input.

Graph convolutional networks: :math:`H_{l+1} = f(L H_l W_l + b_l)`, logits without f.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.nn.functional import (
    Activation,
    Diffusion,
    Masks,
    NodeFeatures,
    as_operator,
    dropout,
    glorot_,
)
from kryograph.nn.network import Layered
from kryograph.nn.snowball import SnowballConv


class Stack(Layered):
    r"""Hidden layers and an output layer, :math:`H_{l+1} = f(\text{layer}_l(H_l, L))`.

    Args:
        conv: Makes a layer from the widths of its input and its output; called with features or
            hidden outputs and an operator, it gives its output for every node.
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        activation: f.
        dropout: Rate, on every layer's input, the features included.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F) dense or sparse; `edge_index` (2, E) with `edge_weight` (E), or
          an `Operator`
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self,
        conv: Callable[[int, int], nn.Module],
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 1,
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        operator: str = "sym",
    ) -> None:
        super().__init__(activation, dropout)
        widths = [in_channels, *[hidden_channels] * layers, out_channels]
        self.convs = nn.ModuleList(map(conv, widths[:-1], widths[1:]))
        self.operator = operator

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for conv in self.convs:
            conv.reset_parameters(generator)  # type: ignore[operator]

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
        masks = masks or Masks()
        h = x
        for layer, conv in enumerate(self.convs):
            if layer > 0:
                assert isinstance(h, Tensor)
                h = self.activation(h)
            h = conv(dropout(h, self.dropout, masks, layer) if self.training else h, operator)
        assert isinstance(h, Tensor)
        return h


class GCN(Stack):
    """A stack of graph convolutions.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        bias: Whether layers have biases.
        options: Activation, dropout and operator, as for `Stack`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 1,
        *,
        bias: bool = True,
        **options: Any,
    ) -> None:
        # A Snowball layer of one block is a graph convolution.
        conv = partial(SnowballConv, bias=bias, initialise=glorot_)
        super().__init__(conv, in_channels, hidden_channels, out_channels, layers, **options)
