"""The two optimisers of the paper, Adam and RMSprop, as published and at the speed of memory.

Weight decay is the L2 term of the optimiser on all parameters, biases included. RMSprop has
α = 0.99, ε = 1e-8 and no momentum. Each run makes a new optimiser (deviation D6).

torch has a kernel that passes through memory once for Adam, but none for RMSprop. With
v ← α v + (1 - α) g², RMSprop's step is w ← w - η g / (√v + ε). Adam's step with β₁ = 0 and β₂ = α
is the same, except that it divides v by 1 - α^t. That divisor is 1 for a large t, so an Adam that
starts to count at a large t is RMSprop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.adam import adam as functional_adam

from kryograph.errors import check_known

RMSPROP_FIRST_STEP = 1e6
"""Step count t with 0.99^t = 0 in float64 that is small enough for float32 to count on from."""

OPTIMIZER_BLOCK = 2**18
"""Number of weights that are updated at a time, so that their moments stay in cache."""


class Optimizer:
    """Adam by torch's fused kernel, block by block.

    This is not a `torch.optim.Optimizer`: the constructor of that class imports a compiler, which
    takes longer than a short run.

    The L2 term, with the factor `weight_decay`, acts on the parameters `decayed`; None means all.
    `betas` are the decay rates of the two moments, `steps` the number that counts as made already.
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
        free = () if decayed is None else set(self.state).difference(decayed)
        self.weight_decay = {p: 0.0 if p in free else weight_decay for p in self.state}

    def zero_grad(self) -> None:
        """Drop the gradients of all parameters."""
        for parameter in self.state:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for parameter, state in self.state.items():
            if parameter.grad is not None:
                functional_adam(
                    state.weights,
                    _blocks(parameter.grad.contiguous()),
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
    """Blocks of a parameter and of its moments.

    With β₁ = 0 the first moment equals the gradient. It is then not kept between steps: all blocks
    share the memory of one block.
    """

    def __init__(self, parameter: nn.Parameter, keep_first: bool, steps: float) -> None:
        flat = parameter.detach()
        self.weights = _blocks(flat)
        self.second = _blocks(torch.zeros_like(flat))
        self.first = _blocks(torch.zeros_like(flat)) if keep_first else []
        if not keep_first:
            scratch = flat.new_zeros(min(OPTIMIZER_BLOCK, flat.numel()))
            self.first = [scratch[: block.numel()] for block in self.weights]
        self.steps = [torch.tensor(steps, device=flat.device) for _ in self.weights]


def _blocks(tensor: Tensor) -> list[Tensor]:
    return list(torch.split(tensor.view(-1), OPTIMIZER_BLOCK))


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": Optimizer,
    "rmsprop": partial(Optimizer, betas=(0.0, 0.99), steps=RMSPROP_FIRST_STEP),
}
MOMENTS = {"adam": 2, "rmsprop": 1}
"""How many numbers an optimiser keeps for each weight."""


def optimizer(name: str, parameters: Iterable[nn.Parameter], **options: object) -> Optimizer:
    """Build a new optimiser by its name; the options are those of `Optimizer`."""
    check_known("optimiser", name, OPTIMIZERS)
    return OPTIMIZERS[name](parameters, **options)
