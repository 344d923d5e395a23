"""`kryograph.bench.epoch`: an epoch is the same function in every form, and how fast each is."""

from __future__ import annotations

import pytest
import torch

from kryograph.bench import epoch
from kryograph.bench.epoch import (
    CASES,
    Case,
    RepeatableMasks,
    compare_epochs,
    epoch_summary,
    measure_epochs,
)
from kryograph.data import load

FIELDS = {
    "setting",
    "engine_seconds",
    "literal_seconds",
    "pyg_seconds",
    "speedup_literal",
    "speedup_pyg",
    "logits_difference",
    "gradient_difference",
    "floor_fraction",
    "engine_peak_bytes",
    "literal_peak_bytes",
}
SMALL_CASES = (
    Case("truncated-krylov", "cora", 3, 8),
    Case("linear-snowball", "cora", 2, 8),
    Case("snowball", "cora", 2, 8),
)


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in graph in place of the real ones."""
    monkeypatch.setattr(epoch, "load", lambda name: load("synthetic"))


def test_cases_are_the_papers_settings() -> None:
    sizes = {(c.architecture, c.dataset, c.depth, c.hidden) for c in CASES}
    assert len(CASES) == len(sizes) == 15
    assert ("truncated-krylov", "cora", 30, 4950) in sizes
    assert ("snowball", "pubmed", 15, 100) in sizes


def test_case_sets_blocks_or_layers() -> None:
    assert Case("truncated-krylov", "cora", 3, 8).system.settings.order == 3
    assert Case("snowball", "cora", 3, 8).system.settings.layers == 3


@pytest.mark.usefixtures("synthetic")
@pytest.mark.parametrize("case", SMALL_CASES, ids=str)
def test_compare_epochs_finds_the_same_function_in_every_form(case: Case) -> None:
    row = compare_epochs(case, budget=0.01)
    assert set(row) >= FIELDS
    assert 0 < row["logits_difference"] < 1e-5  # rounding, and not the same kernels
    assert 0 < row["gradient_difference"] < 1e-5
    for name in ("engine", "literal", "pyg"):
        assert row[f"{name}_seconds"] > 0
    assert row["speedup_literal"] == row["literal_seconds"] / row["engine_seconds"]
    assert row["speedup_pyg"] == row["pyg_seconds"] / row["engine_seconds"]
    assert row["floor_fraction"] > 0


@pytest.mark.usefixtures("synthetic")
def test_measure_epochs_names_each_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "QUICK_CASES", SMALL_CASES[:1])
    cases: list[str] = []
    result = measure_epochs(quick=True, on_case=cases.append)
    assert cases == ["truncated-krylov cora 3×8"]
    assert [row["setting"] for row in result["settings"]] == cases
    assert set(result["summary"]) == {"truncated-krylov"}


def test_epoch_summary_is_a_geometric_mean() -> None:
    rows = [
        {"architecture": "snowball", "speedup_literal": a, "speedup_pyg": b}
        for a, b in ((2.0, 1.0), (8.0, 9.0))
    ]
    assert epoch_summary(rows) == {
        "snowball": {
            "speedup_literal": pytest.approx(4.0),
            "speedup_pyg": pytest.approx(3.0),
        }
    }


def test_repeatable_masks_agree_on_some_rows_and_on_all() -> None:
    masks, h, nodes = RepeatableMasks(50), torch.ones(50, 8), torch.tensor([7, 3])
    assert not torch.equal(masks.keep(h, 0.5, 0, None), masks.keep(h, 0.5, 0, None))
    masks.repeat = True
    every = masks.keep(h, 0.5, 0, None)
    assert torch.equal(masks.keep(h[nodes], 0.5, 0, nodes), every[nodes])
    assert not torch.equal(masks.keep(h, 0.5, 1, None), every)
    assert 0.4 < every.double().mean() < 0.6
