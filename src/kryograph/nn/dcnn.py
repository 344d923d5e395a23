r"""Diffusion-convolutional networks, as published and as LanczosNet's authors have them.

Atwood and Towsley weigh each feature of each power by a number of its own:

.. math:: Z_j = \tanh(w_j \circ L^j X), \quad \text{logits} = [Z_0, Z_1, \dots, Z_H] V + b

LanczosNet's comparison stacks layers of several powers with full weights:

.. math:: H_{l+1} = f\Big(\sum_s L^s H_l W_{l,s} + b_l\Big)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from kryograph.krylov.powers import krylov_blocks
from kryograph.nn.functional import Diffusion, Masks, Matrix, check_rate, dropout, glorot_


class DCNN(nn.Module):
    r"""The original: a logistic regression on :math:`\tanh(w_j \circ L^j X)`, j = 0 … H.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Number of classes.
        hops: H.
        dropout: Rate, on the Z_j.

    Shapes:
        - **input:** features (N, F) dense or sparse, an operator
        - **output:** logits (N, out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, hops: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = check_rate(dropout)
        self.scale = nn.Parameter(torch.empty(hops + 1, in_channels))
        self.weight = nn.Parameter(torch.empty((hops + 1) * in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        glorot_(self.weight, self.bias, generator)
        with torch.no_grad():
            self.scale.uniform_(0.5, 1.5, generator=generator)

    def of_blocks(
        self, blocks: Iterable[Tensor], masks: Masks, nodes: Tensor | None = None
    ) -> Tensor:
        """Logits given X, LX, …, or rows of them: `nodes` says whose."""
        logits: Tensor = self.bias
        parts = torch.split(self.weight, self.scale.shape[1])
        for hop, (block, scale, part) in enumerate(zip(blocks, self.scale, parts, strict=True)):
            z = torch.tanh(scale * block)
            z = dropout(z, self.dropout, masks, hop, nodes) if self.training else z
            logits = logits + z @ part
        return logits

    def forward(self, x: Matrix, L: Diffusion, *, masks: Masks | None = None) -> Tensor:
        """Logits of every node; in training, dropout asks `masks` what to keep."""
        return self.of_blocks(krylov_blocks(L, x, len(self.scale)), masks or Masks())


class ScalesConv(nn.Module):
    r"""A layer of several powers, :math:`\sum_s L^s X W_s + b`, by Horner's rule.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        scales: The powers s, in increasing order.

    Shapes:
        - **input:** features (N, F) dense or sparse, an operator
        - **output:** (N, out_channels)
        - **weight:** the W_s side by side, (F, len(scales) · out_channels)
    """

    def __init__(self, in_channels: int, out_channels: int, scales: Sequence[int]) -> None:
        super().__init__()
        if not scales or scales[0] < 0 or sorted(set(scales)) != list(scales):
            raise ValueError(f"scales are powers in increasing order, not {list(scales)}")
        self.scales, self.out_channels = tuple(scales), out_channels
        self.weight = nn.Parameter(torch.empty(in_channels, len(scales) * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew: all powers are one layer's input."""
        rows = len(self.scales) * len(self.weight)
        bound = (6 / (rows + self.out_channels)) ** 0.5
        with torch.no_grad():
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.zero_()

    def forward(self, x: Matrix, L: Diffusion) -> Tensor:
        """The layer's output for every node."""
        terms = torch.split(x @ self.weight, self.out_channels, dim=1)
        waiting = dict(zip(self.scales, terms, strict=True))
        out = terms[-1]
        for power in reversed(range(self.scales[-1])):
            out = L @ out
            if power in waiting:
                out = out + waiting[power]
        return out + self.bias
