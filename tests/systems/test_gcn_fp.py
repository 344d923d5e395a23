from __future__ import annotations

import numpy as np
import torch

from kryograph.data import toy
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.gcn_fp import FingerprintConv, GCNFPSystem


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
