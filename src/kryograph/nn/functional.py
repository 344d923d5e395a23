"""What the networks share: initialisation, dropout with a named generator, and their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.errors import unknown
from kryograph.operators import Operator, from_edge_index
from kryograph.sparse import SparseMatrix

NodeFeatures: TypeAlias = Tensor | SparseMatrix
"""Node features: a dense tensor, or a constant sparse matrix."""

AnyMatrix = TypeVar("AnyMatrix", Tensor, SparseMatrix, NodeFeatures)

Diffusion: TypeAlias = Operator | SparseMatrix
"""What diffuses: an operator, or some of its rows."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "leaky-relu": nn.functional.leaky_relu,
    "elu": nn.functional.elu,
    "selu": nn.functional.selu,
    "sigmoid": torch.sigmoid,
    "hardshrink": nn.functional.hardshrink,
    "softshrink": nn.functional.softshrink,
    "tanhshrink": nn.functional.tanhshrink,
}


Activation: TypeAlias = str | Callable[[Tensor], Tensor]
"""A pointwise function, or its name."""


def activation(f: Activation) -> Callable[[Tensor], Tensor]:
    """The pointwise function of that name; a function is taken as it is."""
    if not isinstance(f, str):
        return f
    if f not in ACTIVATIONS:
        raise unknown("activation", f, ACTIVATIONS)
    return ACTIVATIONS[f]


def check_rate(rate: float) -> float:
    """A dropout rate, if it is one."""
    if not 0 <= rate < 1:
        raise ValueError(f"a dropout rate lies between 0 and 1 (excluded); it is {rate}")
    return rate


def uniform_(weight: Tensor, bias: Tensor | None, generator: torch.Generator | None) -> None:
    """The authors' initialisation: U(-1/√out, 1/√out), out the number of outputs; biases alike.

    Not Glorot's, which counts the inputs too.
    """
    bound = 1 / math.sqrt(weight.shape[1])
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        if bias is not None:
            bias.uniform_(-bound, bound, generator=generator)


def glorot_(weight: Tensor, bias: Tensor | None, generator: torch.Generator | None) -> None:
    """Glorot's initialisation: U(±√(6 / (in + out))); biases start at zero."""
    bound = math.sqrt(6 / sum(weight.shape))
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        if bias is not None:
            bias.zero_()


class Dense(nn.Module):
    """X W + b for dense or sparse X, with Glorot's initialisation.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output.
        bias: Whether to add b.
        rate: How fast it learns: W and b are this many times what the optimiser moves.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, rate: float = 1.0
    ) -> None:
        super().__init__()
        self.rate = rate
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        glorot_(self.weight, self.bias, generator)
        self.reset_to(self.weight)

    @torch.no_grad()
    def reset_to(self, weight: Tensor) -> None:
        """Set W."""
        self.weight.copy_(weight / self.rate)

    def forward(self, x: NodeFeatures) -> Tensor:
        """The product, and the bias; sparse features stay sparse."""
        # In the input's precision, if it is the higher one.
        weight = self.weight.to(torch.promote_types(x.dtype, self.weight.dtype)) * self.rate
        out = x @ weight
        return out if self.bias is None else out + self.bias * self.rate


class Masks:
    """Which entries of a layer's output dropout keeps: drawn from a generator.

    A subclass may answer otherwise, layer by layer and node by node, as long as every form of a
    network asks for the same entries.
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self._generator = generator
        self._bits: np.random.Generator | None = None

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        """True with probability 1 - rate, for each entry of h.

        Args:
            h: The output of a hidden layer.
            rate: How much to drop.
            layer: Which layer it is, from 0.
            nodes: Whose rows they are; all nodes' if None.
        """
        if h.device.type != "cpu":
            return torch.empty_like(h).bernoulli_(1 - rate, generator=self._generator).bool()
        if self._bits is None:
            # torch draws a mask's entries one by one; NumPy makes two of every 64 bits, six times
            # as fast. The generator still decides which.
            seed = torch.randint(2**62, (), generator=self._generator).item()
            self._bits = np.random.Generator(np.random.SFC64(int(seed)))
        pairs = self._bits.bit_generator.random_raw(-(-h.numel() // 2))
        bits = torch.from_numpy(pairs.view(np.int32)[: h.numel()]).view(h.shape)
        return bits < min(round((1 - rate) * 2**32), 2**32 - 1) - 2**31


INPUT = -1
"""The layer under which dropout asks what to keep of the features."""


class _Dropped(torch.autograd.Function):
    """What is kept, scaled; remembers a byte per entry."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (h * keep).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return gradient * keep * ctx.scale, None, None


def dropout(
    h: AnyMatrix, rate: float, masks: Masks, layer: int = 0, nodes: Tensor | None = None
) -> AnyMatrix:
    """Zero each entry with probability `rate`, scale the rest by 1 / (1 - rate).

    Of a sparse matrix the stored entries; the others are zero already.
    """
    if check_rate(rate) == 0:
        return h
    if isinstance(h, SparseMatrix):
        return h.with_values(dropout(h.values, rate, masks, layer))
    keep = masks.keep(h, rate, layer, nodes)
    dropped: Tensor = _Dropped.apply(h, keep, 1 / (1 - rate))  # type: ignore[no-untyped-call]
    return dropped


def side_by_side(blocks: Iterable[NodeFeatures], weight: Tensor) -> Tensor:
    """[B₀, B₁, …] W, without putting the blocks side by side in memory."""
    blocks = list(blocks)
    widths = [block.shape[1] for block in blocks]
    if sum(widths) != len(weight):
        raise ValueError(
            f"the blocks are {sum(widths)} columns wide, the weight has {len(weight)} rows"
        )
    first, *rest = (b @ part for b, part in zip(blocks, torch.split(weight, widths), strict=True))
    for product in rest:
        first = first + product
    return first


def as_operator(
    edge_index: Diffusion | Tensor | None, edge_weight: Tensor | None, n: int, name: str
) -> Diffusion:
    """An operator as it is, or that of an `edge_index`."""
    if isinstance(edge_index, Diffusion) and edge_weight is not None:
        raise ValueError("an Operator has its own weights: edge_weight goes with an edge_index")
    if edge_index is None:
        raise ValueError("a layer that diffuses needs an edge_index or an Operator")
    if isinstance(edge_index, Diffusion):
        return edge_index
    return from_edge_index(edge_index, edge_weight, n, name)


def unit_relu(z: Tensor) -> Tensor:
    """ReLU, and each row scaled to unit length; zero stays zero.

    >>> unit_relu(torch.tensor([[3.0, 4.0, -1.0], [-1.0, -2.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929, 0.0], [0.0, 0.0, 0.0]]
    """
    return nn.functional.normalize(torch.relu(z), dim=1)
