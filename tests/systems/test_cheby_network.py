from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn import ChebConv

from kryograph.data import toy
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.cheby import ChebyConv, ChebyNet
from tests.layers import MIXED, close, edge_index_of, random

pytestmark = pytest.mark.usefixtures("double")

ORDERS = [1, 2, 3, 4, 7]


def by_recurrence(conv: ChebyConv, x: Tensor, M: Tensor) -> Tensor:
    """The sum from the first term to the last, with dense T_k(M)."""
    polynomials = [torch.eye(len(M)), M]
    while len(polynomials) < conv.order:
        polynomials.append(2 * M @ polynomials[-1] - polynomials[-2])
    weights = conv.weight.split(conv.out_channels, dim=1)
    terms = [T @ x @ W for T, W in zip(polynomials, weights, strict=False)]
    return torch.stack(terms).sum(dim=0) + conv.bias


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_layer_is_the_sum_of_its_terms(order: int, sparse: bool) -> None:
    L = operator(MIXED, "normalised-laplacian")
    conv = ChebyConv(3, 2, order)
    torch.nn.init.normal_(conv.bias)
    x = random(MIXED.n, 3)
    given = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype) if sparse else x
    expected = by_recurrence(conv, x, torch.from_numpy(L.matrix.toarray()))
    assert close(conv(given, L), expected, atol=1e-10)


def test_an_edge_by_hand() -> None:
    # The Laplacian M of an edge is 1 and -1, and M² = 2 M; so T_0 + T_1 + T_2 = M + 2 M² = 5 M.
    conv = ChebyConv(1, 1, 3, bias=False)
    torch.nn.init.ones_(conv.weight)
    x = torch.tensor([[1.0], [0.0]])
    out = conv(x, operator(toy.path(2), "normalised-laplacian"))
    assert close(out, torch.tensor([[5.0], [-5.0]]))


def test_one_term_sees_no_neighbour() -> None:
    conv, x = ChebyConv(3, 2, 1), random(13, 3)
    assert close(conv(x, operator(MIXED, "sym")), x @ conv.weight + conv.bias)


def test_no_term_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 term or more"):
        ChebyConv(3, 2, 0)


@pytest.mark.parametrize("order", ORDERS)
def test_the_largest_eigenvalue_two_is_pytorch_geometrics(order: int) -> None:
    # Without nodes on their own: theirs have eigenvalue 1, ours 0.
    graph = toy.disjoint(toy.two_cliques(4), toy.star(5))
    M = system("cheby", {"laplacian": "two"}).diffusion(graph)  # type: ignore[attr-defined]
    conv, theirs = ChebyConv(3, 2, order), ChebConv(3, 2, order)
    with torch.no_grad():
        for lin, weight in zip(theirs.lins, conv.weight.split(2, dim=1), strict=True):
            lin.weight.copy_(weight.T)
    x = random(graph.n, 3)
    assert close(conv(x, M), theirs(x, edge_index_of(graph)[0]), atol=1e-6)


def test_a_network_of_two_terms_can_be_a_gcn() -> None:
    # Without T_0, and with M = L, a layer is L X W_1 + b.
    net = ChebyNet(3, 4, 2, 2)
    L, x = operator(MIXED, "sym"), random(13, 3)
    with torch.no_grad():
        for conv in net.convs:
            conv.weight[:, : conv.out_channels] = 0
    first, second = (conv.weight[:, conv.out_channels :] for conv in net.convs)
    assert close(net(x, L), L @ (torch.relu(L @ (x @ first)) @ second))
