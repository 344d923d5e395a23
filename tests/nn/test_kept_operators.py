"""An operator is computed once for a graph, and never returned for another one."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch import Tensor

from kryograph.nn import kept_operators
from kryograph.nn.kept_operators import MOST_OPERATORS, kept_operator
from kryograph.nn.multi_scale import KrylovConv
from kryograph.operators import Operator, from_edge_index
from tests.layers import directed, random


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    kept_operators._KEPT.clear()


def is_right(operator: Operator, edges: Tensor, weight: Tensor | None, name: str = "sym") -> bool:
    expected = from_edge_index(edges, weight, operator.n, name)
    same = operator.matrix.toarray() == expected.matrix.toarray()
    return operator.name == name and bool(np.all(same))


def test_the_same_tensors_have_the_same_operator() -> None:
    edges, weight = directed(9, 25, seed=0)
    first = kept_operator(edges, weight, 9)
    assert kept_operator(edges, weight, 9) is first
    assert is_right(first, edges, weight)


def test_another_argument_has_another_operator() -> None:
    edges, weight = directed(9, 25, seed=0)
    kept = kept_operator(edges, weight, 9)
    others = [(edges, None, 9, "sym"), (edges, weight, 10, "sym"), (edges, weight, 9, "rw")]
    for e, w, n, name in others:
        other = kept_operator(e, w, n, name)
        assert other is not kept
        assert other.n == n
        assert is_right(other, e, w, name)
    assert kept_operator(edges, weight, 9) is kept


def writes() -> list[object]:
    def in_place(edges: Tensor, weight: Tensor) -> None:
        weight[3] = 7.0

    def in_place_edges(edges: Tensor, weight: Tensor) -> None:
        edges[0, 3] = (edges[1, 3] + 1) % 9

    def past_the_count(edges: Tensor, weight: Tensor) -> None:
        weight.data[3] = 7.0

    def through_numpy(edges: Tensor, weight: Tensor) -> None:
        weight.numpy()[3] = 7.0

    def through_a_view(edges: Tensor, weight: Tensor) -> None:
        weight[2:5].mul_(3)

    def new_storage(edges: Tensor, weight: Tensor) -> None:
        weight.set_(torch.ones(25))

    def shorter(edges: Tensor, weight: Tensor) -> None:
        edges.data, weight.data = edges[:, :20].clone(), weight[:20].clone()

    return [
        in_place,
        in_place_edges,
        past_the_count,
        through_numpy,
        through_a_view,
        new_storage,
        shorter,
    ]


@pytest.mark.parametrize("write", writes(), ids=lambda write: write.__name__)
def test_a_change_is_seen(write: object) -> None:
    edges, weight = directed(9, 25, seed=0)
    before = kept_operator(edges, weight, 9)
    write(edges, weight)  # type: ignore[operator]
    after = kept_operator(edges, weight, 9)
    assert is_right(after, edges, weight)
    assert not np.array_equal(after.matrix.toarray(), before.matrix.toarray())
    assert kept_operator(edges, weight, 9) is after


def test_a_new_tensor_at_the_same_address_is_another_graph() -> None:
    addresses = set()
    for seed in range(50):
        edges, weight = directed(9, 25, seed=seed)
        addresses.add((id(edges), edges.data_ptr()))
        assert is_right(kept_operator(edges, weight, 9), edges, weight)
        del edges, weight
    assert len(addresses) < 50  # an address came back, or this test shows nothing


def test_an_operator_goes_with_its_tensors() -> None:
    edges, weight = directed(9, 25, seed=0)
    kept_operator(edges, weight, 9)
    kept_operator(edges, None, 9)
    del weight
    gc.collect()
    assert [key[1] for key in kept_operators._KEPT] == [id(None)]
    del edges
    gc.collect()
    assert not kept_operators._KEPT


def test_few_operators_are_kept_and_those_in_use_stay() -> None:
    graphs = [directed(9, 25, seed=seed) for seed in range(MOST_OPERATORS + 3)]
    first = kept_operator(*graphs[0], 9)
    for graph in graphs[1:]:
        kept_operator(*graph, 9)
        assert kept_operator(*graphs[0], 9) is first
    assert len(kept_operators._KEPT) == MOST_OPERATORS


def test_a_layer_normalises_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: object) -> Operator:
        calls.append(arguments)
        return from_edge_index(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(kept_operators, "from_edge_index", counted)
    (edges, weight), x = directed(9, 25, seed=0), random(9, 3)
    conv, other = KrylovConv(3, 2, order=3), KrylovConv(3, 2, order=4)
    first = conv(x, edges, weight)
    assert torch.equal(conv(x, edges, weight), first)
    other(x, edges, weight)
    assert len(calls) == 1
    weight[0] = 5.0
    assert not torch.equal(conv(x, edges, weight), first)
    assert len(calls) == 2


def test_tensors_of_inference_mode_are_compared_too() -> None:
    with torch.inference_mode():
        edges, weight = directed(9, 25, seed=0)
        first = kept_operator(edges, weight, 9)
        assert kept_operator(edges, weight, 9) is first
        weight[0] = 5.0
        assert is_right(kept_operator(edges, weight, 9), edges, weight)


def test_weights_that_need_gradients_are_constants_here() -> None:
    edges, weight = directed(9, 25, seed=0)
    weight.requires_grad_()
    first = kept_operator(edges, weight, 9)
    assert kept_operator(edges, weight, 9) is first
    with torch.no_grad():
        weight[0] = 5.0
    assert is_right(kept_operator(edges, weight, 9), edges, weight.detach())
