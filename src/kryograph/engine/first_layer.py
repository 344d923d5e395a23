r"""The first layer's product K_m(L, X) W on some rows, in three forms that give the same numbers.

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

from kryograph.engine.cost import USUAL_EPOCHS, Cost, gemm_cost, resident, spmm_cost, temporary
from kryograph.engine.hops import FeatureRows, Hops

MOST_KEPT = 4 * 2**30
"""Bytes of blocks that may be kept, however fast they would be."""


class FirstLayer(ABC):
    """K_m(L, X)[T_k] W for a constant graph.

    Args:
        x: Features of T_{k + m - 1} at least, in the order of the hops.
        hops: T₀, T₁ …
        k: Which of them.
        order: m, the number of blocks.
        hidden: Columns of W; for the costs.
    """

    def __init__(self, x: FeatureRows, hops: Hops, k: int, order: int, hidden: int) -> None:
        self.x, self.hops, self.k, self.order, self.hidden = x, hops, k, order, hidden
        self.rows = hops.sizes[k]

    def parts(self, weight: Tensor) -> tuple[Tensor, ...]:
        """W_0 … W_{m-1}."""
        return torch.split(weight, self.x.width)

    @abstractmethod
    def forward(self, weight: Tensor) -> Tensor:
        """The product."""

    @abstractmethod
    def backward(self, gradient: Tensor) -> Tensor:
        """K_m(L, X)[T_k]ᵀ times a gradient."""

    @abstractmethod
    def cost(self) -> Cost:
        """Of either of them."""

    def preparation(self) -> Cost:
        """What has to be done once."""
        return Cost()


class KeptBlocks(FirstLayer):
    """Keeps the rows."""

    _blocks: Tensor | None = None
    _whole: KeptBlocks | None = None

    def share(self, whole: KeptBlocks) -> None:
        """Take the blocks from another product, whose first rows are these."""
        self._whole = whole

    @property
    def blocks(self) -> Tensor:
        """K_m(L, X)[T_k]."""
        if self._whole is not None:
            return self._whole.blocks[: self.rows]
        if self._blocks is None:
            block = self.x.dense()[: self.hops.sizes[self.k + self.order - 1]]
            kept = block.new_empty(self.rows, self.order * self.x.width)
            for j, part in enumerate(torch.split(kept, self.x.width, dim=1)):
                part.copy_(block[: self.rows])
                if j + 1 < self.order:
                    block = self.hops.step(self.k + self.order - 2 - j).product(block)
            self._blocks = kept
        return self._blocks

    def forward(self, weight: Tensor) -> Tensor:
        """One dense product."""
        return self.blocks @ weight

    def backward(self, gradient: Tensor) -> Tensor:
        """One dense product."""
        return self.blocks.T @ gradient

    def cost(self) -> Cost:
        """The dense product, and the memory of the blocks."""
        inner = self.order * self.x.width
        kept = 0 if self._whole is not None else self.rows * inner
        return gemm_cost(self.rows, inner, self.hidden) + resident(kept)

    def preparation(self) -> Cost:
        """Each block from the last."""
        far = self.hops.sizes[self.k + self.order - 1]
        steps = range(self.k, self.k + self.order - 1)
        products = (spmm_cost(self.hops.nnz(j), self.hops.sizes[j], self.x.width) for j in steps)
        return sum(products, temporary(2 * far * self.x.width))


class Horner(FirstLayer):
    """From the inside out."""

    def forward(self, weight: Tensor) -> Tensor:
        """X W_k plus L times what is inside, from the last block to the first."""
        inside: Tensor | None = None
        for j, part in reversed(list(enumerate(self.parts(weight), start=self.k))):
            z = self.x.product(self.hops.sizes[j], part)
            inside = z if inside is None else self.hops.step(j).add_product_(z, inside)
        assert inside is not None
        return inside

    def backward(self, gradient: Tensor) -> Tensor:
        """From the first block to the last: the gradient spreads over the rows it reaches."""
        result = gradient.new_empty(self.order * self.x.width, gradient.shape[1])
        for j, part in enumerate(self.parts(result), start=self.k):
            part.copy_(self.x.transposed(gradient))
            if j + 1 < self.k + self.order:
                gradient = self.hops.step(j).T.product(gradient)
        return result

    def cost(self) -> Cost:
        """A product with X and one with L for every block."""
        total = temporary(3 * self.hops.sizes[self.k + self.order - 1] * self.hidden)
        for j in range(self.k, self.k + self.order):
            total += self.x.cost(self.hops.sizes[j], self.hidden)
        for j in range(self.k, self.k + self.order - 1):
            total += spmm_cost(self.hops.nnz(j), 2 * self.hops.sizes[j], self.hidden)
        return total


class Blocks(FirstLayer):
    """One block at a time; for evaluation, so it has no gradient."""

    def forward(self, weight: Tensor) -> Tensor:
        """The sum of L^k X W_k."""
        block = self.x.dense()[: self.hops.sizes[self.k + self.order - 1]]
        total: Tensor | None = None
        for j, part in enumerate(self.parts(weight)):
            if total is None:
                total = block[: self.rows] @ part
            else:
                block = self.hops.step(self.k + self.order - 1 - j).product(block)
                total.addmm_(block[: self.rows], part)
        assert total is not None
        return total

    def backward(self, gradient: Tensor) -> Tensor:
        """Not used."""
        raise NotImplementedError("blocks that are not kept have no gradient")

    def cost(self) -> Cost:
        """A product with L and one with W for every block."""
        far = self.hops.sizes[self.k + self.order - 1]
        total = temporary(2 * far * self.x.width + self.rows * self.hidden)
        for j in range(self.k, self.k + self.order - 1):
            total += spmm_cost(self.hops.nnz(j), self.hops.sizes[j], self.x.width)
        for _ in range(self.order):
            total += gemm_cost(self.rows, self.x.width, self.hidden)
        return total


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
