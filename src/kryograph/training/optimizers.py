"""The two optimisers of the paper, as published: torch's own defaults, coupled weight decay.

Weight decay is the L2 term of the optimiser on all parameters, biases included. RMSprop: α = 0.99,
ε = 1e-8, no momentum. A run makes a new optimiser: no moment outlives it (deviation D6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from kryograph.errors import unknown

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
}


def optimizer(
    name: str, parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """A new optimiser of that name."""
    if name not in OPTIMIZERS:
        raise unknown("optimiser", name, OPTIMIZERS)
    return OPTIMIZERS[name](list(parameters), lr=lr, weight_decay=weight_decay)
