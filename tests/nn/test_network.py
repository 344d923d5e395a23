from __future__ import annotations

import math

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch_geometric.nn import GCNConv

from kryograph.data import toy
from kryograph.nn import GCN, Snowball
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.network import GraphConv, Stack
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from tests.layers import (
    MIXED,
    OPERATORS,
    WEIGHTED,
    FixedMasks,
    close,
    dense,
    directed,
    edge_index_of,
    random,
    seeded,
)

pytestmark = pytest.mark.usefixtures("double")


class Noted(nn.Module):
    """Multiplies by a matrix of ones and diffuses; remembers its widths and what came in."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.widths = (inputs, outputs)
        self.weight = nn.Parameter(torch.ones(inputs, outputs))
        self.seen: list[NodeFeatures] = []

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        with torch.no_grad():
            self.weight.uniform_(generator=generator)

    def forward(self, x: NodeFeatures, L: Operator) -> Tensor:
        self.seen.append(x)
        out: Tensor = L @ (x @ self.weight)
        return out


def convs(stack: Stack) -> list[Noted]:
    return [conv for conv in stack.convs if isinstance(conv, Noted)]


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_widths_go_from_features_through_hidden_layers_to_classes(layers: int) -> None:
    stack = Stack(Noted, 5, 3, 2, layers)
    inner = [(3, 3)] * (layers - 1)
    assert [conv.widths for conv in convs(stack)] == [(5, 3), *inner, (3, 2)]


def test_the_activation_is_between_layers_only() -> None:
    # On one node without neighbours L is 1. x W = -3 in both units; ReLU makes it 0, exp e^-3.
    x, alone = torch.tensor([[-1.0, -2.0]]), operator(toy.isolated(1))
    assert Stack(Noted, 2, 2, 1)(x, alone).tolist() == [[0.0]]
    assert Stack(Noted, 2, 2, 1, activation="identity")(x, alone).tolist() == [[-6.0]]
    found = Stack(Noted, 2, 2, 1, activation=torch.exp)(x, alone)
    assert close(found, 2 * torch.exp(torch.tensor([[-3.0]])))


def test_every_layers_input_is_dropped_the_features_too() -> None:
    masks = FixedMasks(4)
    stack = Stack(Noted, 3, 2, 2, layers=2, dropout=0.5, activation="identity")
    x = random(4, 3)
    stack(x, operator(toy.cycle(4)), masks=masks)
    assert masks.asked == [(0, (4, 3), None), (1, (4, 2), None), (2, (4, 2), None)]
    first = convs(stack)[0].seen[0]
    assert isinstance(first, Tensor)
    assert close(first, x * masks.factors(3, 0.5, 1)[0])


def test_nothing_is_dropped_in_evaluation() -> None:
    stack, x, L = Stack(Noted, 3, 2, 2, dropout=0.9), random(4, 3).abs(), operator(toy.cycle(4))
    without = Stack(Noted, 3, 2, 2)
    assert torch.equal(stack.eval()(x, L), without(x, L))
    assert not torch.equal(stack.train()(x, L, masks=Masks(seeded(0))), without(x, L))


def test_sparse_features_stay_sparse_and_give_the_same() -> None:
    x, L = torch.eye(4)[:, :3] * 2.0, operator(toy.path(4))
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    stack = Stack(Noted, 3, 2, 2, dropout=0.5)
    stack(sparse, L, masks=Masks(seeded(0)))
    assert isinstance(convs(stack)[0].seen[0], SparseMatrix)
    assert close(stack.eval()(sparse, L), stack(x, L))


def test_an_edge_index_and_an_operator_agree() -> None:
    stack, x = Stack(Noted, 3, 2, 2, operator="rw"), random(WEIGHTED.n, 3)
    assert close(stack(x, *edge_index_of(WEIGHTED)), stack(x, operator(WEIGHTED, "rw")))


def test_all_weights_come_from_one_generator() -> None:
    first, second, other = (Stack(Noted, 3, 2, 2) for _ in range(3))
    before = torch.get_rng_state()
    for stack, seed in ((first, 1), (second, 1), (other, 2)):
        stack.reset_parameters(seeded(seed))
    assert torch.equal(torch.get_rng_state(), before)
    for one, same, differs in zip(convs(first), convs(second), convs(other), strict=True):
        assert torch.equal(one.weight, same.weight)
        assert not torch.equal(one.weight, differs.weight)


def layers_of(net: GCN) -> list[GraphConv]:
    return [conv for conv in net.convs if isinstance(conv, GraphConv)]


def test_a_network_by_hand() -> None:
    # Both nodes of the path average: 3 and -1 become 1; times -1 and 2, ReLU: 0 and 2; sum 2.
    net = GCN(1, 2, 1)
    first, last = layers_of(net)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[-1.0, 2.0]]))
        last.weight.fill_(1.0)
        last.bias.fill_(0.25)
    found = net(torch.tensor([[3.0], [-1.0]]), operator(toy.path(2)))
    assert close(found, torch.tensor([[2.25], [2.25]]))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_it_is_a_stack_of_pygs_gcnconv(depth: int, bias: bool) -> None:
    edge_index, edge_weight = directed(9, 24, seed=0)
    net = GCN(4, 3, 2, depth, bias=bias)
    x = expected = random(9, 4)
    for number, conv in enumerate(layers_of(net)):
        theirs = GCNConv(conv.in_channels, conv.out_channels, bias=bias)
        with torch.no_grad():
            if bias:
                conv.bias.copy_(random(conv.out_channels, seed=number))
                theirs.bias.copy_(conv.bias)
            theirs.lin.weight.copy_(conv.weight.T)
        expected = theirs(torch.relu(expected) if number else expected, edge_index, edge_weight)
    assert len(net.convs) == depth + 1
    assert close(net(x, edge_index, edge_weight), expected)


@pytest.mark.parametrize("name", OPERATORS)
def test_it_is_the_dense_formula_on_several_components(name: str) -> None:
    net, x, L = GCN(5, 4, 3), random(MIXED.n, 5), dense(MIXED, name)
    first, last = layers_of(net)
    expected = L @ (torch.relu(L @ x @ first.weight + first.bias) @ last.weight) + last.bias
    assert close(net(x, operator(MIXED, name)), expected)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    assert close(net(sparse, operator(MIXED, name)), expected)


def test_snowball_that_sees_only_the_last_layer_is_gcn() -> None:
    snow, net, x = Snowball(3, 2, 2, 1, activation="relu"), GCN(3, 2, 2), random(6, 3)
    first, last = layers_of(net)
    with torch.no_grad():
        snow.output.weight[:3] = 0.0
        last.weight.copy_(snow.output.weight[3:])
        last.bias.copy_(snow.output.bias)
        first.weight.copy_(snow.convs[0].weight)
        first.bias.copy_(snow.convs[0].bias)
    L = operator(toy.cycle(6))
    assert close(net(x, L), snow(x, L))


def test_weights_are_glorots_and_biases_zero() -> None:
    net = GCN(300, 100, 7)
    net.reset_parameters(seeded(0))
    for conv in layers_of(net):
        bound = math.sqrt(6 / (conv.in_channels + conv.out_channels))
        assert 0.98 * bound < conv.weight.abs().max() <= bound
        assert conv.bias is not None
        assert not conv.bias.any()


def test_without_bias_there_are_weights_only() -> None:
    assert [tuple(p.shape) for p in GCN(5, 4, 3, bias=False).parameters()] == [(5, 4), (4, 3)]
    assert [tuple(p.shape) for p in GCN(5, 4, 3).parameters()] == [(5, 4), (4,), (4, 3), (3,)]


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_through_dropout(sparse: bool) -> None:
    net, masks = GCN(3, 2, 2, dropout=0.4, activation="tanh"), FixedMasks(5)
    values = random(5, 3)
    x = SparseMatrix.from_scipy(sp.csr_array(values.numpy()), dtype=torch.float64)
    L = operator(toy.star(5))

    def logits(*weights: torch.Tensor) -> torch.Tensor:
        named = dict(zip(dict(net.named_parameters()), weights, strict=True))
        # Masks of sparse entries are one column long; each call draws the same anew.
        drawn = Masks(seeded(3)) if sparse else masks
        return functional_call(net, named, (x if sparse else values, L), {"masks": drawn})

    assert gradcheck(logits, tuple(p.detach().requires_grad_() for p in net.parameters()))
    assert not close(logits(*net.parameters()), net.eval()(values, L))


def test_it_can_be_made_without_storage() -> None:
    with torch.device("meta"):
        net = GCN(1000, 16, 7)
    assert all(p.is_meta for p in net.parameters())
