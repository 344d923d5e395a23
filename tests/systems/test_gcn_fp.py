from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import MFConv

from kryograph.data import toy
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.gcn_fp import FingerprintConv, GCNFPSystem
from tests.layers import MIXED, close, edge_index_of, random


def fingerprint(**changes: object) -> GCNFPSystem:
    found = system("gcn-fp", {"dropout": 0.0, **changes})
    assert isinstance(found, GCNFPSystem)
    return found


def test_it_sums_a_node_with_its_neighbours() -> None:
    L = fingerprint().diffusion(toy.path(3))
    np.testing.assert_array_equal(L.matrix.toarray(), [[1, 1, 0], [1, 1, 1], [0, 1, 1]])


def test_one_weight_for_everything_makes_the_variants_equal() -> None:
    # A largest degree of 0 leaves one W and one V; where they are the same, it is a sum with loops.
    ours = fingerprint(variant="original", max_degree=0).network(4, 3)
    theirs = fingerprint(variant="lanczosnet").network(4, 3)
    with torch.no_grad():
        for conv, other in zip(ours.convs, theirs.convs, strict=True):
            assert isinstance(conv, FingerprintConv)
            conv.weight.copy_(torch.cat([other.weight, other.weight], dim=1))
    graph = toy.disjoint(toy.star(5), toy.isolated(1))
    x = torch.rand(6, 4, generator=torch.Generator().manual_seed(0))
    L = operator(graph, "affinity")
    torch.testing.assert_close(ours(x, L), theirs(x, L))


def test_the_hidden_output_of_a_hub_is_no_longer_than_a_leafs() -> None:
    star = operator(toy.star(200), "affinity")
    x = torch.ones(200, 1)
    for normalise, ratio in ((True, 1.0), (False, 100.0)):
        network = fingerprint(normalise=normalise).network(1, 2)
        with torch.no_grad():
            network.convs[0].weight.fill_(1.0)
        hidden = network.activation(network.convs[0](x, star))
        lengths = hidden.norm(dim=1)
        torch.testing.assert_close(lengths[0] / lengths[1], torch.tensor(ratio))


# The network


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("max_degree", [0, 2, 3, 10])
def test_a_layer_is_pytorch_geometrics(max_degree: int) -> None:
    ours, theirs = FingerprintConv(3, 2, max_degree), MFConv(3, 2, max_degree)
    torch.nn.init.normal_(ours.bias)
    neighbours, own = ours.weight.chunk(2, dim=1)
    with torch.no_grad():
        for lin, weight, bias in zip(
            theirs.lins_l, neighbours.split(2, dim=1), ours.bias, strict=True
        ):
            lin.weight.copy_(weight.T)
            lin.bias.copy_(bias)
        for lin, weight in zip(theirs.lins_r, own.split(2, dim=1), strict=True):
            lin.weight.copy_(weight.T)
    x = random(MIXED.n, 3)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype)
    expected = theirs(x, edge_index_of(MIXED)[0])
    for given in (x, sparse):
        assert close(ours(given, operator(MIXED, "affinity")), expected, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_a_hub_shares_the_weights_of_the_largest_degree() -> None:
    # Weights for degrees 0, 1 and 2 are 1, 10 and 100, nothing for a node itself. In a star of
    # four, leaves see the hub at 10, and the hub sees three leaves at 100.
    conv = FingerprintConv(1, 1, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0, 10.0, 100.0, 0.0, 0.0, 0.0]]))
    out = conv(torch.ones(4, 1), operator(toy.star(4), "affinity"))
    assert close(out, torch.tensor([[300.0], [10.0], [10.0], [10.0]]))
