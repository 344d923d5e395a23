"""The two optimisers of the paper, as published, each at the speed of memory.

Weight decay is the L2 term of the optimiser on all parameters, biases included. RMSprop: α = 0.99,
ε = 1e-8, no momentum. A run makes a new optimiser: no moment outlives it (deviation D6).

torch has a kernel that streams through memory once for Adam, but none for RMSprop. With
v ← α v + (1 - α) g², RMSprop's step is w ← w - η g / (√v + ε), and Adam's is the same for β₁ = 0
and β₂ = α but for its correction 1 - α^t of v. That factor is 1 once t is large, so an Adam that
starts counting at a large t is RMSprop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.adam import adam as functional_adam

from kryograph.errors import unknown

PREFETCH_DISTANCE = 1e6
"""A step count with 0.99^FAR = 0 in double precision, and far from where float32 skips integers."""

OPTIMIZER_BLOCK = 2**18
"""How many weights are updated at a time: few enough for the scratch of one to stay in cache."""


class Optimizer:
    """Adam by torch's fused kernel, block by block.

    With β₁ = 0 the first moment is the gradient itself and need not be kept: all blocks share one
    scratch for it. This is not a `torch.optim.Optimizer`, whose constructor imports a compiler,
    which takes longer than many a run.

    Args:
        parameters: What is trained.
        lr: Learning rate.
        weight_decay: L2.
        decayed: On which parameters; on all if None.
        betas: How slowly the moments change.
        steps: How many count as taken already.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        weight_decay: float,
        decayed: Collection[nn.Parameter] | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        steps: float = 0.0,
    ) -> None:
        self.lr, self.betas = lr, betas
        self.state = {parameter: _State(parameter, betas[0] > 0, steps) for parameter in parameters}
        bare = () if decayed is None else set(self.state).difference(decayed)
        self.weight_decay = {p: 0.0 if p in bare else weight_decay for p in self.state}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.state:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        for parameter, state in self.state.items():
            if parameter.grad is not None:
                functional_adam(
                    state.weights,
                    _parameter_blocks(parameter.grad.contiguous()),
                    state.first,
                    state.second,
                    [],
                    state.steps,
                    fused=True,
                    amsgrad=False,
                    beta1=self.betas[0],
                    beta2=self.betas[1],
                    lr=self.lr,
                    weight_decay=self.weight_decay[parameter],
                    eps=1e-8,
                    maximize=False,
                )


class _State:
    """A parameter and its moments in blocks."""

    def __init__(self, parameter: nn.Parameter, keep_first: bool, steps: float) -> None:
        flat = parameter.detach()
        self.weights = _parameter_blocks(flat)
        self.second = _parameter_blocks(torch.zeros_like(flat))
        scratch = flat.new_zeros(0 if keep_first else min(OPTIMIZER_BLOCK, flat.numel()))
        self.first = (
            _parameter_blocks(torch.zeros_like(flat))
            if keep_first
            else [scratch[: block.numel()] for block in self.weights]
        )
        self.steps = [torch.tensor(steps, device=flat.device) for _ in self.weights]


def _parameter_blocks(tensor: Tensor) -> list[Tensor]:
    return list(torch.split(tensor.view(-1), OPTIMIZER_BLOCK))


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": Optimizer,
    "rmsprop": partial(Optimizer, betas=(0.0, 0.99), steps=PREFETCH_DISTANCE),
}
MOMENTS = {"adam": 2, "rmsprop": 1}
"""How many numbers each remembers of every weight."""


def optimizer(
    name: str,
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    weight_decay: float,
    decayed: Collection[nn.Parameter] | None = None,
) -> Optimizer:
    """A new optimiser of that name."""
    if name not in OPTIMIZERS:
        raise unknown("optimiser", name, OPTIMIZERS)
    return OPTIMIZERS[name](parameters, lr=lr, weight_decay=weight_decay, decayed=decayed)
