"""`kryograph.bench.spmm`: one product in several libraries, and how fast each is."""

from __future__ import annotations

import math

import pytest
import scipy.sparse as sp
import torch

from kryograph.bench import spmm as bench
from kryograph.bench.spmm import (
    OURS,
    THEIRS,
    compare_products,
    measure_spmm,
    products,
    random_operator,
)
from kryograph.engine import cost
from kryograph.engine.machine import measure_rates

FIELDS = {
    "nodes",
    "nnz",
    "width",
    "kryograph_seconds",
    *(f"{name}_seconds" for name in THEIRS),
    *(f"speedup_{name}" for name in THEIRS),
    "copy_fraction",
    "difference",
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs that take no time."""
    monkeypatch.setattr(bench, "SPMM_NODES", (300, 600))
    monkeypatch.setattr(bench, "QUICK_SPMM_NODES", (300,))


def test_random_operator_has_ten_neighbours_per_node() -> None:
    matrix = random_operator(2000)
    assert matrix.shape == (2000, 2000)
    # Ten neighbours and itself, less the few pairs that are drawn twice.
    assert 10.9 < matrix.nnz / 2000 < 11
    assert (random_operator(2000) != matrix).nnz == 0


@pytest.mark.parametrize("width", [1, 8, 200])
def test_products_are_the_same_in_every_library(width: int) -> None:
    matrix = sp.random_array((50, 50), density=0.1, rng=0, format="csr")
    x = torch.randn(50, width, generator=torch.Generator().manual_seed(1))
    works = products(matrix, x)
    assert list(works) == [OURS, *THEIRS]
    for work in works.values():
        expected = torch.from_numpy(matrix.toarray()).float() @ x
        torch.testing.assert_close(work(), expected, rtol=1e-5, atol=1e-5)


def test_compare_products_gives_speedups_and_share_of_the_copy_rate() -> None:
    row = compare_products(random_operator(300), 8, budget=0)
    assert set(row) == FIELDS
    ours = row["kryograph_seconds"]
    for name in THEIRS:
        assert row[f"speedup_{name}"] == row[f"{name}_seconds"] / ours
    moved = cost.spmm_cost(row["nnz"], 300, 8).kernels[0].bytes
    assert row["copy_fraction"] == pytest.approx(moved / ours / measure_rates().bytes)
    assert 0 < row["difference"] < 1e-6


def test_compare_products_leaves_out_messages_that_are_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "MOST_MESSAGES", 100)
    row = compare_products(random_operator(300), 8, budget=0)
    assert set(row) == FIELDS
    assert row["messages_seconds"] is None
    assert row["speedup_messages"] is None
    assert row["speedup_pyg"] > 0


@pytest.mark.usefixtures("small")
def test_measure_spmm_has_fewer_sizes_if_quick() -> None:
    cases: list[str] = []
    quick = measure_spmm(quick=True, on_case=cases.append)["products"]
    assert cases == ["300 nodes"]
    assert [(row["nodes"], row["width"]) for row in quick] == [(300, 8), (300, 64)]
    whole = measure_spmm(quick=False, on_case=cases.append)["products"]
    sizes = [(n, width) for n in (300, 600) for width in (8, 64, 256)]
    assert [(row["nodes"], row["width"]) for row in whole] == sizes
    assert all(math.isfinite(value) for row in [*quick, *whole] for value in row.values())
