from __future__ import annotations

import pytest
import torch
from torch import nn

from kryograph.errors import UsageError
from kryograph.training.optimizers import OPTIMIZERS, optimizer


def step(name: str, gradient: float, *, weight_decay: float, lr: float = 0.1) -> float:
    """Where one step takes a parameter that is 1."""
    parameter = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    parameter.grad = torch.tensor([gradient], dtype=torch.float64)
    optimizer(name, [parameter], lr=lr, weight_decay=weight_decay).step()
    return parameter.item()


def test_there_are_two() -> None:
    assert list(OPTIMIZERS) == ["adam", "rmsprop"]


def test_the_constants_are_the_papers() -> None:
    parameter = nn.Parameter(torch.ones(1))
    adam = optimizer("adam", [parameter], lr=0.02, weight_decay=0.3).param_groups[0]
    assert (adam["lr"], adam["weight_decay"]) == (0.02, 0.3)
    assert (adam["betas"], adam["eps"], adam["amsgrad"]) == ((0.9, 0.999), 1e-8, False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "torchs"), [("adam", torch.optim.Adam), ("rmsprop", torch.optim.RMSprop)]
)
@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
def test_fifty_steps_are_those_of_torch(
    name: str, torchs: type[torch.optim.Optimizer], weight_decay: float, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    start = [draw(300, 40), draw(40)]
    ours, theirs = ([nn.Parameter(value.clone()) for value in start] for _ in range(2))
    steppers = (
        optimizer(name, ours, lr=0.01, weight_decay=weight_decay),
        torchs(theirs, lr=0.01, weight_decay=weight_decay),
    )
    for _ in range(50):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = draw(*one.shape)
            other.grad = one.grad.clone()
        for stepper in steppers:
            stepper.step()
    for one, other, first in zip(ours, theirs, start, strict=True):
        assert (one - first).abs().max() > 0.1
        tolerance = 1e-6 if dtype == torch.float32 else 1e-13
        assert (one - other).norm() <= tolerance * other.norm()


def test_a_first_step_by_hand() -> None:
    # Adam's first step is lr · g / |g|; RMSprop's lr · g / √(0.01 g²) = 10 lr.
    assert step("adam", 2.0, weight_decay=0) == pytest.approx(1 - 0.1)
    assert step("rmsprop", 2.0, weight_decay=0) == pytest.approx(1 - 10 * 0.1, abs=1e-6)


@pytest.mark.parametrize(("name", "length"), [("adam", 0.1), ("rmsprop", 1.0)])
def test_weight_decay_is_part_of_the_gradient(name: str, length: float) -> None:
    # Decoupled decay would take lr · 0.5 = 0.05 off; as a gradient it is scaled to a whole step.
    assert step(name, 0.0, weight_decay=0.5) == pytest.approx(1 - length, abs=1e-6)
    assert step(name, -0.5, weight_decay=0.5) == pytest.approx(1)


def test_each_optimiser_is_new() -> None:
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    first = optimizer("adam", [parameter], lr=0.1, weight_decay=0)
    first.step()
    second = optimizer("adam", [parameter], lr=0.1, weight_decay=0)
    assert len(first.state) == 1
    assert len(second.state) == 0


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown optimiser 'adma': did you mean 'adam'"):
        optimizer("adma", [nn.Parameter(torch.ones(1))], lr=0.1, weight_decay=0)
