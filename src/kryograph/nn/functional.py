"""Parts that all networks share: initialisation, layers with a weight, activations, dropout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.errors import check_known
from kryograph.operators import EdgeOperator, Operator
from kryograph.sparse import SparseMatrix

NodeFeatures: TypeAlias = Tensor | SparseMatrix
"""Node features: a dense tensor, or a constant sparse matrix."""

AnyMatrix = TypeVar("AnyMatrix", Tensor, SparseMatrix, NodeFeatures)

Diffusion: TypeAlias = Operator | EdgeOperator | SparseMatrix
"""A diffusion operator, or some of its rows."""

AnyDiffusion = TypeVar("AnyDiffusion", bound=Diffusion)


def identity(x: Tensor) -> Tensor:
    """Return the argument; a function with a name, so that networks can be pickled."""
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": identity,
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
    """Look up the pointwise function of that name; a function is returned as it is."""
    if not isinstance(f, str):
        return f
    check_known("activation", f, ACTIVATIONS)
    return ACTIVATIONS[f]


def unit_relu(z: Tensor) -> Tensor:
    """ReLU whose rows are scaled to unit length; a row of zeros stays zero.

    >>> unit_relu(torch.tensor([[3.0, 4.0, -1.0], [-1.0, -2.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929, 0.0], [0.0, 0.0, 0.0]]
    """
    return nn.functional.normalize(torch.relu(z), dim=1)


def uniform_(weight: Tensor, bias: Tensor | None, generator: torch.Generator | None) -> None:
    """Initialise as the authors: U(-1/√out, 1/√out) for weight and bias, out = number of outputs.

    This is not Glorot's initialisation, which counts the inputs too.
    """
    bound = 1 / math.sqrt(weight.shape[1])
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        if bias is not None:
            bias.uniform_(-bound, bound, generator=generator)


def glorot_(
    weight: Tensor,
    bias: Tensor | None,
    generator: torch.Generator | None,
    widths: int | None = None,
) -> None:
    """Initialise as Glorot and Bengio: U(±√(6 / (in + out))); biases start at zero.

    `widths` is in + out, if that is not the sum of the shape of the weight.
    """
    bound = math.sqrt(6 / (widths or sum(weight.shape)))
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)
        if bias is not None:
            bias.zero_()


def reset_children(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """Draw the weights of a module's children again, in order of registration."""
    for child in module.children():
        # A list of modules has no weights of its own.
        reset = getattr(child, "reset_parameters", partial(reset_children, child))
        reset(generator)


Initialise: TypeAlias = Callable[[Tensor, Tensor | None, torch.Generator | None], None]


class Layer(nn.Module):
    """Base of layers with a weight W and a bias b; W consists of blocks of in × out numbers.

    Args:
        in_channels: Number of inputs of each node.
        out_channels: Number of outputs of each node.
        rows: Number of blocks below one another, for an input of so many blocks side by side.
        columns: Number of blocks side by side; they are initialised one after the other.
        bias: Whether there is a bias.
        initialise: Draws W and b from a generator.

    Shapes:
        - **input:** features (N, in_channels) dense or sparse, and what a layer diffuses with
        - **output:** (N, out_channels)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        rows: int = 1,
        columns: int = 1,
        bias: bool = True,
        initialise: Initialise = glorot_,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.initialise = initialise
        self.weight = nn.Parameter(torch.empty(rows * in_channels, columns * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights again; None draws from torch's generator."""
        for block in torch.split(self.weight, self.out_channels, dim=1):
            self.initialise(block, self.bias, generator)

    def plus_bias(self, out: Tensor) -> Tensor:
        """Add b, if there is one."""
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class Dense(Layer):
    """X W + b for dense or sparse X, with Glorot's initialisation.

    `rate` is the learning rate relative to other layers: W and b are `rate` times the parameters
    that the optimiser moves.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, bias: bool = True, rate: float = 1.0
    ) -> None:
        self.rate = rate  # before the weights are drawn
        super().__init__(in_channels, out_channels, bias=bias)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        super().reset_parameters(generator)
        self.reset_to(self.weight)

    @torch.no_grad()
    def reset_to(self, weight: Tensor) -> None:
        """Set W to a matrix; weights without storage stay without values."""
        if not self.weight.is_meta:
            self.weight.copy_(weight / self.rate)

    def forward(self, x: NodeFeatures) -> Tensor:
        # Computed in the precision of the input if that is higher than that of the weight.
        weight = self.weight.to(torch.promote_types(x.dtype, self.weight.dtype)) * self.rate
        out = x @ weight
        return out if self.bias is None else out + self.bias * self.rate


class Masks:
    """Dropout masks, drawn from a generator; None is torch's generator.

    A subclass may decide otherwise, layer by layer and node by node, as long as every form of a
    network gets the same entries.
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        self._generator = generator
        self._bits: np.random.Generator | None = None

    def keep(self, h: Tensor, rate: float, layer: int, nodes: Tensor | None) -> Tensor:
        """Draw a mask with the shape of h: True, with probability 1 - rate, where h is kept.

        h is the output of the layer with that number, from 0, or features (`INPUT`). Its rows
        belong to `nodes`; None means all nodes.
        """
        if h.device.type != "cpu":
            return torch.empty_like(h).bernoulli_(1 - rate, generator=self._generator).bool()
        if self._bits is None:
            # torch draws a mask entry by entry; NumPy makes two entries of 64 bits, six times as
            # fast. The generator still determines the bits.
            seed = torch.randint(2**62, (), generator=self._generator).item()
            self._bits = np.random.Generator(np.random.SFC64(int(seed)))
        pairs = self._bits.bit_generator.random_raw(-(-h.numel() // 2))
        bits = torch.from_numpy(pairs.view(np.int32)[: h.numel()]).view(h.shape)
        return bits < min(round((1 - rate) * 2**32), 2**32 - 1) - 2**31


INPUT = -1
"""Number of the layer under which the mask of the features is drawn."""


class _Dropped(torch.autograd.Function):
    """Entries that a mask keeps, scaled; saves one byte per entry for the gradient."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (h * keep).mul_(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return gradient * keep * ctx.scale, None, None


def check_rate(rate: float) -> float:
    """Return a dropout rate; ValueError if it is not in [0, 1)."""
    if not 0 <= rate < 1:
        raise ValueError(f"a dropout rate lies between 0 and 1 (excluded); it is {rate}")
    return rate


def dropout(
    h: AnyMatrix, rate: float, masks: Masks, layer: int = 0, nodes: Tensor | None = None
) -> AnyMatrix:
    """Set each entry to zero with probability `rate`; scale the others by 1 / (1 - rate).

    In a sparse matrix this concerns the stored entries. Arguments are those of `Masks.keep`.
    """
    if check_rate(rate) == 0:
        return h
    if isinstance(h, SparseMatrix):
        return h.with_values(dropout(h.values, rate, masks, layer))
    keep = masks.keep(h, rate, layer, nodes)
    dropped: Tensor = _Dropped.apply(h, keep, 1 / (1 - rate))  # type: ignore[no-untyped-call]
    return dropped


def side_by_side(blocks: Iterable[NodeFeatures], weight: Tensor) -> Tensor:
    """Multiply [B₀, B₁, …] W without a copy of the blocks side by side."""
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


def horner(L: Any, terms: Mapping[int, Tensor]) -> Tensor:
    """Compute Σ_k L^k B_k by Horner's rule, from the highest power down; `terms` are B_k by k."""
    highest = max(terms)
    total = terms[highest]
    for power in range(highest - 1, -1, -1):
        total = L @ total
        if power in terms:
            total = terms[power] + total
    return total
