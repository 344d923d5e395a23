from __future__ import annotations

import pytest
import torch
from torch import nn

from kryograph.errors import UsageError
from kryograph.training import optimizers
from kryograph.training.optimizers import MOMENTS, OPTIMIZERS, Optimizer, optimizer


def step(name: str, gradient: float, *, weight_decay: float, lr: float = 0.1) -> float:
    """Where one step takes a parameter that is 1."""
    parameter = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    parameter.grad = torch.tensor([gradient], dtype=torch.float64)
    optimizer(name, [parameter], lr=lr, weight_decay=weight_decay).step()
    return parameter.item()


def test_there_are_two() -> None:
    assert list(OPTIMIZERS) == ["adam", "rmsprop"]


def test_settings_are_kept() -> None:
    # That the constants are the paper's, torch's defaults, is what fifty steps say below.
    found = optimizer("adam", [nn.Parameter(torch.ones(1))], lr=0.02, weight_decay=0.3)
    assert found.lr == 0.02
    assert list(found.weight_decay.values()) == [0.3]


def test_gradients_are_forgotten() -> None:
    parameter = nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer("rmsprop", [parameter], lr=0.1, weight_decay=0).zero_grad()
    assert parameter.grad is None


def check_fifty_steps(
    name: str, start: list[torch.Tensor], weight_decay: float, gradients: str = "plain"
) -> Optimizer:
    """Fifty steps are torch's own; returns the optimiser after them."""
    generator = torch.Generator().manual_seed(1)
    dtype = start[0].dtype
    torchs = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}[name]
    ours, theirs = ([nn.Parameter(value.clone()) for value in start] for _ in range(2))
    stepper = optimizer(name, ours, lr=0.01, weight_decay=weight_decay)
    reference = torchs(theirs, lr=0.01, weight_decay=weight_decay)
    for _ in range(50):
        for one, other in zip(ours, theirs, strict=True):
            gradient = torch.randn(one.shape, generator=generator, dtype=dtype)
            one.grad = gradient.T.contiguous().T if gradients == "turned" else gradient
            other.grad = gradient.clone()
        stepper.step()
        reference.step()
    for one, other, first in zip(ours, theirs, start, strict=True):
        assert (other - first).abs().max() > 0.1
        tolerance = 1e-6 if dtype == torch.float32 else 1e-13
        assert (one - other).norm() <= tolerance * other.norm()
    return stepper


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
def test_fifty_steps_are_those_of_torch(name: str, weight_decay: float, dtype: torch.dtype) -> None:
    check_fifty_steps(name, [drawn(300, 40, dtype=dtype), drawn(40, dtype=dtype)], weight_decay)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("block", [1, 7, 64, 12_000, 11_999])
def test_blocks_of_any_size_give_the_same_steps(
    block: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimizers, "OPTIMIZER_BLOCK", block)
    rows = 300 if block > 7 else 5
    start = [drawn(rows, 40, dtype=dtype), drawn(40, dtype=dtype)]
    stepper = check_fifty_steps("rmsprop", start, weight_decay=0.03)
    # Only the second moment is as large as the weights: the first is not kept.
    for parameter, state in stepper.state.items():
        assert kept(state.second) == parameter.numel()
        assert kept(state.first) == min(block, parameter.numel())


def kept(blocks: list[torch.Tensor]) -> int:
    """How many numbers blocks take in memory, those that they share counted once."""
    return sum({b.untyped_storage().data_ptr(): _size(b) for b in blocks}.values())


def _size(block: torch.Tensor) -> int:
    return block.untyped_storage().nbytes() // block.element_size()


@pytest.mark.parametrize(("name", "moments"), MOMENTS.items())
def test_so_many_moments_are_kept(name: str, moments: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "OPTIMIZER_BLOCK", 10)
    stepper = check_fifty_steps(name, [drawn(100, 10)], weight_decay=0)
    (state,) = stepper.state.values()
    # The scratch of one block comes on top where the first moment is not kept.
    assert (kept(state.first) + kept(state.second)) // 1000 == moments


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_need_not_lie_row_by_row(name: str) -> None:
    check_fifty_steps(name, [drawn(30, 4)], weight_decay=0.03, gradients="turned")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_that_do_not_lie_row_by_row_are_not_left_behind(name: str) -> None:
    # In blocks of a copy, the parameter itself would never move.
    try:
        check_fifty_steps(name, [drawn(4, 30).T], weight_decay=0.03)
    except (RuntimeError, ValueError):
        return  # to refuse them is right, too


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_without_a_gradient_stays(name: str) -> None:
    moved, still = (nn.Parameter(torch.ones(2)) for _ in range(2))
    moved.grad = torch.ones(2)
    optimizer(name, [moved, still], lr=0.1, weight_decay=0.5).step()
    assert torch.equal(still, torch.ones(2))
    assert not torch.equal(moved, torch.ones(2))


def test_a_first_step_by_hand() -> None:
    # Adam's first step is lr · g / |g|; RMSprop's lr · g / √(0.01 g²) = 10 lr.
    assert step("adam", 2.0, weight_decay=0) == pytest.approx(1 - 0.1)
    assert step("rmsprop", 2.0, weight_decay=0) == pytest.approx(1 - 10 * 0.1, abs=1e-6)


@pytest.mark.parametrize(("name", "length"), [("adam", 0.1), ("rmsprop", 1.0)])
def test_weight_decay_is_part_of_the_gradient(name: str, length: float) -> None:
    # Decoupled decay would take lr · 0.5 = 0.05 off; as a gradient it is scaled to a whole step.
    assert step(name, 0.0, weight_decay=0.5) == pytest.approx(1 - length, abs=1e-6)
    assert step(name, -0.5, weight_decay=0.5) == pytest.approx(1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimiser_is_new(name: str) -> None:
    # No moment outlives a run: what a new one does first does not depend on an old one's steps.
    lengths = []
    for before in (0, 5):
        parameter = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        old = optimizer(name, [parameter], lr=0.1, weight_decay=0)
        for _ in range(before):
            parameter.grad = torch.full((1,), 100.0, dtype=torch.float64)
            old.step()
        start = parameter.item()
        parameter.grad = torch.ones(1, dtype=torch.float64)
        optimizer(name, [parameter], lr=0.1, weight_decay=0).step()
        lengths.append(start - parameter.item())
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-12)
    assert lengths[0] > 0.05


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown optimiser 'adma': did you mean 'adam'"):
        optimizer("adma", [nn.Parameter(torch.ones(1))], lr=0.1, weight_decay=0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_decay_acts_on_the_parameters_that_are_named(name: str) -> None:
    def after(decay: float, named: bool) -> list[list[float]]:
        both = [nn.Parameter(drawn(3)), nn.Parameter(drawn(3) + 1)]
        decayed = [both[1]] if named else None
        stepper = optimizer(name, both, lr=0.1, weight_decay=decay, decayed=decayed)
        for _ in range(3):
            for parameter in both:
                parameter.grad = torch.full((3,), 0.5, dtype=torch.float64)
            stepper.step()
        return [parameter.tolist() for parameter in both]

    plain, all_decayed, one_decayed = after(0, True), after(0.7, False), after(0.7, True)
    assert one_decayed == [plain[0], all_decayed[1]]
    assert plain[0] != all_decayed[0]


def test_no_parameter_is_decayed_if_none_is_named() -> None:
    parameter = nn.Parameter(torch.ones(1))
    stepper = optimizer("adam", [parameter], lr=0.1, weight_decay=0.7, decayed=[])
    assert stepper.weight_decay == {parameter: 0.0}
