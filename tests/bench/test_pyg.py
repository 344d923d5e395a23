"""`kryograph.bench.pyg`: given the same weights, its networks are those of kryograph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.bench.pyg import PYG_NETWORKS, sign_blocks
from kryograph.graph import Graph
from kryograph.nn import GCN, Snowball, TruncatedKrylov, krylov_blocks
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem
from tests.layers import MIXED, WEIGHTED, seeded

FEATURES, HIDDEN, CLASSES = 6, 5, 3
GRAPHS = pytest.mark.parametrize("graph", [MIXED, WEIGHTED], ids=["mixed", "weighted"])


def with_words(graph: Graph) -> Graph:
    """The graph with sparse features."""
    words = sp.random_array((graph.n, FEATURES), density=0.4, rng=0, format="csr")
    return replace(graph, features=words)


def build(name: str, features: int = FEATURES, **changes: Any) -> tuple[nn.Module, NetworkSystem]:
    """PyTorch Geometric's network with random biases, and the system with the same settings."""
    method = system(name, changes)
    assert isinstance(method, NetworkSystem)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = PYG_NETWORKS[name](features, CLASSES, method.settings).eval()
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            if key.endswith("bias"):
                parameter.uniform_(-1, 1, generator=seeded(0))
    return network, method


def logits_of(network: nn.Module, graph: Graph) -> Tensor:
    logits: Tensor = network(SparseMatrix.from_scipy(with_words(graph).features), operator(graph))
    return logits.detach()


def pyg_logits(network: nn.Module, graph: Graph) -> Tensor:
    data = with_words(graph).to_pyg()
    logits: Tensor = network(data.x, data.edge_index, data.edge_weight)
    return logits.detach()


@GRAPHS
@pytest.mark.parametrize("order", [1, 2, 5])
def test_sign_blocks_are_those_of_the_papers_operator(graph: Graph, order: int) -> None:
    words = SparseMatrix.from_scipy(with_words(graph).features)
    expected = torch.cat(list(krylov_blocks(operator(graph), words, order)), dim=1)
    blocks = sign_blocks(with_words(graph).to_pyg(), order)
    torch.testing.assert_close(blocks, expected, rtol=0, atol=1e-6)


@GRAPHS
@pytest.mark.parametrize("order", [1, 4])
def test_sign_mlp_is_truncated_krylov(graph: Graph, order: int) -> None:
    theirs, method = build("truncated-krylov", order * FEATURES, order=order, hidden=HIDDEN)
    ours = method.network(FEATURES, CLASSES).eval()
    assert isinstance(ours, TruncatedKrylov)
    with torch.no_grad():
        for layer, linear in ((ours.first, theirs[0]), (ours.output, theirs[3])):
            layer.weight.copy_(linear.weight.T)
            layer.bias.copy_(linear.bias)
    logits = theirs(sign_blocks(with_words(graph).to_pyg(), order)).detach()
    torch.testing.assert_close(logits, logits_of(ours, graph), rtol=0, atol=1e-5)


def test_sign_mlp_refuses_a_second_hidden_layer() -> None:
    with pytest.raises(ValueError, match="one hidden layer, not 2"):
        build("truncated-krylov", layers=2)


@GRAPHS
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("name", ["snowball", "linear-snowball"])
def test_gcn_snowball_is_snowball(graph: Graph, layers: int, name: str) -> None:
    theirs, method = build(name, layers=layers, hidden=HIDDEN)
    ours = method.network(FEATURES, CLASSES).eval()
    assert isinstance(ours, Snowball)
    with torch.no_grad():
        for layer, conv in zip([*ours.convs, ours.output], theirs.convs, strict=True):
            layer.weight.copy_(conv.lin.weight.T)
            layer.bias.copy_(conv.bias)
    logits = pyg_logits(theirs, graph)
    torch.testing.assert_close(logits, logits_of(ours, graph), rtol=0, atol=1e-5)


def test_gcn_of_the_example_is_gcn() -> None:
    theirs, method = build("gcn")
    ours = method.network(FEATURES, CLASSES).eval()
    assert isinstance(ours, GCN)
    with torch.no_grad():
        for layer, conv in zip(ours.convs, (theirs[1], theirs[3]), strict=True):
            layer.weight.copy_(conv.lin.weight.T)
            layer.bias.copy_(conv.bias)
    torch.testing.assert_close(pyg_logits(theirs, MIXED), logits_of(ours, MIXED))


def test_gat_of_the_example_has_as_many_weights_as_gat() -> None:
    theirs, method = build("gat")
    ours = method.network(FEATURES, CLASSES)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in ours.parameters())


@pytest.mark.parametrize("name", ["snowball", "gcn", "gat"])
def test_networks_drop_entries_in_training_only(name: str) -> None:
    network, _ = build(name, dropout=0.5)
    assert torch.equal(pyg_logits(network, MIXED), pyg_logits(network, MIXED))
    network.train()
    assert not torch.equal(pyg_logits(network, MIXED), pyg_logits(network, MIXED))
