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

Linear Snowball without dropout is collapsed from the output side: its logits are a polynomial in L,
:math:`\sum_{k \ge 1} L^k (X A_k + 1 c_k)` and the output's bias. A_k and c_k are as narrow as there
are classes and depend on the weights alone. They are computed from the last layer to the first:
each layer passes its coefficient of H_l on to X and H_1 … H_{l-1} through W_{l-1}, with one more
power of L. Then one product with X and Horner's rule in L give the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from kryograph.engine.cost import Cost, gemm_cost, memory_pass_cost, resident, spmm_cost, temporary
from kryograph.engine.forward import Forward, Workload
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.nn.functional import ACTIVATIONS, NodeFeatures
from kryograph.nn.multi_scale import Snowball
from kryograph.operators import Operator


class SnowballRows:
    """Rows of the graph that a network with n hidden layers needs for the logits of `nodes`."""

    def __init__(self, x: NodeFeatures, L: Operator, nodes: Tensor, network: Snowball) -> None:
        self.n = len(network.convs)
        self.hops = Hops(L, nodes, self.n + 1, network.output.weight.dtype)
        self.x = FeatureRows(x, self.hops.order)
        self.features = x.shape[1]
        self.widths = [layer.out_channels for layer in (*network.convs, network.output)]
        self.hidden = self.widths[0] if self.n else 0

    def on(self, l: int) -> int:
        """Number of rows of Z_l that are needed, those of T_{n-l}."""
        return self.hops.sizes[self.n - l]

    def from_x(self, weights: list[Tensor]) -> list[Tensor]:
        """L X W_l^x for every layer, from one product with X."""
        side_by_side = torch.cat([w[: self.features] for w in weights], dim=1)
        every = self.x.product(self.hops.sizes[-1], side_by_side)
        return [
            self.hops.step(self.n - l).product(part[: self.on(l - 1)].contiguous())
            for l, part in enumerate(torch.split(every, self.widths, dim=1))
        ]

    def from_x_transposed(self, gradients: list[Tensor]) -> tuple[Tensor, ...]:
        """The gradients of W_l^x given those of L X W_l^x."""
        every = gradients[0].new_zeros(self.hops.sizes[-1], sum(self.widths))
        for l, part in enumerate(torch.split(every, self.widths, dim=1)):
            reached = self.hops.step(self.n - l).T.product(gradients[l])
            part[: len(reached)] = reached
        return torch.split(self.x.transposed(every), self.widths, dim=1)

    def cost_of_x(self) -> Cost:
        """Cost of `from_x`, which is also that of its transpose."""
        far, columns = self.hops.sizes[-1], sum(self.widths)
        total = self.x.cost(far, columns) + memory_pass_cost(2 * self.features * columns)
        for l, width in enumerate(self.widths):
            total += spmm_cost(self.hops.nnz(self.n - l), self.on(l), width)
            total += memory_pass_cost(2 * self.on(l - 1) * width)
        return total + temporary((2 * far + self.features) * columns)

    def cost_of_hidden(self) -> Cost:
        """Cost of the forward products of hidden layers."""
        total = Cost()
        for l, width in enumerate(self.widths):
            total += gemm_cost(self.on(l), l * self.hidden, width)
            total += memory_pass_cost(8 * self.on(l) * width)
            if l < self.n:
                below = self.n - l - 1
                total += spmm_cost(self.hops.nnz(below), 2 * self.on(l + 1), width)
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
    n, width = rows.n, rows.hidden
    buffer = from_x[0].new_empty(rows.hops.sizes[max(n - 1, 0)], n * width)
    outputs: list[tuple[Tensor, Tensor]] = []

    def argument(l: int) -> Tensor:
        bias = biases[l]
        z = from_x[l] if bias is None else from_x[l] + bias
        before = buffer[: rows.on(l), : l * width]
        return torch.addmm(z, before, weights[l][rows.features :]) if l > 0 else z

    for l in range(n):
        z = argument(l)
        h = f(z, l, rows.hops.nodes(n - l))
        outputs.append((z, h))
        below = rows.hops.step(n - l - 1)
        buffer[: below.shape[0], l * width : (l + 1) * width] = below.product(h.detach())
    return argument(n), buffer, outputs


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
        n, width, features = rows.n, rows.hidden, rows.features
        buffer, *weights = ctx.saved_tensors
        to_buffer = torch.zeros_like(buffer)
        of_z: list[Tensor] = [gradient] * (n + 1)
        of_weights = [torch.empty_like(weight) for weight in weights]
        for l in range(n, -1, -1):
            if l < n:
                below = rows.hops.step(n - l - 1)
                own = to_buffer[: below.shape[0], l * width : (l + 1) * width]
                z, h = ctx.outputs[l]
                spread = below.T.product(own.contiguous())
                with torch.enable_grad():
                    # A gradient for h as an argument of `grad` would import symbolic algebra.
                    value = torch.dot(h.flatten(), spread.flatten())
                (of_z[l],) = torch.autograd.grad(value, z, retain_graph=True)
            if l > 0:
                before = (slice(rows.on(l)), slice(l * width))
                torch.mm(buffer[before].T, of_z[l], out=of_weights[l][features:])
                to_buffer[before].addmm_(of_z[l], weights[l][features:].T)
        for whole, part in zip(of_weights, rows.from_x_transposed(of_z), strict=True):
            whole[:features] = part
        of_biases = [
            z.sum(dim=0) if has else None for z, has in zip(of_z, ctx.with_bias, strict=True)
        ]
        return None, None, None, *of_weights, *of_biases


