from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import SAGEConv as Theirs

from kryograph.nn.functional import unit_relu
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.graphsage import SAGEConv
from tests.layers import MIXED, close, edge_index_of, random

pytestmark = pytest.mark.usefixtures("double")

ALONE = 8
"""The node of MIXED that has no neighbours."""


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


def test_without_a_root_weight_it_is_a_graph_convolution_with_means() -> None:
    conv, x = SAGEConv(3, 2, root_weight=False), random(MIXED.n, 3)
    L = operator(MIXED, "rw")
    assert close(conv(x, L), L @ (x @ conv.weight) + conv.bias)


def test_hidden_outputs_have_unit_length_or_none() -> None:
    lengths = unit_relu(random(50, 2)).norm(dim=1)
    assert set(lengths.round(decimals=12).tolist()) == {0.0, 1.0}
