"""Snowball by the engine is Snowball by its formula."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from kryograph.data import toy
from kryograph.engine import snowball_forward as snowball
from kryograph.engine.forward import Forward, Nodes, WholeGraph, Workload
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.nn import Snowball
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.sparse import TORCH_KERNEL_COLUMNS
from tests.layers import MIXED, OPERATORS, Case, FixedMasks, cases, check_run, seeded

networks = st.fixed_dictionaries(
    {
        "layers": st.integers(0, 4),
        "bias": st.booleans(),
        "dropout": st.sampled_from([0.0, 0.5]),
    }
)
optimizers = st.sampled_from(["adam", "rmsprop"])
every_activation = pytest.mark.parametrize("activation", ["identity", "tanh", "relu"])


def compare(case: Case, dtype: torch.dtype, name: str, *, hidden: int = 4, **settings: Any) -> None:
    literal = Snowball(case.x.shape[1], hidden, case.classes, **settings).to(dtype)
    literal.reset_parameters(seeded(case.masks.seed))
    rest = (case.x, case.L, case.nodes, case.masks)
    engine = SnowballForward(Workload(copy.deepcopy(literal), *rest))
    check_run(engine, WholeGraph(Workload(literal, *rest)), case, name)


@every_activation
@settings(max_examples=25)
@given(case=cases(), settings=networks, name=optimizers)
def test_ten_steps_are_those_of_the_literal_form(
    activation: str, case: Case, settings: dict[str, Any], name: str
) -> None:
    compare(case, torch.float64, name, activation=activation, **settings)


@every_activation
@settings(max_examples=10)
@given(case=cases(torch.float32), settings=networks)
def test_ten_steps_in_float32(activation: str, case: Case, settings: dict[str, Any]) -> None:
    compare(case, torch.float32, "rmsprop", activation=activation, **settings)


@every_activation
@settings(max_examples=8)
@given(
    case=cases(),
    settings=networks,
    width=st.integers(TORCH_KERNEL_COLUMNS - 1, TORCH_KERNEL_COLUMNS + 1),
)
def test_ten_steps_of_a_wide_network(
    activation: str, case: Case, settings: dict[str, Any], width: int
) -> None:
    compare(case, torch.float64, "adam", hidden=width, activation=activation, **settings)


# Derivatives


class Training(nn.Module):
    """A step's logits as a function of the network's parameters."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.network, self.of = forward.network, forward

    def forward(self) -> Tensor:
        return self.of.training()


def small(layers: int, *, hidden: int = 3, **changes: Any) -> SnowballForward:
    net = Snowball(2, hidden, 2, layers, **{"dropout": 0.4, **changes}).double()
    net.reset_parameters(seeded(0))
    x = torch.randn(MIXED.n, 2, generator=seeded(1), dtype=torch.float64)
    nodes = Nodes(torch.tensor([12, 0, 8]), torch.tensor([3]))
    return SnowballForward(Workload(net, x, operator(MIXED, "rw"), nodes, FixedMasks(MIXED.n)))


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["identity", "tanh"])
@pytest.mark.parametrize("hidden", [2, TORCH_KERNEL_COLUMNS + 1])
def test_derivatives_of_a_step(layers: int, bias: bool, activation: str, hidden: int) -> None:
    module = Training(small(layers, hidden=hidden, bias=bias, activation=activation))
    names = [name for name, _ in module.named_parameters()]
    assert len(names) == (layers + 1) * (1 + bias)

    def run(*values: Tensor) -> Tensor:
        out: Tensor = functional_call(module, dict(zip(names, values, strict=True)), ())
        return out

    assert gradcheck(run, tuple(module.parameters()), fast_mode=hidden > TORCH_KERNEL_COLUMNS)


def test_a_step_can_be_differentiated_twice_in_a_row() -> None:
    # Several losses of the same logits, each with its gradients.
    forward = small(2)
    logits, weight = forward.training(), forward.network.output.weight
    (first,) = torch.autograd.grad(logits.sum(), weight, retain_graph=True)
    (second,) = torch.autograd.grad(2 * logits.sum(), weight)
    torch.testing.assert_close(second, 2 * first)


# What is computed


@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_a_layer_is_computed_where_it_is_needed(activation: str) -> None:
    masks = FixedMasks(11)
    net = Snowball(3, 4, 2, 3, activation=activation, dropout=0.5)
    nodes = Nodes(torch.tensor([5]), torch.tensor([0]))
    forward = SnowballForward(
        Workload(net, torch.ones(11, 3), operator(toy.path(11)), nodes, masks)
    )
    forward.training()
    # The output diffuses once more, so the last hidden layer is needed one hop around node 5.
    assert [(layer, sorted(nodes or [])) for layer, _, nodes in masks.asked] == [
        (0, [2, 3, 4, 5, 6, 7, 8]),
        (1, [3, 4, 5, 6, 7]),
        (2, [4, 5, 6]),
    ]
    net.eval()
    with torch.no_grad():
        forward.scored()
        forward.everything()
    assert len(masks.asked) == 3


@pytest.mark.parametrize(("activation", "times"), [("identity", 2), ("tanh", 0), ("relu", 0)])
def test_only_a_linear_network_is_collapsed(
    activation: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, calls = small(2, activation=activation), []
    original = snowball.collapsed

    def counted(*arguments: Any) -> Tensor:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(snowball, "collapsed", counted)
    forward.network.eval()
    with torch.no_grad():
        forward.scored()
        forward.everything()
    assert len(calls) == times


@pytest.mark.parametrize("changes", [{"classifier": 3}, {"p": 0}])
@pytest.mark.parametrize("name", OPERATORS)
def test_other_outputs_are_refused(changes: dict[str, int], name: str) -> None:
    net, nodes = Snowball(2, 3, 2, 1, **changes), Nodes(torch.tensor([0]), torch.tensor([1]))
    with pytest.raises(ValueError, match=r"only C = \[H_0, …, H_n\] and p = 1 have this form"):
        SnowballForward(
            Workload(net, torch.ones(MIXED.n, 2), operator(MIXED, name), nodes, Masks())
        )
