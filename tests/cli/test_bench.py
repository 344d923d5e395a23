"""`kryograph.bench.commands`, `kryograph.bench.epoch` and `kryograph.bench.growth`, as they are."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from kryograph.bench import epoch, growth, seeds
from kryograph.bench.epoch import CASES, Case
from kryograph.cli.bench import app
from kryograph.data import Dataset
from kryograph.systems.truncated_krylov import TruncatedKrylovSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

pytestmark = pytest.mark.slow

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


def answer(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_papers_settings_are_measured() -> None:
    sizes = {(c.architecture, c.dataset, c.depth, c.hidden) for c in CASES}
    assert len(CASES) == len(sizes) == 15
    assert ("truncated-krylov", "cora", 30, 4950) in sizes
    assert ("snowball", "pubmed", 15, 100) in sizes


@pytest.mark.parametrize(
    "case",
    [
        Case("truncated-krylov", "cora", 3, 8),
        Case("linear-snowball", "cora", 2, 8),
        Case("snowball", "cora", 2, 8),
    ],
    ids=str,
)
def test_an_epoch_is_the_same_function_whoever_computes_it(case: Case, cora: Dataset) -> None:
    row = epoch.compare_epochs(case, budget=0.01)
    assert set(row) >= FIELDS
    assert 0 < row["logits_difference"] < 1e-5  # rounding, and not the same kernels
    assert 0 < row["gradient_difference"] < 1e-5
    for name in ("engine", "literal", "pyg"):
        assert row[f"{name}_seconds"] > 0
    assert row["speedup_literal"] == row["literal_seconds"] / row["engine_seconds"]
    assert row["speedup_pyg"] == row["pyg_seconds"] / row["engine_seconds"]
    assert row["floor_fraction"] > 0


def test_the_mean_of_a_speedup_is_geometric() -> None:
    rows = [
        {"architecture": "snowball", "speedup_literal": a, "speedup_pyg": b}
        for a, b in ((2.0, 1.0), (8.0, 9.0))
    ]
    assert epoch.epoch_summary(rows) == {
        "snowball": {
            "speedup_literal": pytest.approx(4.0),
            "speedup_pyg": pytest.approx(3.0),
        }
    }


def test_what_is_printed_of_an_epoch(monkeypatch: pytest.MonkeyPatch, cora: Dataset) -> None:
    monkeypatch.setattr(epoch, "QUICK_CASES", (Case("truncated-krylov", "cora", 2, 4),))
    found = json.loads(answer(monkeypatch, "epoch", "--quick", "--json"))
    assert set(found) == {"settings", "summary", "machine"}
    assert set(found["settings"][0]) >= FIELDS
    assert found["settings"][0]["setting"] == "truncated-krylov cora 2×4"
    assert set(found["summary"]["truncated-krylov"]) == {"speedup_literal", "speedup_pyg"}
    table = answer(monkeypatch, "epoch", "--quick")
    assert "truncated-krylov cora 2×4" in table
    assert "geometric mean" in table


def test_what_is_printed_of_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "QUICK_NODES", (200, 400))
    found = json.loads(answer(monkeypatch, "growth", "--quick", "--json"))
    assert [(row["system"], row["nodes"]) for row in found["sizes"]] == [
        (name, n) for n in (200, 400) for name in growth.GROWTH_SYSTEMS
    ]
    for row in found["sizes"]:
        assert row["epoch_seconds"] > 0
        assert row["predict_seconds"] > 0
    assert set(found["exponents"]["snowball"]) == set(growth.MEASURED)
    assert "exponent" in answer(monkeypatch, "growth", "--quick")


def test_what_is_printed_of_sparse_products(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(answer(monkeypatch, "spmm", "--quick", "--json"))
    assert [row["width"] for row in found["products"]] == [8, 64]
    assert "of copy rate" in answer(monkeypatch, "spmm", "--quick")


def test_what_is_printed_of_seeds(monkeypatch: pytest.MonkeyPatch, cora: Dataset) -> None:
    monkeypatch.setattr(seeds, "QUICK_SEEDS", 1)
    monkeypatch.setattr(seeds, "LITERAL_EPOCHS", 2)
    found = json.loads(answer(monkeypatch, "seeds", "--quick", "--json"))
    assert (found["seeds"], found["jobs"]) == (1, 1)
    assert found["speedup"] == pytest.approx(found["literal_seconds"] / found["seconds"])
    assert found["literal_epoch_seconds"] > 0


def test_the_literal_run_is_the_same_run(cora: Dataset) -> None:
    task = cora.task("public")
    settings = seeds.LiteralKrylov.settings_type().replace(
        {"hidden": 4, "order": 2, "dropout": 0.0}
    )
    short = Conditions(rule=StopRule(max_epochs=5))
    ours, literal = (
        cls(settings).fit(task, conditions=short).predict_proba()
        for cls in (TruncatedKrylovSystem, seeds.LiteralKrylov)
    )
    assert abs(ours - literal).max() < 1e-4


def test_an_exponent_is_the_slope_of_the_logarithms() -> None:
    rows = [{"nodes": n, "seconds": 3 * n**1.5} for n in (10, 100, 1000)]
    assert growth.exponent(rows, "seconds") == pytest.approx(1.5)
    assert growth.exponent([{"nodes": 10, "seconds": None}], "seconds") is None


def test_the_synthetic_task_is_what_it_says() -> None:
    task = growth.synthetic_task(2_000)
    graph = task.graph
    assert (graph.n, graph.features.shape) == (2_000, (2_000, 64))
    assert 2 * graph.edges / graph.n == pytest.approx(10, rel=0.1)
    assert (task.split.train.size, task.split.validation.size) == (20, 20)
    assert math.isclose((task.labels[task.split.test] == -1).mean(), 1.0)
