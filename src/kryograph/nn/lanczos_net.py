r"""LanczosNet: short diffusions exactly, long ones in a Krylov space, through a learned filter.

.. math::
    H_{l+1} = f(\tfrac{1}{\sqrt{M + E}} [S^{s_1} H_l, \dots, S^{s_M} H_l,
        Q \hat T_1 Q^T H_l, \dots, Q \hat T_E Q^T H_l] W_l + b_l), \quad
    \hat T_e = g_e(T^{t_1}, \dots, T^{t_E})

Q and T are from Lanczos (`kryograph.krylov`). No N × N matrix is made, and no block S^s X: weights
are multiplied first, then 7 diffusions serve all short scales (Horner), and Q̂TQᵀ is three products.

With `rw`, D̃⁻¹ Ã = c⁻¹ S c for c = D̃^{1/2}: rows are multiplied by c before and divided by it after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from kryograph.errors import unknown
from kryograph.krylov.lanczos import Basis, Components, Multiplies, lanczos, symmetric
from kryograph.nn.functional import Dense, Masks, NodeFeatures, as_operator, dropout
from kryograph.nn.network import Layered
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix

SHORT, LONG = (1, 2, 5, 7), (10, 20, 30)
"""The scales of LanczosNet on citation graphs."""


class PowerFilter(nn.Module):
    """No filter: the powers T^t themselves; P parts, (P × K × K) → P × E × K × K.

    Args:
        scales: The exponents t.
        steps: K.
        hidden: Width of the filter's hidden layer, if it has one.
        rate: How fast the filter learns; 1 is as fast as a weight of the layer.
    """

    def __init__(self, scales: Sequence[int], steps: int, hidden: int, rate: float = 1.0) -> None:
        super().__init__()
        self.scales = tuple(scales)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Nothing is drawn."""

    def forward(self, basis: Basis, dtype: torch.dtype) -> Tensor:
        """What stands between Q and Qᵀ."""
        return basis.powers(self.scales).to(dtype)


class _LearnedFilter(PowerFilter):
    """What a network with one hidden layer adds to the powers; nothing, to begin with.

    Without the powers the filter starts as noise, which small training sets do not unlearn.
    """

    def __init__(self, scales: Sequence[int], steps: int, hidden: int, rate: float = 1.0) -> None:
        super().__init__(scales, steps, hidden)
        self.rate = rate
        width = len(self.scales) * self.entries(steps)
        self.first, self.second = Dense(width, hidden), Dense(hidden, width)
        self.reset_parameters()

    @staticmethod
    def entries(steps: int) -> int:
        """How many numbers of each power go into the filter at a time."""
        raise NotImplementedError

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        self.first.reset_parameters(generator)
        self.second.reset_parameters(generator)
        with torch.no_grad():
            self.second.weight.zero_()

    def learned(self, x: Tensor) -> Tensor:
        """The input, and what the network adds to it."""
        x = x.to(self.first.weight.dtype)
        hidden = torch.relu(self.first(x))
        # A step of Adam moves every weight by its learning rate: a sum over many hidden units
        # would move the filter by many times that, a mean does not.
        out: Tensor = x + self.second(hidden) * (self.rate / hidden.shape[1])
        return out


class RitzFilter(_LearnedFilter):
    """Each Ritz value's powers go through the same network (LanczosNet)."""

    @staticmethod
    def entries(steps: int) -> int:
        """A Ritz value at a time."""
        return 1

    def forward(self, basis: Basis, dtype: torch.dtype) -> Tensor:
        """B R̂ Bᵀ, for T = B R Bᵀ."""
        values, vectors = basis.ritz
        filtered = self.learned(torch.stack([values**t for t in self.scales], dim=-1)).to(dtype)
        b = vectors.to(dtype)[:, None]
        return (b * filtered.permute(0, 2, 1)[:, :, None, :]) @ b.mT


class MatrixFilter(_LearnedFilter):
    """All entries of all powers go through one network (AdaLanczosNet).

    No eigenvectors, whose gradients are unbounded where eigenvalues meet.
    """

    @staticmethod
    def entries(steps: int) -> int:
        """All of T at once."""
        return steps * steps

    def forward(self, basis: Basis, dtype: torch.dtype) -> Tensor:
        """The upper triangle of what the network says, and its mirror image."""
        powers = super().forward(basis, dtype)
        upper = self.learned(powers.flatten(1)).view(powers.shape).triu().to(dtype)
        return upper + upper.triu(1).mT


RITZ_FILTERS: dict[str, type[PowerFilter]] = {
    "ritz": RitzFilter,
    "matrix": MatrixFilter,
    "none": PowerFilter,
}


