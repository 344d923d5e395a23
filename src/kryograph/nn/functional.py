"""What the networks share: initialisation, dropout with a named generator, and their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from kryograph.errors import unknown
from kryograph.operators import Operator, from_edge_index
from kryograph.sparse import SparseMatrix

Matrix: TypeAlias = Tensor | SparseMatrix
"""Node features: a dense tensor, or a constant sparse matrix."""

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


def dropout(x: Tensor, rate: float, *, training: bool, generator: torch.Generator | None) -> Tensor:
    """Zero each entry with probability `rate`, scale the rest; draws from `generator`."""
    if not training or check_rate(rate) == 0:
        return x
    keep = torch.empty_like(x).bernoulli_(1 - rate, generator=generator)
    return x * keep.div_(1 - rate)


def side_by_side(blocks: Iterable[Matrix], weight: Tensor) -> Tensor:
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
    edge_index: Operator | Tensor | None, edge_weight: Tensor | None, n: int, name: str
) -> Operator:
    """An operator as it is, or that of an `edge_index`."""
    if isinstance(edge_index, Operator) and edge_weight is not None:
        raise ValueError("an Operator has its own weights: edge_weight goes with an edge_index")
    if edge_index is None:
        raise ValueError("a layer that diffuses needs an edge_index or an Operator")
    if isinstance(edge_index, Operator):
        return edge_index
    return from_edge_index(edge_index, edge_weight, n, name)
