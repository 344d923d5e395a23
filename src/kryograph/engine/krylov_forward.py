r"""Truncated block Krylov networks on the rows that a step needs.

Training needs the logits of the labelled nodes, scoring those of the validation nodes as well: a
few hundred rows of thousands. A further layer needs its input on the rows within m - 1 hops, and so
on down to the first. The argument of the first activation that was computed to score an epoch is
used by the training step of the next one.

The first layer's product K_m(L, X) W has three forms that give the same numbers:

* `KeptBlocks` keeps those rows of K_m(L, X), dense, and multiplies them: best for few rows.
* `Horner` never makes a block: :math:`X W_0 + L (X W_1 + L (X W_2 + \dots))`, with X sparse and the
  products with L as wide as the output, each on no more rows than the next one needs.
* `Blocks` makes one block after the other and keeps none: best for all rows of narrow dense X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from kryograph.engine.cost import (
    USUAL_EPOCHS,
    Cost,
    gemm_cost,
    memory_pass_cost,
    resident,
    spmm_cost,
    temporary,
)
from kryograph.engine.forward import Forward, Workload
from kryograph.engine.hops import FeatureRows, Hops
from kryograph.nn.multi_scale import KrylovConv, TruncatedKrylov

MOST_KEPT = 4 * 2**30
"""Bytes of blocks that may be kept, however fast they would be."""


class FirstLayer(ABC):
    """K_m(L, X)[T_k] W for a constant graph.

    The features x are those of T_{k + m - 1} at least, in the order of the hops; `order` is m, and
    `hidden` the number of columns of W.
    """

    def __init__(self, x: FeatureRows, hops: Hops, k: int, order: int, hidden: int) -> None:
        self.x, self.hops, self.k, self.order, self.hidden = x, hops, k, order, hidden
        self.rows, self.far = hops.sizes[k], hops.sizes[k + order - 1]

    def diffusions_cost(self, columns: int, passes: int = 1) -> Cost:
        """Cost of the m - 1 products with L, each of which moves its result `passes` times."""
        cost, hops = Cost(), self.hops
        for j in range(self.k, self.k + self.order - 1):
            cost += spmm_cost(hops.nnz(j), passes * hops.sizes[j], columns)
        return cost

    def parts(self, weight: Tensor) -> tuple[Tensor, ...]:
        """Split a weight into W_0 … W_{m-1}, one part for each block."""
        return torch.split(weight, self.x.width)

    @abstractmethod
    def forward(self, weight: Tensor) -> Tensor:
        """Compute the product K_m(L, X)[T_k] W."""

    @abstractmethod
    def backward(self, gradient: Tensor) -> Tensor:
        """K_m(L, X)[T_k]ᵀ times a gradient."""

    @abstractmethod
    def cost(self) -> Cost:
        """Cost of `forward`, which is also that of `backward`."""

    def preparation(self) -> Cost:
        """Cost of the work that is done once per run."""
        return Cost()


class KeptBlocks(FirstLayer):
    """The form that keeps the rows of K_m(L, X) and multiplies them."""

    _blocks: Tensor | None = None
    _whole: KeptBlocks | None = None

    def share(self, whole: KeptBlocks) -> None:
        """Use the blocks of another product, whose first rows are those of this one."""
        self._whole = whole

    @property
    def blocks(self) -> Tensor:
        """The rows K_m(L, X)[T_k], computed when they are first needed."""
        if self._whole is not None:
            return self._whole.blocks[: self.rows]
        if self._blocks is None:
            block = self.x.dense()[: self.far]
            kept = block.new_empty(self.rows, self.order * self.x.width)
            for j, part in enumerate(torch.split(kept, self.x.width, dim=1)):
                part.copy_(block[: self.rows])
                if j + 1 < self.order:
                    block = self.hops.step(self.k + self.order - 2 - j).product(block)
            del block
            self._blocks = kept
            self.x.release()
            self.hops.release()
        return self._blocks

    def forward(self, weight: Tensor) -> Tensor:
        return self.blocks @ weight

    def backward(self, gradient: Tensor) -> Tensor:
        return self.blocks.T @ gradient

    def cost(self) -> Cost:
        inner = self.order * self.x.width
        kept = 0 if self._whole is not None else self.rows * inner
        return gemm_cost(self.rows, inner, self.hidden) + resident(kept)

    def preparation(self) -> Cost:
        return temporary(2 * self.far * self.x.width) + self.diffusions_cost(self.x.width)


class Horner(FirstLayer):
    """The form by Horner's rule, from the last block to the first, which keeps no block."""

    def forward(self, weight: Tensor) -> Tensor:
        inside: Tensor | None = None
        for j, part in reversed(list(enumerate(self.parts(weight), start=self.k))):
            z = self.x.product(self.hops.sizes[j], part)
            inside = z if inside is None else self.hops.step(j).add_product_(z, inside)
        assert inside is not None
        return inside

    def backward(self, gradient: Tensor) -> Tensor:
        # From the first block to the last: the gradient spreads over the rows that it reaches.
        result = gradient.new_empty(self.order * self.x.width, gradient.shape[1])
        for j, part in enumerate(self.parts(result), start=self.k):
            part.copy_(self.x.transposed(gradient))
            if j + 1 < self.k + self.order:
                gradient = self.hops.step(j).T.product(gradient)
        return result

    def cost(self) -> Cost:
        total = temporary(3 * self.far * self.hidden)
        for j in range(self.k, self.k + self.order):
            total += self.x.cost(self.hops.sizes[j], self.hidden)
        return total + self.diffusions_cost(self.hidden, passes=2)


