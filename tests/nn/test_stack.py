from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.data import toy
from kryograph.nn.functional import Masks, NodeFeatures
from kryograph.nn.stack import Stack
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from tests.layers import WEIGHTED, FixedMasks, close, edge_index_of, random, seeded

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
