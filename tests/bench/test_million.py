"""`kryograph.bench.million`: stages in a process of its own."""

from __future__ import annotations

import pytest

from kryograph.bench import million
from kryograph.bench.million import measure_million


@pytest.mark.slow
def test_measure_million_has_times_and_memory_of_each_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(million, "QUICK_MILLION", 2_000)
    result = measure_million(quick=True, on_case=print)
    assert result["nodes"] == 2_000
    assert 30_000 < result["entries"] <= 32_000
    stages = result["stages"]
    assert [row["stage"].split()[0].strip(",") for row in stages] == ["graph", "fit", "predict"]
    total = sum(row["processor_seconds"] for row in stages)
    assert result["processor_seconds"] == pytest.approx(total)
    assert stages[0]["peak_bytes"] <= stages[-1]["peak_bytes"] <= result["peak_bytes"]
