"""`kryograph.bench.contention`: rows for each work, and real busy processes."""

from __future__ import annotations

import time

import pytest
import torch

from kryograph.bench import contention
from kryograph.bench.contention import busy_processes, measure_contention
from kryograph.bench.epoch import Case
from kryograph.threads import cores, free_cores, read_counters


@pytest.mark.slow
def test_measure_contention_has_a_row_for_each_work_and_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case("truncated-krylov", "synthetic", 3, 8)
    monkeypatch.setattr(contention, "QUICK_CONTENTION_CASES", (case,))
    before = torch.get_num_threads()
    result = measure_contention(quick=True, on_case=print)
    assert torch.get_num_threads() == before
    assert [(row["work"], row["busy"]) for row in result["times"]] == [
        (work, busy) for busy in (0, 1) for work in (str(case), "fit")
    ]
    for row in result["times"]:
        assert row["of_one"] == row["kryograph_seconds"] / row["one_seconds"]
        assert row["free"] <= cores()
        assert (row["of_all"] is None) == (row["work"] == "fit")
    assert [row["busy"] for row in result["summary"]] == [0, 1]
    for row in result["summary"]:
        assert 0 < row["mean"] <= row["greatest"]


@pytest.mark.slow
def test_busy_processes_leave_no_core_and_end_with_the_context() -> None:
    with busy_processes(2 * cores()):
        time.sleep(0.3)  # until they have started
        before = read_counters()
        time.sleep(0.5)
        assert free_cores(before, read_counters(), cores()) < 0.5 * cores()
