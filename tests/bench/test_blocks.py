"""`kryograph.bench.blocks`: the blocks are the same by every library."""

from __future__ import annotations

import numpy as np
import torch

from kryograph.bench.blocks import block_ways, compare_blocks
from kryograph.data import toy
from kryograph.graph import Graph


def test_block_ways_agree() -> None:
    cycle = toy.cycle(40)
    x = np.random.default_rng(0).standard_normal((40, 20)).astype(np.float32)
    works = block_ways(Graph.from_scipy(cycle.adjacency, features=x))
    exact = works["scipy"]()
    for work in works.values():
        torch.testing.assert_close(work(), exact, rtol=1e-4, atol=1e-5)


def test_compare_blocks_has_a_ratio_for_each_library() -> None:
    row = compare_blocks(300)
    assert row["nodes"] == 300
    assert row["difference"] < 1e-5
    assert row["speedup_sign"] == row["sign_seconds"] / row["operator_seconds"]
    for name in ("scipy", "csr"):
        assert row[f"speedup_{name}"] == row[f"{name}_seconds"] / row["blocks_seconds"]
    assert row["copy_fraction"] > 0