def coefficients(
    weights: Sequence[Tensor], biases: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """A_1 … A_{n+1} side by side (F × (n+1)C) and c_1 … c_{n+1} end to end.

    They come from weights and biases of the hidden layers and then of the output, whose bias is not
    part of a power of L.
    """
    *hidden, above = weights
    classes = above.shape[1]
    constants = above.new_zeros((len(hidden) + 1) * classes)
    for weight, bias in zip(reversed(hidden), reversed(biases[:-1]), strict=True):
        others, own = torch.split(above, [len(weight), weight.shape[1]])
        if bias is not None:
            constants[: own.shape[1]] += bias @ own
        above = others.new_zeros(len(others), own.shape[1] + classes)
        above[:, :-classes] = others
        above[:, classes:] += weight @ own
    return above, constants


def collapsed(
    x: FeatureRows, hops: Hops, weights: Sequence[Tensor], biases: Sequence[Tensor | None]
) -> Tensor:
    """Logits of T₀ of a linear Snowball network with p = 1."""
    classes = weights[-1].shape[1]
    powers, constants = coefficients(weights, biases)
    terms = torch.split(x.product(hops.sizes[-1], powers) + constants, classes, dim=1)
    inside = terms[-1].contiguous()
    for k in range(len(weights) - 1, 0, -1):
        term = terms[k - 1][: hops.sizes[k]].contiguous()
        inside = hops.step(k).add_product_(term, inside)
    logits = hops.step(0).product(inside)
    return logits if biases[-1] is None else logits + biases[-1]


def collapsed_cost(x: FeatureRows, hops: Hops, hidden: int, classes: int) -> Cost:
    """Cost of `collapsed` if all hidden layers are `hidden` wide."""
    n = len(hops.sizes) - 2
    total = x.cost(hops.sizes[-1], (n + 1) * classes)
    total += temporary((x.width + 2 * hops.sizes[-1]) * (n + 1) * classes)
    for l in range(n):
        total += gemm_cost(x.width + l * hidden, hidden, (n - l) * classes)
    for k in range(n + 1):
        total += spmm_cost(hops.nnz(k), 2 * hops.sizes[k], classes)
    return total


class SnowballForward(Forward):
    """A `Snowball` with C = [H_0, …, H_n] and p = 1 during one run; arguments as for `Forward`."""

    network: Snowball

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        network = self.network
        if network.classifier is not None or network.output.p != 1:
            raise ValueError("only C = [H_0, …, H_n] and p = 1 have this form")
        self._linear = network.activation is ACTIVATIONS["identity"]
        self._training = self._rows(self.nodes.training)
        self._scored = self._rows(self.nodes.scored)
        self._before: list[Tensor] | None = None
        self._where = self._scored.hops.places(self._training.hops.order)

    def _rows(self, nodes: Tensor) -> SnowballRows:
        return SnowballRows(self.x, self.L, nodes, self.network)

    def _hidden(self, z: Tensor, l: int, nodes: Tensor) -> Tensor:
        return self.network.hidden(z, l, self.masks, nodes)

    def _parameters(self) -> tuple[list[Tensor], list[Tensor | None]]:
        """Weights and biases of all layers, the output last."""
        layers = [*self.network.convs, self.network.output]
        return [layer.weight for layer in layers], [layer.bias for layer in layers]

    def training(self) -> Tensor:
        """Starts from the products with X that were scored last."""
        before, self._before = self._before, None
        if before is not None:
            nodes = (self._where[: self._training.on(l)] for l in range(len(before)))
            before = [part[rows] for part, rows in zip(before, nodes, strict=True)]

        weights, biases = self._parameters()
        logits: Tensor = _Logits.apply(  # type: ignore[no-untyped-call]
            self._training, before, self._hidden, *weights, *biases
        )
        return logits

    def scored(self) -> Tensor:
        """Keeps the products with X for the next training step; a linear network has none."""
        logits, self._before = self._evaluated(self._scored)
        return logits

    def everything(self) -> Tensor:
        logits, _ = self._evaluated(self._rows(torch.arange(self.L.n, device=self.x.device)))
        return logits

    def _evaluated(self, rows: SnowballRows) -> tuple[Tensor, list[Tensor] | None]:
        """Logits without gradients, and the products with X."""
        weights, biases = self._parameters()
        if self._linear:
            return collapsed(rows.x, rows.hops, weights, biases), None
        from_x = rows.from_x(weights)
        logits, _, _ = forward_pass(rows, weights, biases, from_x, self._hidden)
        return logits, from_x

    def cost(self) -> Cost:
        """Count a training step's products three times, those with X once if scoring keeps them."""
        rows = self._training
        numbers = rows.hops.sizes[-1] * sum(rows.widths)
        total = rows.cost_of_hidden() * 3 + rows.cost_of_x()
        total += resident(2 * numbers) + temporary(6 * numbers)
        if self._linear:
            x, hops = self._scored.x, self._scored.hops
            return total + rows.cost_of_x() + collapsed_cost(x, hops, rows.hidden, rows.widths[-1])
        return total + self._scored.cost_of_x() + self._scored.cost_of_hidden()
