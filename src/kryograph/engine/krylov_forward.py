"""Truncated block Krylov networks on the rows that a step needs.

Training needs the logits of the labelled nodes, scoring those of the validation nodes as well: a
few hundred rows of thousands. A further layer needs its input on the rows within m - 1 hops, and so
on down to the first, whose blocks are constant (`products.py`). What goes into the first
activation when an epoch is scored is what the next epoch's training starts from.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kryograph.engine.cost import Cost, gemm_cost, memory_pass_cost, spmm_cost, temporary
from kryograph.engine.first_layer import (
    Blocks,
    FirstLayer,
    Horner,
    KeptBlocks,
    cheapest,
    first_layer_product,
)
from kryograph.engine.forward import Forward, Nodes
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.krylov import KrylovConv, TruncatedKrylov
from kryograph.operators import Operator


class KrylovForward(Forward):
    """A `TruncatedKrylov` during one run; arguments as for `Forward`."""

    network: TruncatedKrylov

    def __init__(
        self, network: TruncatedKrylov, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> None:
        super().__init__(network, x, L, nodes, masks)
        self._training = self._product(nodes.training, KeptBlocks, Horner)
        self._scored = self._product(nodes.scored, KeptBlocks, Horner)
        if (
            isinstance(self._training, KeptBlocks)
            and isinstance(self._scored, KeptBlocks)
            and self._scored.k == 0
        ):
            self._training.share(self._scored)  # scored nodes are training nodes, then others
        # Where the rows that training needs of the first layer are among those of scoring.
        place = torch.empty(L.n, dtype=torch.int64, device=x.device)
        near = self._scored.hops.nodes(self._scored.k)
        place[near] = torch.arange(len(near), device=x.device)
        self._where = place[self._training.hops.nodes(self._training.k)]
        self._before: Tensor | None = None

    def training(self) -> Tensor:
        """Starts from what was scored last, with this training form's gradient."""
        before = None if self._before is None else self._before[self._where]
        self._before = None
        z = first_layer_product(self._training, self.network.first.weight, before)
        return self._from_first(z, self._training)

    def scored(self) -> Tensor:
        """Keeps the first layer's product for the next training step."""
        self._before = first_layer_product(self._scored, self.network.first.weight)
        return self._from_first(self._before, self._scored)

    def everything(self) -> Tensor:
        """By blocks or by Horner, whichever is cheaper; nothing is kept."""
        product = self._product(torch.arange(self.L.n, device=self.x.device), Blocks, Horner)
        return self._from_first(first_layer_product(product, self.network.first.weight), product)

    def cost(self) -> Cost:
        """The gradient of one form, the value of the other, and the layers after both."""
        preparing = max(p.preparation().passing for p in (self._training, self._scored))
        return (
            Cost(passing=preparing)
            + self._training.cost()
            + self._scored.cost()
            + self._after_first(self._training) * 3
            + self._after_first(self._scored)
        )

    def _product(self, nodes: Tensor, *forms: type[FirstLayer]) -> FirstLayer:
        first = self.network.first
        further = len(self.network.further) * (first.order - 1)
        k = self.network.output.p + further
        hops = Hops(self.L, nodes, k + first.order - 1, first.weight.dtype)
        x = FeatureRows(self.x, hops.order)
        return cheapest(form(x, hops, k, first.order, first.out_channels) for form in forms)

    def _from_first(self, z: Tensor, product: FirstLayer) -> Tensor:
        """Logits of T₀ given the first layer's product on T_k."""
        hops, k, network = product.hops, product.k, self.network
        if network.first.bias is not None:
            z = z + network.first.bias
        h = network.hidden(z, 0, self.masks, hops.nodes(k))
        for layer, conv in enumerate(network.further, start=1):
            blocks = [h]
            for _ in range(network.first.order - 1):
                k -= 1
                blocks.append(hops.step(k) @ blocks[-1])
            rows = hops.sizes[k]
            assert isinstance(conv, KrylovConv)
            z = conv.combine(block[:rows] for block in blocks)
            h = network.hidden(z, layer, self.masks, hops.nodes(k))
        return network.head(h, hops.step(0) if network.output.p else None)

    def _after_first(self, product: FirstLayer) -> Cost:
        hops, k, hidden, order = product.hops, product.k, product.hidden, product.order
        total = memory_pass_cost(6 * hops.sizes[k] * hidden) + temporary(4 * hops.sizes[k] * hidden)
        for _ in self.network.further:
            for _ in range(order - 1):
                k -= 1
                total += spmm_cost(hops.nnz(k), hops.sizes[k], hidden)
            total += gemm_cost(hops.sizes[k], order * hidden, hidden)
            total += memory_pass_cost(6 * hops.sizes[k] * hidden)
            total += temporary((order + 4) * hops.sizes[k + order - 1] * hidden)
        classes = self.network.output.out_channels
        return total + gemm_cost(hops.sizes[k], hidden, classes)
