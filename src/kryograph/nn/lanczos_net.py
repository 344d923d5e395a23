r"""LanczosNet: short diffusions exactly, long ones in a Krylov space, through a learned filter.

.. math::
    H_{l+1} = f(\tfrac{1}{\sqrt{M + E}} [S^{s_1} H_l, \dots, S^{s_M} H_l,
        Q \hat T_1 Q^T H_l, \dots, Q \hat T_E Q^T H_l] W_l + b_l), \quad
    \hat T_e = g_e(T^{t_1}, \dots, T^{t_E})

S is the symmetric operator; Q and T, a basis and the projection of S on it, come from K steps of
Lanczos in every component (`kryograph.krylov.lanczos`). s are the short scales, t the long ones, g
is the filter. No N × N matrix is formed and no block S^s X: the product with W comes first, so that
seven diffusions serve all short scales (Horner's rule) and Q T̂ Qᵀ is three products.

With `rw`, D̃⁻¹ Ã = c⁻¹ S c for c = D̃^{1/2}: rows are multiplied by c before and divided by it after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kryograph.errors import check_known
from kryograph.krylov.lanczos import Components, LanczosBasis, Multiplies, lanczos, symmetric
from kryograph.nn.functional import (
    Dense,
    Layer,
    Masks,
    NodeFeatures,
    glorot_,
    horner,
    reset_children,
)
from kryograph.nn.network import Stack
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix

SHORT, LONG = (1, 2, 5, 7), (10, 20, 30)
"""Scales of LanczosNet on citation graphs."""


class PowerFilter(nn.Module):
    """The powers T^t without a filter; a basis of P components gives P × E × K × K numbers.

    `scales` are the E exponents t, `steps` is K. A learned filter has a hidden layer of width
    `hidden`, and `rate` is its learning rate, relative to the weight of the layer.
    """

    def __init__(self, scales: Sequence[int], steps: int, hidden: int, rate: float = 1.0) -> None:
        super().__init__()
        self.scales, self.rate = tuple(scales), rate

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again, if there are any; None draws from torch's generator."""

    def forward(self, basis: LanczosBasis, dtype: torch.dtype) -> Tensor:
        return basis.powers(self.scales).to(dtype)


class _LearnedFilter(PowerFilter):
    """Powers plus the output of a network with one hidden layer, which starts at zero.

    Without the powers the filter would start as noise, which small training sets do not unlearn.
    """

    whole_matrix: ClassVar[bool] = False
    """Whether all entries of a power enter the network together; otherwise one Ritz value."""

    def __init__(self, scales: Sequence[int], steps: int, hidden: int, rate: float = 1.0) -> None:
        super().__init__(scales, steps, hidden, rate)
        width = len(self.scales) * (steps**2 if self.whole_matrix else 1)
        self.first, self.second = Dense(width, hidden), Dense(hidden, width)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        reset_children(self, generator)
        with torch.no_grad():
            self.second.weight.zero_()

    def filtered(self, x: Tensor) -> Tensor:
        """Add the output of the network to its input x."""
        x = x.to(self.first.weight.dtype)
        hidden = torch.relu(self.first(x))
        # A step of Adam moves every weight by the learning rate: a sum over many hidden units
        # would move the filter by many times that, a mean does not.
        out: Tensor = x + self.second(hidden) * (self.rate / hidden.shape[1])
        return out


class RitzFilter(_LearnedFilter):
    """Applies the same network to the powers of each Ritz value (LanczosNet)."""

    def forward(self, basis: LanczosBasis, dtype: torch.dtype) -> Tensor:
        # B R̂ Bᵀ for T = B R Bᵀ
        values, vectors = basis.ritz
        filtered = self.filtered(torch.stack([values**t for t in self.scales], dim=-1)).to(dtype)
        b = vectors.to(dtype)[:, None]
        return (b * filtered.permute(0, 2, 1)[:, :, None, :]) @ b.mT


class MatrixFilter(_LearnedFilter):
    """Applies one network to all entries of all powers (AdaLanczosNet).

    It needs no eigenvectors, whose gradients are unbounded where eigenvalues meet. The result is
    the upper triangle of the network's output and its mirror image.
    """

    whole_matrix = True

    def forward(self, basis: LanczosBasis, dtype: torch.dtype) -> Tensor:
        powers = super().forward(basis, dtype)
        upper = self.filtered(powers.flatten(1)).view(powers.shape).triu().to(dtype)
        return upper + upper.triu(1).mT


