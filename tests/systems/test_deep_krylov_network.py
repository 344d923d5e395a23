from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.nn import ChebConv

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.nn import GCN
from kryograph.operators import Operator, operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.deep_krylov import (
    DIFFUSION,
    IDENTITY,
    DeepKrylov,
    FilterConv,
    PolynomialFilter,
    exponential,
    geometric,
)
from tests.layers import MIXED, OPERATORS, FixedMasks, close, dense, edge_index_of, random, seeded

pytestmark = pytest.mark.usefixtures("double")

FILTERS = [
    IDENTITY,
    DIFFUSION,
    geometric(4, reach=2.0),
    exponential(3, reach=1.0, learn="coefficients"),
    PolynomialFilter((1.0, 1.0, 1.0), "blocks"),
]


def literal(conv: FilterConv, x: Tensor, L: Tensor) -> Tensor:
    """Σ_k L^k X W_k + b, with powers of a dense L."""
    g = conv.filter
    if g.learn == "blocks":
        weights = list(torch.split(conv.weight, conv.in_channels))
    else:
        given = torch.tensor(g.coefficients) if conv.coefficients is None else conv.coefficients
        weights = [c * conv.weight for c in given]
    powers = [torch.linalg.matrix_power(L, k) for k in range(len(weights))]
    return sum(p @ x @ w for p, w in zip(powers, weights, strict=True)) + conv.bias


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("g", FILTERS, ids=str)
def test_a_layer_is_the_sum_over_powers(g: PolynomialFilter, name: str) -> None:
    conv, x = FilterConv(3, 2, g), random(MIXED.n, 3)
    with torch.no_grad():
        conv.bias.copy_(random(2, seed=1))
        if conv.coefficients is not None:
            conv.coefficients.add_(0.5)
    expected = literal(conv, x, dense(MIXED, name))
    L = operator(MIXED, name)
    assert close(conv(x, L), expected)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    assert close(conv(sparse, L), expected)


def test_two_terms_on_two_nodes_by_hand() -> None:
    # L averages the two nodes: 2 + 3 · mean of (4, 0) is 2 · 4 + 6 for one and 6 for the other.
    conv = FilterConv(1, 1, PolynomialFilter((2.0, 3.0)), bias=False)
    with torch.no_grad():
        conv.weight.fill_(1.0)
    found = conv(torch.tensor([[4.0], [0.0]]), operator(toy.path(2)))
    assert close(found, torch.tensor([[14.0], [6.0]]))


def test_without_diffusion_it_is_a_perceptron() -> None:
    net, x = DeepKrylov(3, 4, 2, [IDENTITY] * 3), random(MIXED.n, 3)
    net.reset_parameters(seeded(3))
    h = x
    for layer, conv in enumerate(net.convs):
        h = (torch.relu(h) if layer else h) @ conv.weight + conv.bias
    assert close(net(x, operator(MIXED)), h, 1e-12)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("layers", [1, 3])
def test_with_one_diffusion_per_layer_it_is_a_gcn(layers: int, name: str) -> None:
    nets = [
        GCN(3, 4, 2, layers, dropout=0.4),
        DeepKrylov(3, 4, 2, [DIFFUSION] * (layers + 1), dropout=0.4),
    ]
    gcn, deep = nets
    deep.load_state_dict(gcn.state_dict())
    x, L = random(MIXED.n, 3), operator(MIXED, name)
    masks = FixedMasks(MIXED.n)
    assert close(deep(x, L, masks=masks), gcn(x, L, masks=masks), 1e-12)
    for net in nets:
        net.reset_parameters(seeded(5))
        net.eval()
    assert close(deep(x, L), gcn(x, L), 1e-12)


def test_blocks_contain_chebnet() -> None:
    # T_k(M) = Σ_j t_kj M^j, so the weight of M^j is Σ_k t_kj Θ_k.
    graph, terms = toy.star(6), 4
    laplacian = operator(graph, "normalised-laplacian").matrix
    M = Operator("M", sp.csr_array(laplacian - sp.eye_array(graph.n)), symmetric=True)
    x, edge_index = random(graph.n, 3), edge_index_of(graph)[0]
    theirs = [ChebConv(3, 5, terms), ChebConv(5, 2, terms)]
    ours = DeepKrylov(3, 5, 2, [PolynomialFilter((1.0,) * terms, "blocks")] * 2)
    basis = np.zeros((terms, terms))
    for k in range(terms):
        basis[k, : k + 1] = np.polynomial.chebyshev.cheb2poly(np.eye(terms)[k])[: k + 1]
    with torch.no_grad():
        for conv, cheb in zip(ours.convs, theirs, strict=True):
            theta = torch.stack([lin.weight.T for lin in cheb.lins])
            conv.weight.copy_(
                torch.einsum("kj,kio->jio", torch.from_numpy(basis), theta).flatten(0, 1)
            )
            cheb.bias.copy_(random(len(cheb.bias), seed=2))
            conv.bias.copy_(cheb.bias)
    expected = theirs[1](torch.relu(theirs[0](x, edge_index)), edge_index)
    assert close(ours(x, M), expected, 1e-12)


def test_long_series_are_the_functions_they_are_named_after() -> None:
    L = dense(MIXED, "sym")
    near = [geometric(200, reach=3.0), exponential(60, reach=3.0)]
    exact = [0.25 * torch.linalg.inv(torch.eye(MIXED.n) - 0.75 * L)]
    exact.append(torch.linalg.matrix_exp(3 * (L - torch.eye(MIXED.n))))
    for g, expected in zip(near, exact, strict=True):
        conv = FilterConv(MIXED.n, MIXED.n, g, bias=False)
        with torch.no_grad():
            conv.weight.copy_(torch.eye(MIXED.n))
        assert close(conv(torch.eye(MIXED.n), operator(MIXED)), expected, 1e-12)


def test_coefficients_of_the_series() -> None:
    assert geometric(3, reach=0.0).coefficients == (1.0, 0.0, 0.0)
    assert exponential(3, reach=2.0).coefficients == pytest.approx(
        [math.exp(-2), 2 * math.exp(-2), 2 * math.exp(-2)]
    )


def test_learned_coefficients_start_as_given_and_have_gradients() -> None:
    conv = FilterConv(3, 2, geometric(4, reach=1.0, learn="coefficients"))
    assert conv.coefficients.tolist() == [0.5, 0.25, 0.125, 0.0625]
    conv(random(MIXED.n, 3), operator(MIXED)).square().sum().backward()
    assert (conv.coefficients.grad.abs() > 0).all()


def test_what_is_not_a_filter_is_refused() -> None:
    with pytest.raises(UsageError, match="everything"):
        PolynomialFilter((1.0,), "everything")
    with pytest.raises(ValueError, match="at least one"):
        PolynomialFilter(())
