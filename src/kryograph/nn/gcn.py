r"""Graph convolutional networks: :math:`H_{l+1} = f(L H_l W_l + b_l)`, logits without f."""

from __future__ import annotations

from functools import partial
from typing import Any

from kryograph.nn.functional import glorot_
from kryograph.nn.snowball import SnowballConv
from kryograph.nn.stack import Stack


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
