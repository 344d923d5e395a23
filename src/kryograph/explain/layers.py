"""Contributions to the logits of a network of polynomial layers, by secants of its activations.

Layer l has the outputs h_l = f(Σ_i Σ_k L^k h_i W_{l,i,k} + b_l) of earlier layers i, where h_0 = X
are the features; the last layer, with f(z) = z, gives the logits. Let h⁰ be the outputs without
features, X = 0. With the secants s = (f(z) - f(z⁰)) / (z - z⁰), or f'(z⁰) where z = z⁰,

    h_l - h⁰_l = s_l * Σ_i Σ_k L^k (h_i - h⁰_i) W_{l,i,k}

exactly, for every node and unit. So the logits are linear in X along fixed secants (the rescale
rule of DeepLIFT), and a contribution is what flows from one feature of one node to the logit.
With one hidden layer z is linear in X, so every unit has the same secant on the whole straight path
from 0 to X: the contributions are integrated gradients in closed form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax

from kryograph.explain.contributions import AdditiveForm, Contributions, Values, cosines
from kryograph.explain.walks import arrivals, through_edges
from kryograph.graph import Features, Indices

CLOSE = 1e-6
"""Differences of z from z⁰ below this are too small for a quotient; the derivative is taken."""

DIFFERENTIABLE: dict[str, tuple[Callable[[Values], Values], Callable[[Values], Values]]] = {
    "identity": (lambda z: z, np.ones_like),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
}
"""Activations and their derivatives by name."""


@dataclass(frozen=True, eq=False)
class PolynomialLayer:
    """Weights of one layer.

    Args:
        weights: For each earlier layer i that the layer reads, its matrices W_{l,i,k} by the
            power k; layer 0 are the features.
        bias: b_l, one number for each output.
        activation: Name of f, a key of `DIFFERENTIABLE`.
    """

    weights: Mapping[int, Mapping[int, Values]]
    bias: Values
    activation: str = "identity"


@dataclass(frozen=True, eq=False)
class LayeredForm(AdditiveForm):
    """A trained network of polynomial layers on one graph.

    Args:
        L: Values of the operator, N × N.
        x: Features X, N × F.
        layers: The layers; the last one gives the logits.
    """

    L: sp.csr_array
    x: Features
    layers: Sequence[PolynomialLayer]

    @cached_property
    def outputs(self) -> list[Any]:
        """Features X and the outputs of all layers, each N × width."""
        return self._forward(self.x)

    @cached_property
    def baseline(self) -> list[Any]:
        """Outputs of all layers without features; they depend on the node through L."""
        return self._forward(sp.csr_array(self.x.shape))

    @cached_property
    def secants(self) -> list[Values]:
        """Secants of each layer, N × width; the entry of layer l has the index l."""
        secants = [np.ones((1, 1))]
        for l, layer in enumerate(self.layers, start=1):
            z, z0 = self._arguments(l, self.outputs), self._arguments(l, self.baseline)
            f, derivative = DIFFERENTIABLE[layer.activation]
            difference = z - z0
            far = abs(difference) > CLOSE
            quotient = np.divide(f(z) - f(z0), difference, out=np.zeros_like(z), where=far)
            secants.append(np.where(far, quotient, derivative((z + z0) / 2)))
        return secants

    @cached_property
    def rise(self) -> list[Any]:
        """Differences h - h⁰ of all layers, features included."""
        pairs = zip(self.outputs[1:], self.baseline[1:], strict=True)
        return [self.x, *(h - h0 for h, h0 in pairs)]

    def log_probabilities(self, node: int) -> Values:
        return np.asarray(log_softmax(self.outputs[-1][node]))

    def similarity(self, node: int, others: Indices) -> Values:
        hidden = self.outputs[-2]  # the input of the output layer
        if hidden is self.x:
            hidden = self.outputs[-1]
        return cosines(hidden[node], hidden[others])

    def contributions(self, node: int, first: int, second: int) -> Contributions:
        last = len(self.layers)
        contrast = np.zeros(self.layers[-1].bias.size)
        contrast[first], contrast[second] = 1.0, -1.0
        walks = self._arrivals(node)
        total = _Sums(len(walks), self)
        # What layer l adds to the log-odds is the product of its rise with multipliers. They are a
        # vector at the node itself (`at_node`), and after j > 0 steps a matrix N × width.
        at_node: dict[int, Values] = {last: contrast}
        spread: dict[int, dict[int, Values]] = defaultdict(dict)
        for l in range(last, 0, -1):
            layer, secant = self.layers[l - 1], self.secants[l]
            if l in at_node:
                slope = secant[node] * at_node.pop(l)
                for i, by_power in layer.weights.items():
                    if i == 0:
                        total.add_walks(walks, {k: w @ slope for k, w in by_power.items()})
                        continue
                    for k, w in by_power.items():
                        if k == 0:
                            at_node[i] = at_node.get(i, 0.0) + w @ slope
                        else:
                            _add(spread[i], k, np.outer(walks[k], w @ slope))
            slopes = {j: secant * multiplier for j, multiplier in spread.pop(l, {}).items()}
            for i, by_power in layer.weights.items() if slopes else ():
                if i == 0:
                    total.add_spread(slopes, l, by_power)
                    continue
                for j, slope in slopes.items():
                    flow = slope
                    for k in range(max(by_power) + 1):
                        if k in by_power:
                            _add(spread[i], j + k, flow @ by_power[k].T)
                        if k < max(by_power):
                            flow = self.L.T @ flow
        intercept = float(self.baseline[-1][node] @ contrast)
        neighbours = self._neighbours(node, contrast)
        return Contributions(intercept, total.hops, total.nodes, neighbours, total.features)

    def _neighbours(self, node: int, contrast: Values) -> Values:
        """Contributions by the edge on which walks leave the node, N."""
        by_edge = np.zeros(self.L.shape[0])
        at_node: dict[int, Values] = {len(self.layers): contrast}
        for l in range(len(self.layers), 0, -1):
            if l not in at_node:
                continue
            slope = self.secants[l][node] * at_node.pop(l)
            for i, by_power in self.layers[l - 1].weights.items():
                steps = [self.L] * max(by_power)
                values = np.zeros((len(steps) + 1, self.L.shape[0]))
                for k, w in by_power.items():
                    values[k] = self.rise[i] @ (w @ slope)
                arrived, own = through_edges(node, steps, values)
                by_edge += arrived
                if i == 0:
                    by_edge[node] += own @ values[:, node]
                else:  # walks that are still at the node leave it in an earlier layer, or never
                    stays = sum(own[k] * (w @ slope) for k, w in by_power.items())
                    at_node[i] = at_node.get(i, 0.0) + stays
        return by_edge

    def first_products(self, l: int) -> dict[int, Values]:
        """X W_{l,0,k} of layer l by k, each N × width."""
        return self._first_products.setdefault(
            l, {k: self.x @ w for k, w in self.layers[l - 1].weights[0].items()}
        )

    @cached_property
    def _first_products(self) -> dict[int, dict[int, Values]]:
        return {}

    def _arrivals(self, node: int) -> Values:
        """Walks of as many steps as any layer that the node itself reads can take."""
        most = max(max(by_power) for layer in self.layers for by_power in layer.weights.values())
        return arrivals(node, [self.L] * most, self.L.shape[0])

    def _forward(self, x: Features) -> list[Any]:
        outputs: list[Any] = [x]
        for l, layer in enumerate(self.layers, start=1):
            outputs.append(DIFFERENTIABLE[layer.activation][0](self._arguments(l, outputs)))
        return outputs

    def _arguments(self, l: int, outputs: Sequence[Any]) -> Values:
        """Arguments z_l of the activation of layer l, N × width."""
        layer = self.layers[l - 1]
        z = np.zeros((self.L.shape[0], layer.bias.size))
        for i, by_power in layer.weights.items():
            received = np.zeros_like(z)
            for k in range(max(by_power), -1, -1):  # Horner's rule
                if k < max(by_power):
                    received = self.L @ received
                if k in by_power:
                    received = received + outputs[i] @ by_power[k]
            z += received
        return z + layer.bias


class _Sums:
    """Sums of the contributions of a node per hop, per node and per feature."""

    def __init__(self, hops: int, form: LayeredForm) -> None:
        self.form = form
        n, width = form.x.shape
        self.hops, self.nodes, self.features = np.zeros(hops), np.zeros(n), np.zeros(width)

    def add_walks(self, walks: Values, terms: Mapping[int, Values]) -> None:
        """Add what arrives by `walks` from values X b_k; `terms` are the b_k by k."""
        powers = sorted(terms)
        weights = np.stack([terms[k] for k in powers], axis=1)  # F × powers
        shares = walks[powers] * np.asarray(self.form.x @ weights).T
        self._add_to_hops(dict(zip(powers, shares.sum(axis=1), strict=True)))
        self.nodes += shares.sum(axis=0)
        received = np.asarray(self.form.x.T @ walks[powers].T)  # F × powers
        self.features += (received * weights).sum(axis=1)

    def add_spread(
        self, slopes: Mapping[int, Values], l: int, by_power: Mapping[int, Values]
    ) -> None:
        """Add what layer l receives from the features.

        `slopes` are the multipliers of its arguments (N × width) by the steps behind them.
        """
        products, highest = self.form.first_products(l), max(by_power)
        for j, slope in slopes.items():
            flow = slope
            for k in range(highest + 1):
                if k in by_power:
                    self._add_to_hops({j + k: float((flow * products[k]).sum())})
                    self.nodes += (flow * products[k]).sum(axis=1)
                    received = np.asarray(self.form.x.T @ flow)
                    self.features += (received * by_power[k]).sum(axis=1)
                if k < highest:
                    flow = self.form.L.T @ flow

    def _add_to_hops(self, values: Mapping[int, float]) -> None:
        missing = max(values) + 1 - self.hops.size
        self.hops = np.pad(self.hops, (0, max(missing, 0)))
        for k, value in values.items():
            self.hops[k] += value


def _add(parts: dict[int, Values], key: int, value: Values) -> None:
    parts[key] = parts[key] + value if key in parts else value
