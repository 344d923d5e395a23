r"""DCNN: diffusion-convolutional networks, as published and as in LanczosNet's comparison.

Atwood and Towsley multiply each feature of each power by a weight of its own:

.. math:: Z_j = \tanh(w_j \circ L^j X), \quad \text{logits} = [Z_0, Z_1, \dots, Z_H] V + b

LanczosNet's comparison stacks layers of several powers s with full weights:

.. math:: H_{l+1} = f\Big(\sum_s L^s H_l W_{l,s} + b_l\Big)

X = H_0 are the features, L is the operator, with self-loops in both variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from kryograph.engine.cost import Cost
from kryograph.engine.forward import Forward, Workload
from kryograph.engine.tracing import trace_epoch
from kryograph.errors import UsageError
from kryograph.krylov.bases import krylov_blocks
from kryograph.nn.functional import (
    Diffusion,
    Layer,
    Masks,
    NodeFeatures,
    check_rate,
    dropout,
    glorot_,
    horner,
)
from kryograph.nn.network import Network, Stack
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.network import KipfSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


class DCNN(Network):
    r"""The original: a logistic regression on :math:`\tanh(w_j \circ L^j X)`, j = 0, …, `hops`."""

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
        glorot_(self.weight, self.bias, generator)
        with torch.no_grad():
            self.scale.uniform_(0.5, 1.5, generator=generator)

    @property
    def output_layer(self) -> None:
        """There is no hidden layer: logits come from the diffused features directly."""
        return None

    def logits(self, x: NodeFeatures, L: Operator, masks: Masks) -> Tensor:
        return self.of_blocks(krylov_blocks(L, x, len(self.scale)), masks)

    def of_blocks(
        self, blocks: Iterable[Tensor], masks: Masks, nodes: Tensor | None = None
    ) -> Tensor:
        """Logits from X, LX, …, or from the rows of these that belong to `nodes`."""
        logits: Tensor = self.bias
        parts = torch.split(self.weight, self.scale.shape[1])
        for hop, (block, scale, part) in enumerate(zip(blocks, self.scale, parts, strict=True)):
            z = torch.tanh(scale * block)
            z = dropout(z, self.dropout, masks, hop, nodes) if self.training else z
            logits = logits + z @ part
        return logits


class ScalesConv(Layer):
    r"""A layer of several powers, :math:`\sum_s L^s X W_s + b`, by Horner's rule.

    The weight holds the W_s side by side, (F, len(scales) · out_channels).
    """

    def __init__(self, in_channels: int, out_channels: int, scales: Sequence[int]) -> None:
        if not scales or scales[0] < 0 or sorted(set(scales)) != list(scales):
            raise ValueError(f"scales are powers in increasing order, not {list(scales)}")
        self.scales = tuple(scales)  # before the weights are drawn
        super().__init__(in_channels, out_channels, columns=len(scales))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; all powers together count as the input of Glorot's bound."""
        widths = len(self.scales) * self.in_channels + self.out_channels
        glorot_(self.weight, self.bias, generator, widths)

    def forward(self, x: NodeFeatures, L: Diffusion) -> Tensor:
        terms = torch.split(x @ self.weight, self.out_channels, dim=1)
        return self.plus_bias(horner(L, dict(zip(self.scales, terms, strict=True))))


def parse_powers(text: str) -> tuple[int, ...]:
    """Read increasing powers from a text.

    >>> parse_powers("1,2,5")
    (1, 2, 5)
    """
    wrong = UsageError(f"Scales are increasing powers such as '1,2,5', not {text!r}.")
    try:
        powers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise wrong from None
    if powers[0] < 0 or powers[-1] >= 1000 or sorted(set(powers)) != list(powers):
        raise wrong
    return powers


@dataclass(frozen=True)
class DCNNSettings(KipfSettings):
    """Settings of DCNN, both variants."""

    hidden: int = inherited(
        KipfSettings, "hidden", 64, "width of each hidden layer; the original has none"
    )
    layers: int = inherited(
        KipfSettings, "layers", 1, "number of hidden layers; the original has none"
    )
    dropout: float = inherited(
        KipfSettings, "dropout", 0.5, "rate, on what linear maps see; none in the original"
    )
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
        parse_powers(self.scales)


@register(
    "dcnn",
    summary="Powers of the operator on the features, each with weights of its own.",
    paper="Atwood, Towsley: Diffusion-Convolutional Neural Networks. NeurIPS 2016",
    equation="original: logits = [tanh(w_j ∘ L^j X)]_j V + b; lanczosnet: "
    "H_{l+1} = ReLU(Σ_s L^s H_l W_{l,s} + b_l)",
    settings=DCNNSettings,
)
class DCNNSystem(NetworkSystem[DCNNSettings]):
    """System of the network `DCNN`, or of a stack of `ScalesConv` layers."""

    def network(self, features: int, classes: int) -> Network:
        s = self.settings
        if s.variant == "original":
            return DCNN(features, classes, s.hops, dropout=s.dropout)
        conv = partial(ScalesConv, scales=parse_powers(s.scales))
        return Stack(conv, *self.sizes(features, classes), dropout=s.dropout)

    def fast_forward(self, load: Workload) -> Forward | None:
        return KeptRows(load) if isinstance(load.network, DCNN) else None


class KeptRows(Forward):
    """Form of the original DCNN that keeps the needed rows of X, LX, …, which never change."""

    network: DCNN
    rows: list[Tensor] | None = None
    """Rows of the scored nodes in each block; None until they are first needed."""

    def _logits(self, first: int) -> Tensor:
        """Logits of the first of the scored nodes."""
        scored = self.nodes.scored
        if self.rows is None:
            blocks = krylov_blocks(self.L, self.x, len(self.network.scale))
            self.rows = [block[scored] for block in blocks]
        rows = (block[:first] for block in self.rows)
        return self.network.of_blocks(rows, self.masks, scored[:first])

    def training(self) -> Tensor:
        return self._logits(self.nodes.training.numel())

    def scored(self) -> Tensor:
        return self._logits(self.nodes.scored.numel())

    def cost(self) -> Cost:
        twin = copy(self)
        shape = (self.nodes.scored.numel(), self.x.shape[1])
        twin.rows = [torch.empty(shape, device="meta") for _ in self.network.scale]
        return trace_epoch(twin)
