"""`kryograph.bench.growth`: measured sizes, and the exponents that are fitted to them."""

from __future__ import annotations

import pytest

from kryograph.bench import growth
from kryograph.bench.growth import (
    GROWTH_SYSTEMS,
    MEASURED,
    exponent,
    measure_growth,
    synthetic_task,
)


def test_measure_growth_has_a_row_for_each_size_and_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "QUICK_GROWTH_NODES", (200, 400))
    result = measure_growth(quick=True, on_case=print)
    assert [(row["system"], row["nodes"]) for row in result["sizes"]] == [
        (name, n) for n in (200, 400) for name in GROWTH_SYSTEMS
    ]
    for row in result["sizes"]:
        assert row["epoch_seconds"] > 0
        assert row["prepare_seconds"] > 0
        assert row["predict_seconds"] > 0
    assert set(result["exponents"]) == set(GROWTH_SYSTEMS)
    assert set(result["exponents"]["snowball"]) == set(MEASURED)


def test_exponent_is_the_slope_of_the_logarithms() -> None:
    rows = [{"nodes": n, "seconds": 3 * n**1.5} for n in (10, 100, 1000)]
    assert exponent(rows, "seconds") == pytest.approx(1.5)


def test_exponent_is_none_if_a_value_is_missing() -> None:
    assert exponent([{"nodes": 10, "seconds": None}], "seconds") is None


def test_synthetic_task_has_ten_neighbours_and_few_labels() -> None:
    task = synthetic_task(2_000)
    graph = task.graph
    assert (graph.n, graph.features.shape) == (2_000, (2_000, 64))
    assert 2 * graph.edges / graph.n == pytest.approx(10, rel=0.1)
    assert (task.split.train.size, task.split.validation.size) == (20, 20)
    assert (task.labels[task.split.test] == -1).all()
