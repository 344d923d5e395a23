"""`kryograph.bench.label`: a real server is timed."""

from __future__ import annotations

import os

import pytest

from kryograph.bench import label as bench


@pytest.mark.slow
def test_answers_of_a_real_server_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "QUICK_SIZES", (80,))
    monkeypatch.setattr(bench, "FEATURES", 30)
    monkeypatch.setattr(bench, "NODE_CLASSES", 3)
    monkeypatch.setattr(bench, "ANSWERS", 3)
    cases: list[str] = []
    result = bench.measure_label(quick=True, on_case=cases.append)
    assert cases == ["80 nodes, 30 features, 3 classes"]
    [row] = result["sizes"]
    assert row["nodes"] == 80
    assert 0 < row["answer_seconds"] <= row["slowest_seconds"] < row["start_seconds"]
    assert row["map_seconds"] > 0
    if os.path.exists("/proc/self/status"):
        assert 10**7 < row["memory_bytes"] < 4 * 10**9
        assert bench.peak_memory(os.getpid()) is not None
    assert bench.peak_memory(2**30) is None