class LanczosConv(nn.Module):
    r"""One layer of LanczosNet, without the activation.

    Args:
        in_channels: Size of each node's input.
        out_channels: Size of each node's output.
        filter: What makes T̂ of T.
        short: The scales s.

    Shapes:
        - **input:** features (N, in_channels), S (N × N), its basis, c (N) or None
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        filter: PowerFilter,
        short: Sequence[int] = SHORT,
    ) -> None:
        super().__init__()
        self.filter, self.short = filter, tuple(short)
        self.blocks, self.out_channels = len(self.short) + len(filter.scales), out_channels
        # The blocks' weights side by side: one product makes what all scales diffuse.
        self.weight = nn.Parameter(torch.empty(in_channels, self.blocks * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew: Glorot's, for each block."""
        bound = math.sqrt(6 / (self.weight.shape[0] + self.out_channels))
        with torch.no_grad():
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.zero_()
        self.filter.reset_parameters(generator)

    def forward(self, x: NodeFeatures, S: Multiplies, basis: Basis, scale: Tensor | None) -> Tensor:
        """The layer's output for every node."""
        # The blocks are almost copies of each other: without the root, a step of the optimiser
        # would move their sum so far that ReLUs die.
        z = x @ (self.weight / math.sqrt(self.blocks))
        z = z if scale is None else z * scale.to(z.dtype)
        parts = torch.split(z, self.out_channels, dim=1)
        at = dict(zip(self.short, parts, strict=False))
        out = torch.zeros_like(parts[0])
        for power in range(max(at, default=0), -1, -1):
            out = out + at[power] if power in at else out
            out = S @ out if power > 0 else out
        if self.filter.scales:
            c = basis.project(z[:, len(at) * self.out_channels :])
            c = c.view(*c.shape[:2], -1, self.out_channels).transpose(1, 2)
            out = out + basis.expand((self.filter(basis, c.dtype) @ c).sum(dim=1))
        return (out if scale is None else out / scale.to(out.dtype)) + self.bias


def double(x: NodeFeatures) -> NodeFeatures:
    """Features in float64."""
    return x.with_values(x.values.double()) if isinstance(x, SparseMatrix) else x.double()


class LanczosNet(Layered):
    """A stack of such layers on one basis, ReLU between them.

    The start vector of Lanczos is X r with a random r, so that permuted nodes have a permuted
    basis; r is drawn with the weights and kept beside them.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        layers: Number of hidden layers.
        steps: K, the dimension of the Krylov space in each component.
        short: Scales of the exact diffusions.
        long: Scales of those in the Krylov space.
        filter: "ritz", "matrix" or "none".
        filter_hidden: Width of the filter's hidden layer.
        filter_rate: How fast the filter learns, compared with the other weights.
        dropout: Rate, on the input of every layer.
        drop_features: Whether that includes the features.
        operator: Which L to make of an `edge_index`.

    Shapes:
        - **input:** features (N, F) dense or sparse; `edge_index` (2, E) with `edge_weight` (E), or
          an `Operator`
        - **output:** logits (N, out_channels)
    """

    start: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 1,
        *,
        steps: int = 20,
        short: Sequence[int] = SHORT,
        long: Sequence[int] = LONG,
        filter: str = "ritz",
        filter_hidden: int = 128,
        filter_rate: float = 0.1,
        dropout: float = 0.0,
        drop_features: bool = True,
        operator: str = "sym",
    ) -> None:
        super().__init__("relu", dropout)
        if filter not in RITZ_FILTERS:
            raise unknown("filter", filter, RITZ_FILTERS)
        self.steps, self.operator, self.drop_features = steps, operator, drop_features
        widths = [in_channels, *[hidden_channels] * layers, out_channels]
        self.convs = nn.ModuleList(
            LanczosConv(i, o, RITZ_FILTERS[filter](long, steps, filter_hidden, filter_rate), short)
            for i, o in pairwise(widths)
        )
        self.register_buffer("start", torch.empty(in_channels))
        self.start.normal_()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the start vector and the weights anew."""
        self.start.normal_(generator=generator)
        for conv in self.convs:
            conv.reset_parameters(generator)  # type: ignore[operator]

    def start_vector(self, x: NodeFeatures) -> Tensor:
        """X r in float64: rounding in it would grow from step to step."""
        return (double(x) @ self.start.double()[:, None])[:, 0]

    def prepare(self, x: NodeFeatures, L: Operator) -> tuple[Multiplies, Basis, Tensor | None]:
        """S, its basis and c: what stays the same through all epochs."""
        S, scale = symmetric(L)
        basis = lanczos(S, self.start_vector(x), self.steps, Components.of(S.matrix, x.device))
        return S, basis, None if scale is None else scale.to(x.device)[:, None]

    def forward(
        self,
        x: NodeFeatures,
        edge_index: Operator | Tensor,
        edge_weight: Tensor | None = None,
        *,
        masks: Masks | None = None,
        prepared: tuple[Multiplies, Basis, Tensor | None] | None = None,
    ) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep.

        `prepared` is what `prepare` gives for the same features and operator.
        """
        if prepared is None:
            L = as_operator(edge_index, edge_weight, x.shape[0], self.operator)
            assert isinstance(L, Operator)
            prepared = self.prepare(x, L)
        return self.layers(x, *prepared, masks)

    def layers(
        self,
        h: NodeFeatures,
        S: Multiplies,
        basis: Basis,
        scale: Tensor | None,
        masks: Masks | None,
    ) -> Tensor:
        """All layers on a matrix and its basis."""
        masks = masks or Masks()
        for layer, conv in enumerate(self.convs):
            if layer > 0:
                assert isinstance(h, Tensor)
                h = self.activation(h)
            if self.training and (layer > 0 or self.drop_features):
                h = dropout(h, self.dropout, masks, layer)
            h = conv(h, S, basis, scale)
        assert isinstance(h, Tensor)
        return h
