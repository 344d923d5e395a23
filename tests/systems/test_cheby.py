from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn import ChebConv

from kryograph.data import toy
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.cheby import ChebyConv, ChebySystem, largest_eigenvalue
from tests.layers import MIXED, close, edge_index_of, random


def filtered(graph: Graph, laplacian: str, which: str = "sym") -> np.ndarray:
    """M, dense."""
    chosen = system("cheby", {"laplacian": laplacian}, operator=which)
    assert isinstance(chosen, ChebySystem)
    return chosen.diffusion(graph).matrix.toarray()


def spectrum(matrix: np.ndarray) -> np.ndarray:
    return np.sort(np.linalg.eigvals(matrix).real)


@pytest.mark.parametrize("which", ["sym", "rw"])
def test_the_triangle_under_every_laplacian(which: str) -> None:
    # The Laplacian of a triangle has eigenvalues 0, 3/2, 3/2.
    graph = toy.cycle(3)
    expected = {"unscaled": [0, 1.5, 1.5], "scaled": [-1, 1, 1], "two": [-1, 0.5, 0.5]}
    for laplacian, eigenvalues in expected.items():
        found = spectrum(filtered(graph, laplacian, which))
        np.testing.assert_allclose(found, eigenvalues, atol=1e-12)


def test_a_graph_without_edges_can_be_scaled() -> None:
    np.testing.assert_array_equal(filtered(toy.isolated(3), "scaled"), -np.eye(3))


@pytest.mark.parametrize("n", [5, 40, 41])
def test_the_largest_eigenvalue_of_a_cycle(n: int) -> None:
    # 1 - cos(2 π k / n): 2 for even n, where a ring can be coloured with two colours.
    expected = 1 - np.cos(2 * np.pi * (n // 2) / n)
    found = largest_eigenvalue(operator(toy.cycle(n), "normalised-laplacian"))
    assert found == pytest.approx(expected, abs=1e-8)


def test_a_star_walks_back_and_forth() -> None:
    star = toy.disjoint(toy.star(4), toy.isolated(1))
    expected = np.zeros((5, 5))
    expected[0, 1:4] = 1 / 3
    expected[1:4, 0] = 1
    np.testing.assert_allclose(operator(star, "neighbour-mean").matrix.toarray(), expected)
    there = np.diag([1, 1, 1, 1, 0])
    np.testing.assert_allclose(operator(star, "walk-laplacian").matrix.toarray(), there - expected)
    assert operator(star, "neighbour-mean").matrix.nnz == 6


def test_decay_is_the_first_layers_alone_or_everyones() -> None:
    chosen = system("cheby")
    assert isinstance(chosen, ChebySystem)
    network = chosen.network(4, 2)
    assert [p is network.convs[0].weight for p in chosen.decayed(network) or ()] == [True]
    everyone = system("cheby", {"decay_all": True})
    assert isinstance(everyone, ChebySystem)
    assert everyone.decayed(network) is None


# The network


ORDERS = [1, 2, 3, 4, 7]


def by_recurrence(conv: ChebyConv, x: Tensor, M: Tensor) -> Tensor:
    """The sum from the first term to the last, with dense T_k(M)."""
    polynomials = [torch.eye(len(M)), M]
    while len(polynomials) < conv.order:
        polynomials.append(2 * M @ polynomials[-1] - polynomials[-2])
    weights = conv.weight.split(conv.out_channels, dim=1)
    terms = [T @ x @ W for T, W in zip(polynomials, weights, strict=False)]
    return torch.stack(terms).sum(dim=0) + conv.bias


@pytest.mark.usefixtures("double")
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


@pytest.mark.usefixtures("double")
def test_an_edge_by_hand() -> None:
    # The Laplacian M of an edge is 1 and -1, and M² = 2 M; so T_0 + T_1 + T_2 = M + 2 M² = 5 M.
    conv = ChebyConv(1, 1, 3, bias=False)
    torch.nn.init.ones_(conv.weight)
    x = torch.tensor([[1.0], [0.0]])
    out = conv(x, operator(toy.path(2), "normalised-laplacian"))
    assert close(out, torch.tensor([[5.0], [-5.0]]))


@pytest.mark.usefixtures("double")
def test_one_term_sees_no_neighbour() -> None:
    conv, x = ChebyConv(3, 2, 1), random(13, 3)
    assert close(conv(x, operator(MIXED, "sym")), x @ conv.weight + conv.bias)


@pytest.mark.usefixtures("double")
def test_no_term_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 term or more"):
        ChebyConv(3, 2, 0)


@pytest.mark.usefixtures("double")
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


@pytest.mark.usefixtures("double")
def test_a_network_of_two_terms_can_be_a_gcn() -> None:
    # Without T_0, and with M = L, a layer is L X W_1 + b.
    method = system("cheby", {"hidden": 4, "order": 2})
    assert isinstance(method, ChebySystem)
    net = method.network(3, 2).eval()
    L, x = operator(MIXED, "sym"), random(13, 3)
    with torch.no_grad():
        for conv in net.convs:
            conv.weight[:, : conv.out_channels] = 0
    first, second = (conv.weight[:, conv.out_channels :] for conv in net.convs)
    assert close(net(x, L), L @ (torch.relu(L @ (x @ first)) @ second))
