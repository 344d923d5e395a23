from __future__ import annotations

from dataclasses import replace

import pytest
import scipy.sparse as sp
import torch

from kryograph.bench.pyg import SCRIPTS, compare_scripts
from kryograph.data import load
from kryograph.nn import GCN
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems.gat import GAT
from tests.layers import MIXED

FEATURES, CLASSES = 6, 3
GRAPH = replace(MIXED, features=sp.random_array((MIXED.n, FEATURES), density=0.5, rng=0).tocsr())


def test_the_script_for_gcn_is_our_network() -> None:
    script = SCRIPTS["gcn"][0](FEATURES, CLASSES).eval()
    ours = GCN(FEATURES, 16, CLASSES).eval()
    with torch.no_grad():
        for conv, theirs in zip(ours.convs, (script.first, script.second), strict=True):
            conv.weight.copy_(theirs.lin.weight.T)
            conv.bias.copy_(theirs.bias.uniform_(-1, 1))
        data = GRAPH.to_pyg()
        expected = script(data.x, data.edge_index)
        found = ours(SparseMatrix.from_scipy(GRAPH.features), operator(GRAPH))
    torch.testing.assert_close(found, expected)


def test_the_script_for_gat_has_our_networks_weights() -> None:
    script = SCRIPTS["gat"][0](FEATURES, CLASSES)
    ours = GAT(FEATURES, 8, CLASSES, heads=8, output_heads=1)
    assert sum(p.numel() for p in script.parameters()) == sum(p.numel() for p in ours.parameters())


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_comparison_has_both_times_and_their_ratio(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.bench.pyg.load", lambda dataset: load("synthetic"))
    row = compare_scripts(name, "synthetic", budget=0.01)
    assert row["speedup"] == row["script_seconds"] / row["kryograph_seconds"] > 0
