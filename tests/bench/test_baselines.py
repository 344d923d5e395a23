"""`kryograph.bench.baselines`: both times, and their ratio."""

from __future__ import annotations

import pytest

from kryograph.bench import baselines
from kryograph.bench.baselines import BASELINES, compare_scripts, measure_baselines
from kryograph.data import load


@pytest.fixture(autouse=True)
def synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in graph in place of the real ones."""
    monkeypatch.setattr(baselines, "load", lambda name: load("synthetic"))


@pytest.mark.parametrize("name", BASELINES)
def test_compare_scripts_gives_both_times_and_their_ratio(name: str) -> None:
    row = compare_scripts(name, "cora", budget=0.01)
    assert (row["system"], row["dataset"]) == (name, "cora")
    assert row["speedup"] == row["script_seconds"] / row["kryograph_seconds"] > 0


def test_measure_baselines_has_a_row_for_each_system_and_the_geometric_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speedups = {"gcn": 2.0, "gat": 8.0}
    monkeypatch.setattr(
        baselines,
        "compare_scripts",
        lambda name, dataset, budget: {"system": name, "speedup": speedups[name]},
    )
    cases: list[str] = []
    result = measure_baselines(quick=True, on_case=cases.append)
    assert cases == ["gcn cora", "gat cora"]
    assert [row["system"] for row in result["epochs"]] == ["gcn", "gat"]
    assert result["summary"] == pytest.approx(4)
    assert len(measure_baselines(quick=False, on_case=cases.append)["epochs"]) == 6