RITZ_FILTERS: dict[str, type[PowerFilter]] = {
    "ritz": RitzFilter,
    "matrix": MatrixFilter,
    "none": PowerFilter,
}


class LanczosConv(Layer):
    r"""One layer of LanczosNet, without the activation; the filter makes T̂ of T.

    Shapes:
        - **input:** features (N, in_channels), S (N × N), its basis, c (N × 1) or None
        - **output:** (N, out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, filter: PowerFilter, short: Sequence[int] = SHORT
    ) -> None:
        # The weights of all blocks side by side: one product computes what every scale diffuses.
        self.blocks, self.short = len(short) + len(filter.scales), tuple(short)
        super().__init__(in_channels, out_channels, columns=self.blocks)
        self.filter = filter

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again: those of each block as Glorot, all blocks in one draw."""
        glorot_(self.weight, self.bias, generator, self.in_channels + self.out_channels)
        reset_children(self, generator)

    def forward(
        self, x: NodeFeatures, S: Multiplies, basis: LanczosBasis, scale: Tensor | None
    ) -> Tensor:
        # The blocks are almost copies of each other: without the root, a step of the optimiser
        # would move their sum so far that ReLUs die.
        z = x @ (self.weight / math.sqrt(self.blocks))
        z = z if scale is None else z * scale.to(z.dtype)
        parts = torch.split(z, self.out_channels, dim=1)
        terms = dict(zip(self.short, parts, strict=False))
        out = horner(S, terms) if terms else torch.zeros_like(parts[0])
        if self.filter.scales:
            c = basis.project(z[:, len(terms) * self.out_channels :])
            c = c.view(*c.shape[:2], -1, self.out_channels).transpose(1, 2)
            out = out + basis.expand((self.filter(basis, c.dtype) @ c).sum(dim=1))
        return self.plus_bias(out if scale is None else out / scale.to(out.dtype))


def double(x: NodeFeatures) -> NodeFeatures:
    """Convert dense or sparse features to float64."""
    return x.with_values(x.values.double()) if isinstance(x, SparseMatrix) else x.double()


class LanczosNet(Stack):
    """A stack of `LanczosConv` layers on one basis, with ReLU between them.

    The start vector of Lanczos is X r with a random r, so that permuted nodes have a permuted
    basis. r is drawn with the weights and stored with them. Arguments not listed here are those of
    `Stack`.

    Args:
        steps: K, the dimension of the Krylov space in each component.
        short: Scales of exact diffusions.
        long: Scales of diffusions in the Krylov space.
        filter: "ritz", "matrix" or "none".
        filter_hidden: Width of the hidden layer of the filter.
        filter_rate: Learning rate of the filter, relative to that of the other weights.
        drop_features: Whether dropout acts on the features as well.
    """

    start: Tensor

    def __init__(
        self,
        *sizes: int,
        steps: int = 20,
        short: Sequence[int] = SHORT,
        long: Sequence[int] = LONG,
        filter: str = "ritz",
        filter_hidden: int = 128,
        filter_rate: float = 0.1,
        drop_features: bool = True,
        **options: Any,
    ) -> None:
        check_known("filter", filter, RITZ_FILTERS)

        def conv(inward: int, outward: int) -> LanczosConv:
            learned = RITZ_FILTERS[filter](long, steps, filter_hidden, filter_rate)
            return LanczosConv(inward, outward, learned, short)

        super().__init__(conv, *sizes, **options)
        self.steps, self.drop_features = steps, drop_features
        self.register_buffer("start", torch.empty(sizes[0]))
        if not self.start.is_meta:
            self.start.normal_()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the start vector and the weights again."""
        self.start.normal_(generator=generator)
        super().reset_parameters(generator)

    def start_vector(self, x: NodeFeatures) -> Tensor:
        """Compute X r in float64, because rounding errors in it grow from step to step."""
        return (double(x) @ self.start.double()[:, None])[:, 0]

    def prepare(
        self, x: NodeFeatures, L: Operator
    ) -> tuple[Multiplies, LanczosBasis, Tensor | None]:
        """Compute S, its basis and c, which stay the same in all epochs."""
        S, scale = symmetric(L)
        basis = lanczos(S, self.start_vector(x), self.steps, Components.of(S.matrix, x.device))
        return S, basis, None if scale is None else scale.to(x.device)[:, None]

    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        return self.through_layers(x, masks, *self.prepare(x, L))
