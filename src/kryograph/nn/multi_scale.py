r"""Snowball and truncated block Krylov networks (section 5 of the paper) in their literal form.

.. math::
    H_{l+1} = f(L [H_0, \dots, H_l] W_l + b_l), \quad C = g([H_0, \dots, H_n] W_n + b_n)
    \quad \text{(Snowball)}

    H_{l+1} = f([H_l, L H_l, \dots, L^{m-1} H_l] W_l + b_l), \quad C = g(H_n W_n + b_n)
    \quad \text{(Krylov)}

and logits = L^p C W_C + b_C for both. H_0 = X are the features, L is the operator, m the order and
n the number of hidden layers. Blocks come from repeated sparse products, L(L(LH)), never from
powers of L. The Snowball networks of the paper's tables have C = [H_0, …, H_n] and p = 1; f is
tanh, or the identity in linear Snowball.

The argument `operator` names the operator that is built from an `edge_index`. Layers take features
(N, F), `edge_index` (2, E) and `edge_weight` (E), or an `Operator` in their place; they return
(N, out_channels). The operator of an `edge_index` is kept until the tensors change. Gradients with
respect to `edge_weight`, edge masks of explainers and `torch.export` work with an `edge_index`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kryograph.nn.diffusing import DiffusingLayer, as_diffusion
from kryograph.nn.functional import (
    Activation,
    Diffusion,
    Masks,
    NodeFeatures,
    horner,
    side_by_side,
    uniform_,
)
from kryograph.nn.functional import activation as find_activation
from kryograph.nn.network import Layered


class SnowballConv(DiffusingLayer):
    r"""One Snowball layer, :math:`L^p [H_0, H_1, \dots] W + b`: multiply, diffuse, add the bias.

    The input is one matrix, or a sequence of blocks whose widths add up to `in_channels`. With
    p = 0 no operator is needed. The bias is added after the diffusion (deviation D3).

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
    ) -> None:
        if p not in (0, 1):
            raise ValueError(f"p must be 0 or 1, not {p}")
        options: dict[str, Any] = {"bias": bias, "initialise": uniform_, "operator": operator}
        super().__init__(in_channels, out_channels, hops=p, width=out_channels, **options)
        self.p = p

    def forward(
        self,
        x: NodeFeatures | Sequence[NodeFeatures],
        edge_index: Diffusion | Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        out = side_by_side(x if isinstance(x, Sequence) else [x], self.weight)
        if self.p == 1:
            L = self.diffusion(edge_index, edge_weight, out.shape[0])
            *_, out = self.diffused(L, out)
        return self.plus_bias(out)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, p={self.p}"


class KrylovConv(DiffusingLayer):
    r"""One truncated block Krylov layer, :math:`[X, LX, \dots, L^{m-1}X] W + b`.

    `order` is the number m of blocks, X included; with order 1 this is a linear layer.

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
        if order < 1:
            raise ValueError(f"order must be at least 1, not {order}")
        options: dict[str, Any] = {"bias": bias, "initialise": uniform_, "operator": operator}
        options |= {"rows": order, "hops": order - 1, "width": in_channels}
        super().__init__(in_channels, out_channels, **options)
        self.order = order

    def forward(
        self, x: NodeFeatures, edge_index: Diffusion | Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        L = self.diffusion(edge_index, edge_weight, x.shape[0])
        return self.combine(self.diffused(L, x))

    def weighed_first(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        """Compute the same output as Σ L^k (X W_k): the diffused matrices are as wide as it."""
        blocks = self.weight.view(self.order, self.in_channels, self.out_channels)
        side = blocks.transpose(0, 1).reshape(self.in_channels, -1)
        terms = torch.split(x @ side, self.out_channels, dim=1)
        return self.plus_bias(horner(L, dict(enumerate(terms))))

    def combine(self, blocks: Iterable[Tensor]) -> Tensor:
        """Compute the output from the blocks X, LX, …, or from the same rows of each block."""
        return self.plus_bias(side_by_side(blocks, self.weight))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, order={self.order}"


class MultiScale(Layered):
    """Base of networks of Snowball and Krylov layers: it diffuses as its layers do."""

    def diffusion(
        self, edge_index: Diffusion | Tensor | None, edge_weight: Tensor | None, n: int
    ) -> Diffusion:
        layers = [module for module in self.modules() if isinstance(module, DiffusingLayer)]
        explained = any(layer.explained for layer in layers)
        return as_diffusion(edge_index, edge_weight, n, self.operator, explained=explained)


class Snowball(MultiScale):
    r"""Snowball layers, each of which sees the features and the outputs of all layers before it.

    Args:
        in_channels: Number of features of each node.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number n of hidden layers.
        activation: f; "identity" makes it linear Snowball.
        classifier_activation: g of a fully connected C.
        dropout: Rate on the output of hidden layers only; never on C or logits.
        input_dropout: Rate on X; all layers see the same mask.
        classifier: Width of a fully connected C, or None for C = [H_0, …, H_n].
        p: Number of diffusions of the output, 0 or 1.
        bias: Whether layers have biases.
        operator: Name of an operator.
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
        self.classifier_activation = find_activation(classifier_activation)
        self.operator = operator

    @property
    def output_layer(self) -> nn.Module | None:
        return self.output if len(self.convs) or self.classifier is not None else None

    def logits(self, x: NodeFeatures, L: Diffusion, masks: Masks) -> Tensor:
        blocks: list[NodeFeatures] = [self.entering(x, masks)]
        for layer, conv in enumerate(self.convs):
            blocks.append(self.hidden(conv(blocks, L), layer, masks))
        if self.classifier is not None:
            blocks = [self.classifier_activation(self.classifier(blocks))]
        logits: Tensor = self.output(blocks, L)
        return logits


class TruncatedKrylov(MultiScale):
    r"""Krylov layers, an optional classifier C, and a linear output that is diffused p times.

    Arguments not listed here are those of `Snowball`; `activation` is f and g.

    Args:
        order: Number m of blocks in every layer.
        classifier: Whether there is a layer :math:`C = g(H_n W_n + b_n)` (the paper), or
            :math:`C = H_n` (the authors' code); deviation D2.
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

    @property
    def output_layer(self) -> nn.Module:
        return self.output

    def logits(self, x: NodeFeatures, L: Diffusion, masks: Masks) -> Tensor:
        # With dropout on X the blocks change in every step, so keeping them for the gradient costs
        # memory and saves nothing: multiply by the weights first.
        first = self.first.weighed_first if self.drops_features else self.first
        h = self.hidden(first(self.entering(x, masks), L), 0, masks)
        for layer, conv in enumerate(self.further, start=1):
            h = self.hidden(conv(h, L), layer, masks)
        return self.head(h, L)

    def head(self, h: Tensor, operator: Diffusion | None = None) -> Tensor:
        """Compute the logits from H_n; no operator is needed if p = 0."""
        if self.classifier is not None:
            h = self.activation(self.classifier(h))
        logits: Tensor = self.output(h, operator)
        return logits
