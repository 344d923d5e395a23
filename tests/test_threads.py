"""`kryograph.threads`: free cores by the counters of the system, and the threads of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from kryograph import threads
from kryograph.bench.contention import busy_processes
from kryograph.data import load
from kryograph.engine.cost import Cost
from kryograph.systems import system
from kryograph.threads import (
    CoreTimes,
    adapt_threads,
    cores,
    free_cores,
    on_free_cores,
    read_counters,
)
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import exactly


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of free cores, its only element, which a test may change."""
    number = [2]
    monkeypatch.setattr(threads, "_free_threads", lambda: number[0])
    return number


def test_cores_is_between_one_and_those_of_the_machine() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_read_counters_sums_the_idle_time_of_the_own_cores(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    stat = tmp_path / "stat"
    stat.write_text(
        f"cpu  9 9 9 9999 9 0 0 0 0 0\ncpu{core} 5 0 5 300 20 0 0 0 0 0\n"
        "cpu9999 5 0 5 7777 0 0 0 0 0 0\nintr 1 2 3\n"
    )
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert read_counters(stat).idle == pytest.approx(320 * tick)


@pytest.mark.parametrize("text", [None, "", "cpu0 1 2\n", "cpu0 a b c d e f\n"])
def test_read_counters_idle_time_is_none_without_counters(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "stat").write_text(text.replace("cpu0", f"cpu{min(threads._own_cores())}"))
    assert read_counters(tmp_path / "stat").idle is None


def test_free_cores_own_work_is_not_that_of_others() -> None:
    start = CoreTimes(0.0, 0.0, own=0.0)
    assert free_cores(start, CoreTimes(2.0, 4.0, own=0.0), 2) == 2  # nobody computed
    assert free_cores(start, CoreTimes(2.0, 0.0, own=4.0), 2) == 2  # this process on both cores
    assert free_cores(start, CoreTimes(2.0, 0.0, own=2.0), 2) == 1  # half of it was another one's
    assert free_cores(start, CoreTimes(2.0, 0.0, own=0.0), 2) == 0
    assert free_cores(start, CoreTimes(2.0, 4.1, own=0.0), 2) == 2  # counters have steps


def test_free_cores_without_counters_is_by_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = CoreTimes(0.0, None, own=0.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0), raising=False)
    assert free_cores(unknown, unknown, 4) == 2  # one of the three is this process
    monkeypatch.delattr(os, "getloadavg")
    assert free_cores(unknown, unknown, 4) == 4


@pytest.mark.slow
def test_free_cores_are_fewer_beside_busy_processes() -> None:
    with busy_processes(cores()):
        measure = threads._FreeThreads()
        assert measure() == 1
        assert measure() == 1  # the first measurement, which is not old yet


def test_on_free_cores_puts_the_number_of_threads_back(free: list[int]) -> None:
    free[0] = 1
    with on_free_cores():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with suppress(ValueError), on_free_cores(narrow=True):
        assert torch.get_num_threads() == 1
        raise ValueError
    assert torch.get_num_threads() == 2


def test_on_free_cores_never_exceeds_the_number_that_the_user_chose(free: list[int]) -> None:
    free[0] = 8
    with on_free_cores():
        assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    with on_free_cores():
        assert torch.get_num_threads() == 1


def test_on_free_cores_follows_the_free_cores(free: list[int]) -> None:
    free[0] = 1
    with on_free_cores():
        free[0] = 2
        with on_free_cores():  # its limit is that of the outer one
            assert torch.get_num_threads() == 2
        with on_free_cores(narrow=True):
            assert torch.get_num_threads() == 1
        adapt_threads()
        assert torch.get_num_threads() == 2
    free[0] = 1
    adapt_threads()  # outside it has no effect
    assert torch.get_num_threads() == 2


def test_on_free_cores_other_libraries_have_one_thread_meanwhile(free: list[int]) -> None:
    def blas_threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = blas_threads()
    with on_free_cores():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_fit_adapts_its_threads_in_every_epoch(free: list[int]) -> None:
    task = load("synthetic").task("public")
    numbers = []

    def record(epoch: Epoch) -> None:
        numbers.append(torch.get_num_threads())
        free[0] = 1

    conditions = Conditions(exactly(3))
    system("truncated-krylov").fit(task, conditions=conditions, on_epoch=record)
    assert numbers == [2, 1, 1]
    assert torch.get_num_threads() == 2


def test_fit_of_a_narrow_network_has_one_thread(
    free: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cost, "narrow", lambda self, seconds: True)
    task = load("synthetic").task("public")
    numbers: list[int] = []
    system("snowball", {"hidden": 4}).fit(
        task,
        conditions=Conditions(exactly(1)),
        on_epoch=lambda epoch: numbers.append(torch.get_num_threads()),
    )
    assert numbers == [1]


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball", "gcn"])
def test_results_do_not_depend_on_the_number_of_threads(free: list[int], name: str) -> None:
    task = load("synthetic").task("public")
    results = []
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        free[0] = number
        fit = system(name, {"hidden": 96}).fit(task, conditions=Conditions(exactly(3)))
        results.append(fit.predict_proba())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
