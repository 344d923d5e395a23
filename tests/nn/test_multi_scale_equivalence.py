"""Linear Snowball is a one-layer block Krylov network with a structured weight.

Without biases and dropout, H_0 = X and H_{l+1} = L [H_0, …, H_l] W_l. If the blocks so far are
[H_0, …, H_l] = K_{l+1}(L, X) V_l, the next is L K_{l+1}(L, X) V_l W_l: the columns V_l W_l, moved
down by one block of rows. So [H_0, …, H_n] = K_{n+1}(L, X) V, and the logits are
L K_{n+1}(L, X) V W_C, which is K_{n+2}(L, X) without its first block.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kryograph.data import toy
from kryograph.nn import KrylovConv, Snowball, krylov_blocks
from kryograph.operators import operator
from tests.layers import OPERATORS

FEATURES, HIDDEN, CLASSES = 2, 3, 4
GRAPH = toy.disjoint(toy.path(11), toy.isolated(1), toy.two_cliques(5), toy.star(7))
"""Twenty-nine nodes: three components of several nodes and a node on its own."""

DEPTHS = [1, 2, 4]

pytestmark = pytest.mark.usefixtures("double")


def features() -> Tensor:
    return torch.randn(GRAPH.n, FEATURES, generator=torch.Generator().manual_seed(1))


def linear_snowball(n: int, activation: str = "identity") -> Snowball:
    return Snowball(FEATURES, HIDDEN, CLASSES, n, activation=activation, bias=False)


def krylov_matrix(name: str, x: Tensor, order: int) -> Tensor:
    """K_order(L, X) = [X, LX, …, L^{order-1} X], from dense powers of L."""
    matrix = torch.from_numpy(operator(GRAPH, name).matrix.toarray())
    return torch.cat([torch.linalg.matrix_power(matrix, k) @ x for k in range(order)], dim=1)


def structured_weight(net: Snowball) -> Tensor:
    """V with [H_0, …, H_n] = K_{n+1}(L, X) V: column block by column block."""
    n = len(net.convs)
    v = torch.zeros((n + 1) * FEATURES, FEATURES)
    v[:FEATURES] = torch.eye(FEATURES)
    for conv in net.convs:
        columns = v @ conv.weight.detach()
        assert not columns[-FEATURES:].any()  # L H_l has no power of L above n
        moved_down = torch.cat([torch.zeros(FEATURES, HIDDEN), columns[:-FEATURES]])
        v = torch.cat([v, moved_down], dim=1)
    return v


def hidden_blocks(net: Snowball, name: str, x: Tensor) -> Tensor:
    """[H_0, …, H_n], layer by layer."""
    matrix = torch.from_numpy(operator(GRAPH, name).matrix.toarray())
    h = x
    for conv in net.convs:
        h = torch.cat([h, matrix @ h @ conv.weight.detach()], dim=1)
    return h


def distance(columns: Tensor, space: Tensor) -> float:
    """How far columns lie from the column space of a matrix, relative to their size."""
    u, s, _ = torch.linalg.svd(space, full_matrices=False)
    basis = u[:, s > 1e-13 * s[0]]
    assert basis.shape[1] < space.shape[0], "every vector lies in the whole space"
    return float(torch.linalg.norm(columns - basis @ (basis.T @ columns)) / columns.norm())


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", DEPTHS)
def test_the_logits_lie_in_the_krylov_space(n: int, name: str) -> None:
    net, x = linear_snowball(n), features()
    logits = net(x, operator(GRAPH, name)).detach()
    assert distance(logits, krylov_matrix(name, x, n + 2)) < 1e-10
    # One block fewer is not enough, and tanh leaves the space.
    assert distance(logits, krylov_matrix(name, x, n + 1)) > 1e-6
    curved = linear_snowball(n, "tanh")
    curved.load_state_dict(net.state_dict())
    outside = curved(x, operator(GRAPH, name)).detach()
    assert distance(outside, krylov_matrix(name, x, n + 2)) > 1e-3


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", DEPTHS)
def test_the_hidden_blocks_are_krylov_blocks_times_the_structured_weight(n: int, name: str) -> None:
    net, x = linear_snowball(n), features()
    found = krylov_matrix(name, x, n + 1) @ structured_weight(net)
    assert torch.allclose(found, hidden_blocks(net, name, x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", DEPTHS)
def test_the_logits_are_one_diffused_krylov_layer(n: int, name: str) -> None:
    net, x = linear_snowball(n), features()
    logits = net(x, operator(GRAPH, name)).detach()
    weight = structured_weight(net) @ net.output.weight.detach()
    matrix = torch.from_numpy(operator(GRAPH, name).matrix.toarray())
    found = matrix @ krylov_matrix(name, x, n + 1) @ weight
    assert torch.allclose(found, logits, rtol=0, atol=1e-10)
    assert logits.abs().max() > 0.01


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", DEPTHS)
def test_a_krylov_layer_without_its_first_block_is_linear_snowball(n: int, name: str) -> None:
    net, x, found = linear_snowball(n), features(), operator(GRAPH, name)
    conv = KrylovConv(FEATURES, CLASSES, order=n + 2, bias=False)
    weight = structured_weight(net) @ net.output.weight.detach()
    with torch.no_grad():
        conv.weight.copy_(torch.cat([torch.zeros(FEATURES, CLASSES), weight]))
    assert torch.allclose(conv(x, found), net(x, found), rtol=0, atol=1e-10)
    rows = torch.tensor([11, 0, 28])  # the node on its own, an end of the path, a leaf
    blocks = [block[rows] for block in krylov_blocks(found, x, n + 2)]
    assert torch.allclose(conv.combine(blocks), net(x, found)[rows], rtol=0, atol=1e-10)


def test_the_structured_weight_of_two_layers_written_out() -> None:
    net = linear_snowball(2)
    w0, w1 = (conv.weight.detach() for conv in net.convs)
    one, none = torch.eye(FEATURES), torch.zeros(FEATURES, FEATURES)
    empty = torch.zeros(FEATURES, HIDDEN)
    # H_1 = LX W_0 and H_2 = LX W_1^1 + L²X W_0 W_1^2.
    expected = torch.cat(
        [
            torch.cat([one, empty, empty], dim=1),
            torch.cat([none, w0, w1[:FEATURES]], dim=1),
            torch.cat([none, empty, w0 @ w1[FEATURES:]], dim=1),
        ]
    )
    assert torch.allclose(structured_weight(net), expected, rtol=0, atol=1e-15)


def test_on_a_complete_graph_two_blocks_say_everything() -> None:
    graph, x = toy.complete(6), torch.eye(6)[:, :1]
    net = Snowball(1, HIDDEN, CLASSES, 4, activation="identity", bias=False)
    logits = net(x, operator(graph)).detach()
    # L averages, so whatever has been diffused is a constant, and the logits are diffused.
    assert torch.allclose(logits, logits[:1].expand(6, CLASSES), rtol=0, atol=1e-14)
    assert logits.abs().max() > 1e-3
