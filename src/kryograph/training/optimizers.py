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
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam as functional_adam

from kryograph.errors import unknown

FAR = 1e6
"""A step count with 0.99^FAR = 0 in double precision, and far from where float32 skips integers."""

BLOCK = 2**18
"""How many weights are updated at a time: few enough for the scratch of one to stay in cache."""


def adam(parameters: Iterable[nn.Parameter], lr: float, weight_decay: float) -> torch.optim.Adam:
    """Adam with torch's defaults."""
    return torch.optim.Adam(parameters, lr=lr, weight_decay=weight_decay, fused=True)


class RMSprop(torch.optim.Optimizer):
    """RMSprop with torch's defaults, by Adam's kernel.

    Adam's first moment is the gradient itself when β₁ = 0 and is not kept: all blocks of weights
    share one scratch for it.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["square_avg"] = torch.zeros_like(parameter)
            state["scratch"] = parameter.new_zeros(min(BLOCK, parameter.numel()))
            state["step"] = torch.tensor(FAR, device=parameter.device)
        weights, gradients, squares = (
            list(torch.split(tensor.reshape(-1), BLOCK))
            for tensor in (parameter, gradient, state["square_avg"])
        )
        functional_adam(
            weights,
            gradients,
            [state["scratch"][: block.numel()] for block in weights],
            squares,
            [],
            [state["step"]] * len(weights),
            fused=True,
            amsgrad=False,
            beta1=0.0,
            beta2=0.99,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=1e-8,
            maximize=False,
        )


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": adam, "rmsprop": RMSprop}

MOMENTS = {"adam": 2, "rmsprop": 1}
"""How many numbers each remembers of every weight."""


def optimizer(
    name: str, parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """A new optimiser of that name."""
    if name not in OPTIMIZERS:
        raise unknown("optimiser", name, OPTIMIZERS)
    return OPTIMIZERS[name](list(parameters), lr=lr, weight_decay=weight_decay)
