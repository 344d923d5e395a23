r"""Network: the contract of all networks, and networks whose layers follow one another.

.. math:: H_0 = X, \quad H_{l+1} = f(\text{layer}_l(H_l, L)), \quad
    \text{logits} = \text{layer}_n(H_n, L)

A subclass of `Network` implements `logits` and names its `output_layer`. `Stack` takes any kind of
layer; with graph convolutions, :math:`L H W + b`, it is a `GCN`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.nn.diffusing import as_operator
from kryograph.nn.functional import (
    INPUT,
    Activation,
    Diffusion,
    Layer,
    Masks,
    NodeFeatures,
    activation,
    check_rate,
    dropout,
    reset_children,
)
from kryograph.operators import Operator


class Network(nn.Module, ABC):
    """Base of all networks: maps features and a graph to the logits of every node.

    Shapes:
        - **input:** features (N, F) dense or sparse; `edge_index` (2, E) with `edge_weight` (E), or
          an `Operator`
        - **output:** logits (N, number of classes)
    """

    operator: str = "sym"
    """Name of the operator L that is built from an `edge_index`."""

    def forward(
        self,
        x: NodeFeatures,
        edge_index: Operator | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
    ) -> Tensor:
        """Logits of every node.

        Without `edge_weight` all weights are 1. In training, dropout draws from `masks`, or from
        torch's generator without them.
        """
        L: Any = self.diffusion(edge_index, edge_weight, x.shape[0])
        return self.logits(x, L, Masks() if masks is None else masks)

    def diffusion(
        self, edge_index: Diffusion | Tensor | None, edge_weight: Tensor | None, n: int
    ) -> Diffusion:
        """Operator that the network diffuses with; constant unless a subclass knows better."""
        return as_operator(edge_index, edge_weight, n, self.operator)

    @abstractmethod
    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        """Logits of every node for features x and operator L; dropout draws from `masks`."""

    @property
    @abstractmethod
    def output_layer(self) -> nn.Module | None:
        """Layer whose first argument is the hidden representation; None if there is none.

        If that argument is a list of blocks, the last block is the hidden representation.
        """

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights again, child by child in order of registration."""
        reset_children(self, generator)


class Layered(Network):
    """A network whose hidden layers share one activation f and one dropout rate."""

    def __init__(self, f: Activation, rate: float, input_rate: float = 0.0) -> None:
        super().__init__()
        self.activation, self.dropout = activation(f), check_rate(rate)
        self.input_dropout = check_rate(input_rate)

    @property
    def drops_features(self) -> bool:
        """Whether the features differ from one forward pass to the next."""
        return self.training and self.input_dropout > 0

    def entering(self, x: NodeFeatures, masks: Masks) -> NodeFeatures:
        """Features as the first layer sees them: with dropout in training."""
        return dropout(x, self.input_dropout, masks, INPUT) if self.drops_features else x

    def hidden(self, z: Tensor, layer: int, masks: Masks, nodes: Tensor | None = None) -> Tensor:
        """Output of the hidden layer with that number, from 0, given the argument z of f.

        The rows of z belong to `nodes`; None means all.
        """
        h = self.activation(z)
        return dropout(h, self.dropout, masks, layer, nodes) if self.training else h


class Stack(Layered):
    r"""Hidden layers and an output layer, :math:`H_{l+1} = f(\text{layer}_l(H_l, L))`.

    Args:
        conv: Builds a layer from the widths of its input and its output. The layer is called with
            features or hidden outputs and an operator; it returns its output for every node.
        in_channels: Number of features of each node.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        activation: f.
        dropout: Rate on the input of every layer, the features included.
        operator: Name of the operator that is built from an `edge_index`.
    """

    masks_per_layer = 1
    """How many dropout masks a layer draws, that of its input included."""
    drop_features = True
    """Whether dropout acts on the features as well."""

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
        self.convs = nn.ModuleList(conv(i, o) for i, o in pairwise(widths))
        self.operator = operator

    @property
    def output_layer(self) -> nn.Module | None:
        return self.convs[-1] if len(self.convs) > 1 else None

    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        return self.through_layers(x, masks, L)

    def through_layers(self, x: NodeFeatures, masks: Masks, *graph: Any) -> Tensor:
        """Logits of every node; each layer is called with its input and with `graph`."""
        h = x
        for layer, conv in enumerate(self.convs):
            if layer > 0:
                assert isinstance(h, Tensor)
                h = self.activation(h)
            if self.training and (layer > 0 or self.drop_features):
                h = dropout(h, self.dropout, masks, layer * self.masks_per_layer)
            h = conv(h, *graph)
        assert isinstance(h, Tensor)
        return h


class GraphConv(Layer):
    """One graph convolution, L X W + b, with Glorot's initialisation."""

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        return self.plus_bias(L @ (x @ self.weight))


class GCN(Stack):
    """A stack of graph convolutions; other sizes and options are those of `Stack`."""

    def __init__(self, *sizes: int, bias: bool = True, **options: Any) -> None:
        super().__init__(partial(GraphConv, bias=bias), *sizes, **options)
