"""Truncated Krylov by the engine is truncated Krylov by its formula, whichever form it takes."""

from __future__ import annotations

import copy
from itertools import chain, repeat
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.engine import krylov_forward as krylov
from kryograph.engine.forward import Nodes, WholeGraph, Workload
from kryograph.engine.krylov_forward import Blocks, Horner, KeptBlocks, KrylovForward
from kryograph.nn import TruncatedKrylov
from kryograph.operators import operator
from kryograph.sparse import TORCH_KERNEL_COLUMNS
from tests.layers import Case, FixedMasks, cases, check_run, seeded

networks = st.fixed_dictionaries(
    {
        "order": st.integers(1, 6),
        "layers": st.integers(1, 4),
        "classifier": st.booleans(),
        "p": st.integers(0, 1),
        "bias": st.booleans(),
        "activation": st.sampled_from(["tanh", "relu", "identity"]),
        "dropout": st.sampled_from([0.0, 0.5]),
    }
)
forms = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
"""Which of two forms trains, scores, and computes everything."""


def network(case: Case, dtype: torch.dtype, hidden: int = 4, **settings: Any) -> TruncatedKrylov:
    found = TruncatedKrylov(case.x.shape[1], hidden, case.classes, **settings).to(dtype)
    found.reset_parameters(seeded(case.masks.seed))
    return found


def compare(case: Case, literal: TruncatedKrylov, name: str, picks: tuple[int, int, int]) -> None:
    """Through ten steps; graphs this small would have each form chosen but seldom."""
    picked = chain(picks[:2], repeat(picks[2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(krylov, "cheapest", lambda forms: list(forms)[next(picked)])
        rest = (case.x, case.L, case.nodes, case.masks)
        engine = KrylovForward(Workload(copy.deepcopy(literal), *rest))
        assert type(engine._training) is (KeptBlocks, Horner)[picks[0]]
        check_run(engine, WholeGraph(Workload(literal, *rest)), case, name)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    case=cases(),
    settings=networks,
    name=st.sampled_from(["adam", "rmsprop"]),
    picks=forms,
)
def test_ten_steps_are_those_of_the_literal_form(
    case: Case, settings: dict[str, Any], name: str, picks: tuple[int, int, int]
) -> None:
    compare(case, network(case, torch.float64, **settings), name, picks)


@pytest.mark.slow
@settings(max_examples=20)
@given(case=cases(torch.float32), settings=networks, picks=forms)
def test_ten_steps_in_float32(
    case: Case, settings: dict[str, Any], picks: tuple[int, int, int]
) -> None:
    compare(case, network(case, torch.float32, **settings), "rmsprop", picks)


@pytest.mark.slow
@settings(max_examples=10)
@given(
    case=cases(),
    settings=networks,
    picks=forms,
    width=st.integers(TORCH_KERNEL_COLUMNS - 1, TORCH_KERNEL_COLUMNS + 1),
)
def test_ten_steps_of_a_wide_network(
    case: Case, settings: dict[str, Any], picks: tuple[int, int, int], width: int
) -> None:
    compare(case, network(case, torch.float64, hidden=width, **settings), "adam", picks)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        # One layer without diffusion after it: the training node alone.
        ({"order": 3}, [[5]]),
        # Diffused once more, its neighbours too.
        ({"order": 3, "p": 1}, [[5, 4, 6]]),
        # A second layer of order 3 sees two hops.
        ({"order": 3, "layers": 2}, [[5, 4, 6, 3, 7], [5]]),
        ({"order": 2, "layers": 3, "p": 1}, [[5, 4, 6, 3, 7, 2, 8], [5, 4, 6, 3, 7], [5, 4, 6]]),
        # Order 1 sees none.
        ({"order": 1, "layers": 3}, [[5], [5], [5]]),
    ],
)
def test_a_layer_is_computed_where_it_is_needed(
    settings: dict[str, int], asked: list[list[int]]
) -> None:
    masks = FixedMasks(11)
    net = TruncatedKrylov(3, 4, 2, dropout=0.5, **settings)
    nodes = Nodes(torch.tensor([5]), torch.tensor([0]))
    forward = KrylovForward(Workload(net, torch.ones(11, 3), operator(toy.path(11)), nodes, masks))
    forward.training()
    assert [sorted(nodes or []) for _, _, nodes in masks.asked] == [sorted(a) for a in asked]
    assert [layer for layer, _, _ in masks.asked] == list(range(len(asked)))
    net.eval()
    with torch.no_grad():
        forward.scored()
        forward.everything()
    assert len(masks.asked) == len(asked)


def test_everything_takes_blocks_or_horner() -> None:
    # The forms that keep nothing: what is kept for every node may not fit.
    x, L = torch.ones(11, 3), operator(toy.path(11))
    net = TruncatedKrylov(3, 4, 2, order=3).eval()
    nodes = Nodes(torch.tensor([5]), torch.tensor([0]))
    forward = KrylovForward(Workload(net, x, L, nodes, FixedMasks(11)))
    seen: list[set[type]] = []

    def watched(forms: Any) -> Any:
        forms = list(forms)
        seen.append({type(form) for form in forms})
        return forms[0]

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(krylov, "cheapest", watched)
        torch.testing.assert_close(forward.everything(), net(x, L))
    assert seen == [{Blocks, Horner}]
