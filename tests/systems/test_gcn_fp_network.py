from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import MFConv

from kryograph.data import toy
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.gcn_fp import FingerprintConv
from tests.layers import MIXED, close, edge_index_of, random

pytestmark = pytest.mark.usefixtures("double")


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


def test_a_hub_shares_the_weights_of_the_largest_degree() -> None:
    # Weights for degrees 0, 1 and 2 are 1, 10 and 100, nothing for a node itself. In a star of
    # four, leaves see the hub at 10, and the hub sees three leaves at 100.
    conv = FingerprintConv(1, 1, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[1.0, 10.0, 100.0, 0.0, 0.0, 0.0]]))
    out = conv(torch.ones(4, 1), operator(toy.star(4), "affinity"))
    assert close(out, torch.tensor([[300.0], [10.0], [10.0], [10.0]]))
