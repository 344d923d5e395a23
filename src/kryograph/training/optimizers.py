"""The two optimisers of the paper, as published, each at the speed of memory.

Weight decay is the L2 term of the optimiser on all parameters, biases included. RMSprop: α = 0.99,
ε = 1e-8, no momentum. A run makes a new optimiser: no moment outlives it (deviation D6).

torch has a kernel that streams through memory once for Adam, but none for RMSprop. With
v ← α v + (1 - α) g², RMSprop's step is w ← w - η g / (√v + ε), and Adam's is the same for β₁ = 0
and β₂ = α but for its correction 1 - α^t of v. That factor is 1 once t is large, so an Adam that
starts counting at a large t is RMSprop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from kryograph.errors import unknown

FAR = 1e6
"""A step count with 0.99^FAR = 0 in double precision, and far from where float32 skips integers."""


def adam(parameters: Iterable[nn.Parameter], lr: float, weight_decay: float) -> torch.optim.Adam:
    """Adam with torch's defaults."""
    return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay, fused=True)


def rmsprop(parameters: Iterable[nn.Parameter], lr: float, weight_decay: float) -> torch.optim.Adam:
    """RMSprop with torch's defaults, by Adam's kernel."""
    optimizer = torch.optim.Adam(
        parameters, lr=lr, betas=(0.0, 0.99), eps=1e-8, weight_decay=weight_decay, fused=True
    )
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            optimizer.state[parameter] = {
                "step": torch.tensor(FAR, device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
    return optimizer


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": adam, "rmsprop": rmsprop}


def optimizer(
    name: str, parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """A new optimiser of that name."""
    if name not in OPTIMIZERS:
        raise unknown("optimiser", name, OPTIMIZERS)
    return OPTIMIZERS[name](list(parameters), lr=lr, weight_decay=weight_decay)
