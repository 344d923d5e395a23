"""LanczosNet against its formula with dense matrices, and AdaLanczosNet against LanczosNet."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.data import toy
from kryograph.errors import KryographError
from kryograph.graph import Graph
from kryograph.krylov.lanczos import Components, LanczosBasis, lanczos
from kryograph.nn.lanczos_net import RITZ_FILTERS, LanczosConv, LanczosNet, PowerFilter
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.lanczos_net import AdaLanczosNet
from tests.layers import (
    MIXED,
    OPERATORS,
    WEIGHTED,
    FixedMasks,
    dense,
    edge_index_of,
    random,
    seeded,
)

pytestmark = pytest.mark.usefixtures("double")

both_operators = pytest.mark.parametrize("name", OPERATORS)
every_filter = pytest.mark.parametrize("filter", RITZ_FILTERS)


def stirred(network: torch.nn.Module, seed: int = 5) -> torch.nn.Module:
    """With every weight drawn, those that start at zero included."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3, generator=seeded(seed))
    return network.eval()


def block_diagonal(basis: LanczosBasis, matrices: Tensor) -> Tensor:
    """Q M Qᵀ of all parts as an N × N matrix: for tests on thirteen nodes."""
    eye = torch.eye(len(basis.q))
    return basis.expand(matrices @ basis.project(eye))


@both_operators
@every_filter
@pytest.mark.parametrize("graph", [MIXED, WEIGHTED, toy.cycle(6)])
def test_a_layer_is_its_formula(graph: Graph, filter: str, name: str) -> None:
    network = stirred(LanczosNet(4, 5, 3, steps=4, filter=filter, operator=name))
    x, L = random(graph.n, 4), operator(graph, name)
    _, basis, scale = network.prepare(x, L)
    conv = network.convs[0]
    found = conv(x, *network.prepare(x, L))
    R = dense(graph, name)
    c = torch.ones(graph.n, 1) if scale is None else scale
    long = conv.filter(basis, torch.float64).unbind(dim=1)
    blocks = [torch.linalg.matrix_power(R, s) @ x for s in (1, 2, 5, 7)]
    blocks += [block_diagonal(basis, each) @ (c * x) / c for each in long]
    weights = conv.weight.split(5, dim=1)
    expected = torch.cat(blocks, dim=1) @ torch.cat(weights) / 7**0.5 + conv.bias
    torch.testing.assert_close(found, expected)


@both_operators
def test_long_diffusions_are_exact_when_the_space_is_all(name: str) -> None:
    # A path has as many distinct eigenvalues as nodes.
    graph = toy.path(6)
    network = stirred(LanczosNet(4, 5, 3, steps=6, filter="none", operator=name))
    x, L = random(6, 4), operator(graph, name)
    R = dense(graph, name)
    conv = network.convs[0]
    blocks = [torch.linalg.matrix_power(R, s) @ x for s in (1, 2, 5, 7, 10, 20, 30)]
    expected = (
        torch.cat(blocks, dim=1) @ torch.cat(conv.weight.split(5, dim=1)) / 7**0.5 + conv.bias
    )
    torch.testing.assert_close(conv(x, *network.prepare(x, L)), expected, rtol=0, atol=1e-8)


def test_without_long_scales_a_layer_is_a_graph_convolution() -> None:
    x, L = random(MIXED.n, 4), operator(MIXED)
    basis = lanczos(L, x[:, 0], 3, Components.of(L.matrix))
    conv = LanczosConv(4, 2, PowerFilter((), 3, 1), short=(1,))
    torch.testing.assert_close(conv(x, L, basis, None), dense(MIXED, "sym") @ x @ conv.weight)


@every_filter
def test_a_filter_starts_with_the_powers(filter: str) -> None:
    L = operator(MIXED)
    basis = lanczos(L, random(13), 4, Components.of(L.matrix))
    made = RITZ_FILTERS[filter]((2, 3), 4, 8)
    expected = torch.stack([basis.t @ basis.t, basis.t @ basis.t @ basis.t], dim=1)
    torch.testing.assert_close(made(basis, torch.float64), expected)
    changed = stirred(made)(basis, torch.float64)
    torch.testing.assert_close(changed, changed.mT)
    assert torch.allclose(changed, expected) == (filter == "none")


