"""The ten activations of appendix III at any scale: f_s(z) = s f(z / s).

A deep network with weights from N(0, 1) grows by a factor per layer, and leaves float64's range
sooner or later. If everything is kept multiplied by s, a layer maps s H to s f(H …) = f_s(s H …):
the rank is the same, as s H has that of H. Where f is positively homogeneous (identity, ReLU, leaky
ReLU) f_s = f; the others have a bend or a slope at a place of their own, which moves with s. So the
formulas below take s, and no part of them leaves the range when z / s does.

>>> z = torch.tensor([-3.0, 0.25, 3.0], dtype=torch.float64)
>>> SCALED["softshrink"](z, 1.0).tolist(), SCALED["softshrink"](z / 4, 1 / 4).tolist()
([-2.5, 0.0, 2.5], [-0.625, 0.0, 0.625])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import hardshrink, leaky_relu, softshrink

from kryograph.errors import UsageError, unknown

Scaled: TypeAlias = Callable[[Tensor, float], Tensor]

BEND = 0.5
"""Where hard and soft shrink bend, as in torch."""

ALPHA, GAIN = 1.6732632423543772, 1.0507009873554805
"""The constants of SELU."""


def _elu(z: Tensor, s: float, alpha: float = 1.0) -> Tensor:
    # Where z is positive the other branch may be infinite: `where` does not look at it.
    return torch.where(z > 0, z, alpha * s * torch.expm1(z / s))


SCALED: dict[str, Scaled] = {
    "elu": _elu,
    "hardshrink": lambda z, s: hardshrink(z, BEND * s),
    "selu": lambda z, s: GAIN * _elu(z, s, ALPHA),
    "softshrink": lambda z, s: softshrink(z, BEND * s),
    "tanhshrink": lambda z, s: z - s * torch.tanh(z / s),
    "identity": lambda z, s: z,
    "sigmoid": lambda z, s: s * torch.sigmoid(z / s),
    "relu": lambda z, s: torch.relu(z),
    "leaky-relu": lambda z, s: leaky_relu(z),
    "tanh": lambda z, s: s * torch.tanh(z / s),
}
"""In the order in which appendix III lists them."""


def checked(names: Iterable[str]) -> tuple[str, ...]:
    """Names of activations, each of which exists and stands there once."""
    names = tuple(names)
    for name in names:
        if name not in SCALED:
            raise unknown("activation", name, SCALED)
        if names.count(name) > 1:
            raise UsageError(f"The activation {name!r} is named {names.count(name)} times.")
    if not names:
        raise UsageError(f"There must be an activation at least; there are: {', '.join(SCALED)}.")
    return names
