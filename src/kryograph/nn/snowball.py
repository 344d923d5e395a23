r"""Snowball networks (the paper's section 5.1), in their literal form.

.. math::
    H_0 = X, \quad H_{l+1} = f(L [H_0, \dots, H_l] W_l + b_l), \quad
    C = g([H_0, \dots, H_n] W_n + b_n), \quad \text{logits} = L^p C W_C + b_C

The tested networks have C = [H_0, …, H_n] and p = 1; f = tanh makes it Snowball, f = identity
linear Snowball.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.nn.functional import (
    Activation,
    Diffusion,
    Masks,
    NodeFeatures,
    as_operator,
    side_by_side,
    uniform_,
)
from kryograph.nn.functional import activation as resolve
from kryograph.nn.network import Layered


class SnowballConv(nn.Module):
    r"""One Snowball layer, :math:`L^p [H_0, H_1, \dots] W + b`: multiply, diffuse, add the bias.

    Args:
        in_channels: Size of each node's input, all blocks together.
        out_channels: Size of each node's output.
        p: How often to diffuse, 0 or 1.
        bias: Whether to add b (after the diffusion; deviation D3).
        operator: Which L to make of an `edge_index`.
        initialise: Draws weight and bias.

    Shapes:
        - **input:** features (N, in_channels), or a sequence of blocks whose widths add up to it;
          `edge_index` (2, E) with `edge_weight` (E), or an `Operator`, or nothing if p = 0
        - **output:** (N, out_channels)

    >>> conv = SnowballConv(3, 2)
    >>> conv([torch.ones(4, 1), torch.ones(4, 2)], torch.tensor([[0, 1], [1, 0]])).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        p: int = 1,
        bias: bool = True,
        operator: str = "sym",
        initialise: Callable[[Tensor, Tensor | None, torch.Generator | None], None] = uniform_,
    ) -> None:
        super().__init__()
        self.initialise = initialise
        if p not in (0, 1):
            raise ValueError(f"p must be 0 or 1, not {p}")
        self.in_channels, self.out_channels, self.p = in_channels, out_channels, p
        self.operator = operator
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        self.initialise(self.weight, self.bias, generator)

    def forward(
        self,
        x: NodeFeatures | Sequence[NodeFeatures],
        edge_index: Diffusion | Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """The layer's output for every node."""
        blocks = x if isinstance(x, Sequence) else [x]
        out = side_by_side(blocks, self.weight)
        if self.p == 1:
            out = as_operator(edge_index, edge_weight, out.shape[0], self.operator) @ out
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.in_channels}, {self.out_channels}, p={self.p}"


class Snowball(Layered):
    r"""A stack of Snowball layers, each of which sees the raw features and all before it.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number n of hidden layers.
        activation: f; "identity" makes it linear Snowball.
        classifier_activation: g, of a fully connected C.
        dropout: Rate, on the output of hidden layers only; never on C or logits.
        input_dropout: Rate, on X; all layers see the same of it.
        classifier: Width of a fully connected C, or None for C = [H_0, …, H_n].
        p: How often the output is diffused, 0 or 1.
        bias: Whether layers have biases.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F) dense or sparse, graph as in `SnowballConv`
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int,
        *,
        activation: Activation = "tanh",
        classifier_activation: Activation = "identity",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        classifier: int | None = None,
        p: int = 1,
        bias: bool = True,
        operator: str = "sym",
    ) -> None:
        super().__init__(activation, dropout, input_dropout)
        if layers < 0 or (classifier is not None and classifier < 1):
            raise ValueError(f"cannot have {layers} layers and a classifier of {classifier} units")
        conv = partial(SnowballConv, bias=bias, operator=operator)
        self.convs = nn.ModuleList(
            conv(in_channels + l * hidden_channels, hidden_channels) for l in range(layers)
        )
        width = in_channels + layers * hidden_channels
        self.classifier = conv(width, classifier, p=0) if classifier else None
        self.output = conv(classifier or width, out_channels, p=p)
        self.classifier_activation = resolve(classifier_activation)
        self.operator = operator

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for layer in (*self.convs, self.classifier, self.output):
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
        blocks: list[NodeFeatures] = [self.entering(x, masks)]
        for layer, conv in enumerate(self.convs):
            blocks.append(self.hidden(conv(blocks, operator), layer, masks))
        if self.classifier is not None:
            blocks = [self.classifier_activation(self.classifier(blocks))]
        logits: Tensor = self.output(blocks, operator)
        return logits