@pytest.mark.parametrize("filter", ["ritz", "matrix"])
def test_the_rate_scales_what_a_filter_has_learned(filter: str) -> None:
    L = operator(MIXED)
    basis = lanczos(L, random(13), 4, Components.of(L.matrix))
    none, slow, fast = (
        stirred(RITZ_FILTERS[filter]((2, 3), 4, 8, rate))(basis, torch.float64)
        for rate in (0.0, 0.1, 1.0)
    )
    torch.testing.assert_close(none, PowerFilter((2, 3), 4, 8)(basis, torch.float64))
    torch.testing.assert_close(slow - none, (fast - none) / 10)
    assert not torch.allclose(slow, none)


def test_the_filter_of_ritz_values_does_not_depend_on_their_eigenvectors() -> None:
    # All nodes of a cycle but two pair up: equal eigenvalues, and yet the same filter for both.
    L = operator(toy.cycle(8))
    basis = lanczos(L, random(8), 8, Components.of(L.matrix))
    values, vectors = basis.ritz
    made = stirred(RITZ_FILTERS["ritz"]((1, 2), 8, 8))
    first, second = made(basis, torch.float64)[0]
    torch.testing.assert_close(first @ second, second @ first)
    torch.testing.assert_close(first @ basis.t[0], basis.t[0] @ first)
    assert values.shape == (1, 8)
    assert vectors.shape == (1, 8, 8)


@both_operators
@pytest.mark.parametrize("cls", [LanczosNet, AdaLanczosNet])
def test_edge_index_operator_dense_and_sparse_agree(cls: type[LanczosNet], name: str) -> None:
    network = stirred(cls(4, 5, 3, steps=3, operator=name))
    x = random(WEIGHTED.n, 4)
    x[x.abs() < 0.3] = 0
    L = operator(WEIGHTED, name if cls is LanczosNet else "affinity")
    expected = network(x, L)
    torch.testing.assert_close(network(x, *edge_index_of(WEIGHTED)), expected)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)
    torch.testing.assert_close(network(sparse, L), expected)


@both_operators
@pytest.mark.parametrize("cls", [LanczosNet, AdaLanczosNet])
def test_permuted_nodes_give_permuted_logits(cls: type[LanczosNet], name: str) -> None:
    network = stirred(cls(4, 5, 3, layers=2, steps=4, operator=name))
    old = np.random.default_rng(0).permutation(MIXED.n)
    moved = Graph(sp.csr_array(MIXED.adjacency[old][:, old]), MIXED.features[old])
    which = name if cls is LanczosNet else "affinity"
    x = random(MIXED.n, 4)
    plain, permuted = network(x, operator(MIXED, which)), network(x[old], operator(moved, which))
    torch.testing.assert_close(permuted, plain[old], rtol=0, atol=1e-8)
    assert not torch.allclose(permuted, plain)


@pytest.mark.parametrize("cls", [LanczosNet, AdaLanczosNet])
def test_dropout_asks_once_for_every_layer(cls: type[LanczosNet]) -> None:
    network = cls(4, 5, 3, layers=2, steps=3, dropout=0.5)
    masks = FixedMasks(MIXED.n)
    L = operator(MIXED, "sym" if cls is LanczosNet else "affinity")
    network(random(MIXED.n, 4), L, masks=masks)
    assert [layer for layer, _, _ in masks.asked] == [0, 1, 2]
    network.drop_features = False
    masks.asked.clear()
    network(random(MIXED.n, 4), L, masks=masks)
    assert [layer for layer, _, _ in masks.asked] == [1, 2]


def test_a_generator_decides_everything() -> None:
    first, second = (AdaLanczosNet(4, 5, 3, steps=3) for _ in range(2))
    first.reset_parameters(seeded(1))
    second.reset_parameters(seeded(1))
    assert all(torch.equal(v, second.state_dict()[k]) for k, v in first.state_dict().items())
    second.reset_parameters(seeded(2))
    assert not torch.equal(first.start, second.start)
    assert not torch.equal(first.f[1].weight, second.f[1].weight)


def test_it_can_be_made_without_storage() -> None:
    with torch.device("meta"):
        network = AdaLanczosNet(4, 5, 3)
    assert {value.device.type for value in network.state_dict().values()} == {"meta"}


# The kernel


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(KryographError, match="filter"):
        LanczosNet(4, 5, 3, filter="ritzz")
    with pytest.raises(ValueError, match="gradient"):
        AdaLanczosNet(4, 5, 3, filter="ritz")
    with pytest.raises(ValueError, match="affinity"):
        AdaLanczosNet(4, 5, 3)(random(13, 4), operator(MIXED))
