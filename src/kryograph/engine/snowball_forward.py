r"""Snowball networks on the rows that a step needs, with one buffer instead of growing copies.

A layer is :math:`Z_l = L X W_l^x + [B_1, \dots, B_l] W_l^h + b_l` with :math:`B_j = L H_j`, W_l cut
into the rows that meet X and those that meet hidden layers. So

* the products with X of all layers, the output's included, are one product with the W_l^x side by
  side; without non-linearity or with it, they depend on the weights alone, and what scored one
  epoch starts the next;
* B_1, B_2 … lie side by side in one buffer: each layer's product reads its first columns in place;
* diffusing H before it is multiplied leaves the product fewer rows: Z_l is needed on T_{n-l}, the
  nodes within n - l hops of those whose logits are asked for, and B_{l+1} on T_{n-l-1}.

The gradient is written by hand, since the buffer is overwritten as it grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kryograph.engine.collapse import collapsed, collapsed_cost
from kryograph.engine.cost import Cost, gemm_cost, memory_pass_cost, resident, spmm_cost, temporary
from kryograph.engine.forward import Forward, Nodes
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.nn.functional import ACTIVATIONS, Masks, NodeFeatures
from kryograph.nn.snowball import Snowball
from kryograph.operators import Operator


@dataclass(frozen=True)
class Shape:
    """Sizes of a network: n hidden layers of width h on F features, C classes."""

    features: int
    hidden: int
    layers: int
    classes: int

    def width(self, l: int) -> int:
        """Columns of W_l; the output is layer n."""
        return self.classes if l == self.layers else self.hidden

    @property
    def total(self) -> int:
        """Columns of all weights side by side."""
        return self.layers * self.hidden + self.classes


class SnowballRows:
    """What a network needs of the graph for the logits of some nodes.

    Args:
        x: Features of every node.
        L: The operator.
        nodes: Whose logits.
        shape: Of the network.
        dtype: Of its weights.
    """

    def __init__(
        self, x: NodeFeatures, L: Operator, nodes: Tensor, shape: Shape, dtype: torch.dtype
    ) -> None:
        self.shape = shape
        self.hops = Hops(L, nodes, shape.layers + 1, dtype)
        self.x = FeatureRows(x, self.hops.order)

    def on(self, l: int) -> int:
        """On how many rows Z_l is needed: those of T_{n-l}."""
        return self.hops.sizes[self.shape.layers - l]

    def from_x(self, weights: list[Tensor]) -> list[Tensor]:
        """L X W_l^x for every layer, from one product with X."""
        side_by_side = torch.cat([w[: self.shape.features] for w in weights], dim=1)
        every = self.x.product(self.hops.sizes[-1], side_by_side)
        parts = torch.split(every, [w.shape[1] for w in weights], dim=1)
        n = self.shape.layers
        return [
            self.hops.step(n - l).product(part[: self.hops.sizes[n - l + 1]].contiguous())
            for l, part in enumerate(parts)
        ]

    def from_x_transposed(self, gradients: list[Tensor]) -> tuple[Tensor, ...]:
        """The gradients of W_l^x given those of L X W_l^x."""
        n = self.shape.layers
        widths = [gradient.shape[1] for gradient in gradients]
        every = gradients[0].new_zeros(self.hops.sizes[-1], sum(widths))
        for l, part in enumerate(torch.split(every, widths, dim=1)):
            reached = self.hops.step(n - l).T.product(gradients[l])
            part[: len(reached)] = reached
        return torch.split(self.x.transposed(every), widths, dim=1)

    def cost_of_x(self) -> Cost:
        """Of `from_x`, and of its transpose."""
        s, far = self.shape, self.hops.sizes[-1]
        total = self.x.cost(far, s.total) + memory_pass_cost(2 * s.features * s.total)
        for l in range(s.layers + 1):
            rows = self.hops.sizes[s.layers - l + 1]
            total += spmm_cost(self.hops.nnz(s.layers - l), self.on(l), s.width(l))
            total += memory_pass_cost(2 * rows * s.width(l))
        return total + temporary((2 * far + s.features) * s.total)

    def cost_of_hidden(self) -> Cost:
        """Of the layers' own products, forwards."""
        s = self.shape
        total = Cost()
        for l in range(s.layers + 1):
            rows = self.on(l)
            total += gemm_cost(rows, l * s.hidden, s.width(l)) + memory_pass_cost(
                8 * rows * s.width(l)
            )
            if l < s.layers:
                below = s.layers - l - 1
                total += spmm_cost(self.hops.nnz(below), 2 * self.hops.sizes[below], s.hidden)
        return total


Hidden = Callable[[Tensor, int, Tensor], Tensor]
"""A hidden layer's output given Z_l, l and the nodes whose rows they are."""


def forward_pass(
    rows: SnowballRows,
    weights: list[Tensor],
    biases: list[Tensor | None],
    from_x: list[Tensor],
    f: Hidden,
) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
    """Forwards: logits, the buffer [B_1, …, B_n], and each layer's input and output of f."""
    s, n = rows.shape, rows.shape.layers
    buffer = from_x[0].new_empty(rows.hops.sizes[max(n - 1, 0)], n * s.hidden)
    outputs: list[tuple[Tensor, Tensor]] = []
    for l, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = from_x[l] if bias is None else from_x[l] + bias
        if l > 0:
            before = buffer[: rows.on(l), : l * s.hidden]
            z = torch.addmm(z, before, weight[s.features :])
        if l == n:
            return z, buffer, outputs
        h = f(z, l, rows.hops.nodes(n - l))
        outputs.append((z, h))
        below = rows.hops.step(n - l - 1)
        buffer[: below.shape[0], l * s.hidden : (l + 1) * s.hidden] = below.product(h.detach())
    raise AssertionError("the output is the last layer")


