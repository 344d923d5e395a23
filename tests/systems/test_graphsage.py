from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import SAGEConv as Theirs

from kryograph.data import toy
from kryograph.nn.functional import unit_relu
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.graphsage import GraphSAGESystem, SAGEConv
from tests.layers import MIXED, close, edge_index_of, random


def sage(**changes: object) -> GraphSAGESystem:
    found = system("graphsage", changes)
    assert isinstance(found, GraphSAGESystem)
    return found


def test_a_node_is_among_its_neighbours_only_without_a_weight_of_its_own() -> None:
    edge = toy.path(2)
    apart = sage(root_weight=True).diffusion(edge).matrix.toarray()
    among = sage(root_weight=False).diffusion(edge).matrix.toarray()
    np.testing.assert_allclose(apart, [[0, 1], [1, 0]])
    np.testing.assert_allclose(among, [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(("root_weight", "count"), [(True, 2), (False, 1)])
def test_the_original_has_twice_the_weights(root_weight: bool, count: int) -> None:
    net = sage(root_weight=root_weight, hidden=5).network(7, 3)
    assert sum(p.numel() for p in net.parameters()) == count * (7 * 5 + 5 * 3) + 5 + 3


# The network


ALONE = 8
"""The node of MIXED that has no neighbours."""


@pytest.mark.usefixtures("double")
def test_a_layer_is_pytorch_geometrics() -> None:
    ours, theirs = SAGEConv(3, 2), Theirs(3, 2)
    neighbours, own = ours.weight.split(2, dim=1)
    with torch.no_grad():
        theirs.lin_l.weight.copy_(neighbours.T)
        theirs.lin_r.weight.copy_(own.T)
        ours.bias.copy_(theirs.lin_l.bias)
    x = random(MIXED.n, 3)
    sparse = SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=x.dtype)
    expected = theirs(x, edge_index_of(MIXED)[0])
    for given in (x, sparse):
        assert close(ours(given, operator(MIXED, "neighbour-mean")), expected, atol=1e-12)
    assert close(expected[ALONE], x[ALONE] @ own + ours.bias)


@pytest.mark.usefixtures("double")
def test_without_a_root_weight_it_is_a_graph_convolution_with_means() -> None:
    conv, x = SAGEConv(3, 2, root_weight=False), random(MIXED.n, 3)
    L = operator(MIXED, "rw")
    assert close(conv(x, L), L @ (x @ conv.weight) + conv.bias)


@pytest.mark.usefixtures("double")
def test_hidden_outputs_have_unit_length_or_none() -> None:
    lengths = unit_relu(random(50, 2)).norm(dim=1)
    assert set(lengths.round(decimals=12).tolist()) == {0.0, 1.0}
