r"""Diffusion-convolutional networks, as published and as LanczosNet's authors have them.

Atwood and Towsley weigh each feature of each power by a number of its own:

.. math:: Z_j = \tanh(w_j \circ L^j X), \quad \text{logits} = [Z_0, Z_1, \dots, Z_H] V + b

LanczosNet's comparison stacks layers of several powers with full weights:

.. math:: H_{l+1} = f\Big(\sum_s L^s H_l W_{l,s} + b_l\Big)

DCNN: diffused features, each with a weight of its own; or LanczosNet's layers of powers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.engine.cost import Cost
from kryograph.engine.forward import Forward, Nodes, WholeGraph
from kryograph.engine.tracing import trace_epoch
from kryograph.errors import UsageError
from kryograph.krylov.power_blocks import krylov_blocks
from kryograph.nn.functional import Diffusion, Masks, NodeFeatures, check_rate, dropout, glorot_
from kryograph.nn.stack import Stack
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


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

    def forward(self, x: NodeFeatures, L: Diffusion, *, masks: Masks | None = None) -> Tensor:
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

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        """The layer's output for every node."""
        terms = torch.split(x @ self.weight, self.out_channels, dim=1)
        waiting = dict(zip(self.scales, terms, strict=True))
        out = terms[-1]
        for power in reversed(range(self.scales[-1])):
            out = L @ out
            if power in waiting:
                out = out + waiting[power]
        return out + self.bias


def powers(text: str) -> tuple[int, ...]:
    """The powers that a text such as "1,2,5" names.

    >>> powers("1,2,5")
    (1, 2, 5)
    """
    wrong = UsageError(f"Scales are increasing powers such as '1,2,5', not {text!r}.")
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise wrong from None
    if found[0] < 0 or found[-1] >= 1000 or sorted(set(found)) != list(found):
        raise wrong
    return found


@dataclass(frozen=True)
class DCNNSettings(NetworkSettings):
    """Settings of DCNN, both variants."""

    hidden: int = inherited(
        NetworkSettings, "hidden", 64, "width of each hidden layer; the original has none"
    )
    layers: int = inherited(
        NetworkSettings, "layers", 1, "number of hidden layers; the original has none"
    )
    dropout: float = inherited(
        NetworkSettings, "dropout", 0.5, "rate, on what linear maps see; none in the original"
    )
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4)
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    variant: str = setting(
        "lanczosnet",
        "the original, or that of LanczosNet's comparison (Liao and others 2019; stronger under "
        "validation)",
        choices=("original", "lanczosnet"),
    )
    hops: int = setting(
        3, "H of the original, its default", low=0, below=1000, search=(1, 2, 3, 4, 5)
    )
    scales: str = setting(
        "1,2,5,7",
        "powers of LanczosNet's variant: LanczosNet's own short scales on citation graphs",
        search=("1,2", "1,2,5,7", "1,2,5,7,10"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        powers(self.scales)


@register(
    "dcnn",
    summary="Powers of the operator on the features, each with weights of its own.",
    paper="Atwood, Towsley: Diffusion-Convolutional Neural Networks. NeurIPS 2016",
    equation="original: logits = [tanh(w_j ∘ L^j X)]_j V + b; lanczosnet: "
    "H_{l+1} = ReLU(Σ_s L^s H_l W_{l,s} + b_l)",
    settings=DCNNSettings,
)
class DCNNSystem(NetworkSystem):
    """L has self-loops, as everywhere here."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        if s.variant == "original":
            return DCNN(features, classes, s.hops, dropout=s.dropout)
        conv = partial(ScalesConv, scales=powers(s.scales))
        return Stack(conv, features, s.hidden, classes, s.layers, dropout=s.dropout)

    def engine(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> Forward:
        """The original on the rows that a step needs: nothing is diffused after the weights."""
        form = KeptRows if isinstance(network, DCNN) else WholeGraph
        return form(network, x, L, nodes, masks)


class KeptRows(Forward):
    """The original DCNN, whose diffused features do not change: their rows are kept."""

    def __init__(
        self, network: nn.Module, x: NodeFeatures, L: Operator, nodes: Nodes, masks: Masks
    ) -> None:
        super().__init__(network, x, L, nodes, masks)
        self.rows: list[Tensor] | None = None

    def _logits(self, first: int, masks: Masks) -> Tensor:
        """Those of the first of the scored nodes."""
        assert isinstance(self.network, DCNN)
        scored = self.nodes.scored
        if self.rows is None:
            # Made by the first step: an estimate needs no features.
            blocks = krylov_blocks(self.L, self.x, len(self.network.scale))
            self.rows = [block[scored] for block in blocks]
        rows = (block[:first] for block in self.rows)
        return self.network.of_blocks(rows, masks, scored[:first])

    def training(self) -> Tensor:
        """Of the training nodes, which come first."""
        return self._logits(self.nodes.training.numel(), self.masks)

    def scored(self) -> Tensor:
        """Of training and validation nodes."""
        return self._logits(self.nodes.scored.numel(), self.masks)

    def cost(self) -> Cost:
        assert isinstance(self.network, DCNN)
        twin = copy(self)
        shape = (self.nodes.scored.numel(), self.x.shape[1])
        twin.rows = [torch.empty(shape, device="meta") for _ in self.network.scale]
        return trace_epoch(twin)