class _Logits(torch.autograd.Function):
    """Logits as a function of weights and biases."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: SnowballRows,
        from_x: list[Tensor] | None,
        f: Hidden,
        *parameters: Tensor | None,
    ) -> Tensor:
        half = len(parameters) // 2
        weights = [w for w in parameters[:half] if w is not None]
        biases = list(parameters[half:])
        from_x = rows.from_x(weights) if from_x is None else from_x

        def differentiable(z: Tensor, l: int, nodes: Tensor) -> Tensor:
            with torch.enable_grad():
                return f(z.requires_grad_(), l, nodes)

        logits, buffer, ctx.outputs = forward_pass(rows, weights, biases, from_x, differentiable)
        ctx.rows, ctx.with_bias = rows, [bias is not None for bias in biases]
        ctx.save_for_backward(buffer, *weights)
        return logits

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        rows: SnowballRows = ctx.rows
        s, n = rows.shape, rows.shape.layers
        buffer, *weights = ctx.saved_tensors
        to_buffer = torch.zeros_like(buffer)
        of_z: list[Tensor] = [gradient] * (n + 1)
        of_weights = [torch.empty_like(weight) for weight in weights]
        for l in range(n, -1, -1):
            if l < n:
                below = rows.hops.step(n - l - 1)
                own = to_buffer[: below.shape[0], l * s.hidden : (l + 1) * s.hidden]
                z, h = ctx.outputs[l]
                spread = below.T.product(own.contiguous())
                (of_z[l],) = torch.autograd.grad(h, z, spread, retain_graph=True)
            if l > 0:
                before = (slice(rows.on(l)), slice(l * s.hidden))
                torch.mm(buffer[before].T, of_z[l], out=of_weights[l][s.features :])
                to_buffer[before].addmm_(of_z[l], weights[l][s.features :].T)
        for whole, part in zip(of_weights, rows.from_x_transposed(of_z), strict=True):
            whole[: s.features] = part
        of_biases = [
            z.sum(dim=0) if has else None for z, has in zip(of_z, ctx.with_bias, strict=True)
        ]
        return None, None, None, *of_weights, *of_biases


class SnowballForward(Forward):
    """A `Snowball` with C = [H_0, …, H_n] and p = 1 during one run; arguments as for `Forward`."""

    network: Snowball

    def __init__(
        self, network: Snowball, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> None:
        super().__init__(network, x, L, nodes, masks)
        if network.classifier is not None or network.output.p != 1:
            raise ValueError("only C = [H_0, …, H_n] and p = 1 have this form")
        self._layers = [*network.convs, network.output]
        output = network.output
        n = len(network.convs)
        hidden = (output.in_channels - x.shape[1]) // max(n, 1)
        self._shape = Shape(x.shape[1], hidden, n, output.out_channels)
        self._linear = network.activation is ACTIVATIONS["identity"]
        self._training = self._rows(nodes.training)
        self._scored = self._rows(nodes.scored)
        self._before: list[Tensor] | None = None
        place = torch.empty(L.n, dtype=torch.int64, device=x.device)
        order = self._scored.hops.order
        place[order] = torch.arange(len(order), device=x.device)
        self._where = place[self._training.hops.order]

    def _rows(self, nodes: Tensor) -> SnowballRows:
        return SnowballRows(self.x, self.L, nodes, self._shape, self.network.output.weight.dtype)

    @property
    def _weights(self) -> list[Tensor]:
        return [layer.weight for layer in self._layers]

    @property
    def _biases(self) -> list[Tensor | None]:
        return [layer.bias for layer in self._layers]

    def training(self) -> Tensor:
        """Starts from the products with X that were scored last."""
        before, self._before = self._before, None
        if before is not None:
            nodes = (self._where[: self._training.on(l)] for l in range(len(before)))
            before = [part[there] for part, there in zip(before, nodes, strict=True)]

        def hidden(z: Tensor, l: int, nodes: Tensor) -> Tensor:
            return self.network.hidden(z, l, self.masks, nodes)

        logits: Tensor = _Logits.apply(  # type: ignore[no-untyped-call]
            self._training, before, hidden, *self._weights, *self._biases
        )
        return logits

    def scored(self) -> Tensor:
        """Keeps the products with X for the next training step; a linear network has none."""
        if self._linear:
            return collapsed(self._scored.x, self._scored.hops, self._weights, self._biases)
        self._before = self._scored.from_x(self._weights)
        return self._evaluated(self._scored, self._before)

    def everything(self) -> Tensor:
        """As when nodes are scored."""
        rows = self._rows(torch.arange(self.L.n, device=self.x.device))
        if self._linear:
            return collapsed(rows.x, rows.hops, self._weights, self._biases)
        return self._evaluated(rows, rows.from_x(self._weights))

    def _evaluated(self, rows: SnowballRows, from_x: list[Tensor]) -> Tensor:
        logits, _, _ = forward_pass(
            rows, self._weights, self._biases, from_x, lambda z, l, nodes: self.network.hidden(z, l)
        )
        return logits

    def cost(self) -> Cost:
        """A training step's products count three times, of X once where scoring keeps them."""
        s, far = self._shape, self._training.hops.sizes[-1]
        total = self._training.cost_of_hidden() * 3 + self._training.cost_of_x()
        total += resident(2 * far * s.total) + temporary(6 * far * s.total)
        if self._linear:
            scoring = collapsed_cost(self._scored.x, self._scored.hops, s.hidden, s.classes)
            return total + self._training.cost_of_x() + scoring
        return total + self._scored.cost_of_x() + self._scored.cost_of_hidden()