class Blocks(FirstLayer):
    """One block at a time; for evaluation, so it has no gradient."""

    def forward(self, weight: Tensor) -> Tensor:
        block = self.x.dense()[: self.far]
        first, *others = self.parts(weight)
        total = block[: self.rows] @ first
        for j, part in enumerate(others, start=1):
            block = self.hops.step(self.k + self.order - 1 - j).product(block)
            total.addmm_(block[: self.rows], part)
        return total

    def backward(self, gradient: Tensor) -> Tensor:
        raise NotImplementedError("blocks that are not kept have no gradient")

    def cost(self) -> Cost:
        held = temporary(2 * self.far * self.x.width + self.rows * self.hidden)
        products = gemm_cost(self.rows, self.x.width, self.hidden) * self.order
        return held + self.diffusions_cost(self.x.width) + products


def cheapest(forms: Iterable[FirstLayer]) -> FirstLayer:
    """The form that takes least time over a run, of those that do not need too much memory."""
    forms = list(forms)
    fitting = [form for form in forms if form.cost().kept <= MOST_KEPT] or forms
    return min(
        fitting,
        key=lambda form: USUAL_EPOCHS * form.cost().seconds() + form.preparation().seconds(),
    )


class _Applied(torch.autograd.Function):
    """The product as a function of W; its value may be known already."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, product: FirstLayer, value: Tensor | None) -> Tensor:
        ctx.product = product
        return product.forward(weight) if value is None else value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.product.backward(gradient), None, None


def first_layer_product(product: FirstLayer, weight: Tensor, value: Tensor | None = None) -> Tensor:
    """The product with gradients for W; `value` if it was computed before for the same W."""
    result: Tensor = _Applied.apply(weight, product, value)  # type: ignore[no-untyped-call]
    return result


class KrylovForward(Forward):
    """A `TruncatedKrylov` during one run; arguments as for `Forward`."""

    network: TruncatedKrylov

    def __init__(self, load: Workload) -> None:
        super().__init__(load)
        self._training = self._product(self.nodes.training, KeptBlocks, Horner)
        self._scored = self._product(self.nodes.scored, KeptBlocks, Horner)
        if (
            isinstance(self._training, KeptBlocks)
            and isinstance(self._scored, KeptBlocks)
            and self._scored.k == 0
        ):
            self._training.share(self._scored)  # scored nodes are training nodes, then others
        # Where the rows that training needs of the first layer are among those of scoring.
        near = self._training.hops.nodes(self._training.k)
        self._where = self._scored.hops.places(near)
        self._before: Tensor | None = None

    def training(self) -> Tensor:
        """Logits of the training nodes, from the first layer's product that was scored last."""
        before = None if self._before is None else self._before[self._where]
        self._before = None
        z = first_layer_product(self._training, self.network.first.weight, before)
        return self._from_first(z, self._training)

    def scored(self) -> Tensor:
        """Logits of the scored nodes; the first layer's product is kept for the next step."""
        self._before = first_layer_product(self._scored, self.network.first.weight)
        return self._from_first(self._before, self._scored)

    def everything(self) -> Tensor:
        """Logits of every node, by blocks or by Horner's rule; nothing is kept."""
        product = self._product(torch.arange(self.L.n, device=self.x.device), Blocks, Horner)
        return self._from_first(first_layer_product(product, self.network.first.weight), product)

    def cost(self) -> Cost:
        """Cost of the gradient of one form, the value of the other, and the layers after both."""
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
