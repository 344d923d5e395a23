from __future__ import annotations

import pytest

from kryograph.data import load
from kryograph.engine.cost import (
    EFFICIENCY,
    USUAL_EPOCHS,
    Cost,
    Estimate,
    Rates,
    gemm_cost,
    memory_pass_cost,
)
from kryograph.errors import UsageError
from kryograph.graph import Task
from kryograph.systems import network as network_module
from kryograph.systems import system
from kryograph.text import gigabytes


@pytest.fixture(scope="module")
def task() -> Task:
    return load("synthetic").task("public")


def test_a_run_takes_its_epochs() -> None:
    slow = Rates(flops=100.0, bytes=1e9, launch=0.0)
    assert Estimate(1, gemm_cost(1, 5, 10)).seconds(slow) == pytest.approx(
        USUAL_EPOCHS / EFFICIENCY
    )


def test_the_weights_are_counted(task: Task) -> None:
    chosen = system("truncated-krylov", {"hidden": 8, "order": 3})
    found = chosen.estimate(task)
    assert found is not None
    assert found.weights == 3 * 1433 * 8 + 8 + 8 * 7 + 7


def test_the_optimiser_and_its_moments_are_part_of_it(task: Task) -> None:
    rms, adam = (
        system("snowball", {"optimizer": name}).estimate(task) for name in ("rmsprop", "adam")
    )
    assert rms is not None
    assert adam is not None
    assert adam.memory - rms.memory == pytest.approx(4 * rms.weights)
    assert adam.epoch.kernels[-1].bytes == pytest.approx(7 * 4 * adam.weights)
    assert rms.epoch.kernels[-1].bytes == pytest.approx(5 * 4 * rms.weights)


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_a_wider_network_costs_more(name: str, task: Task) -> None:
    narrow, wide = (system(name, {"hidden": hidden}).estimate(task) for hidden in (16, 1600))
    assert narrow is not None
    assert wide is not None
    assert wide.seconds() > 10 * narrow.seconds()
    assert wide.memory > 10 * narrow.memory
    assert narrow.epoch.narrow()
    assert not wide.epoch.narrow()


def test_what_fits_is_not_refused() -> None:
    estimate = Estimate(1, memory_pass_cost(1) + Cost(kept=1e9))
    estimate.check(1e9)
    estimate.check(None)
    estimate.check(2e9, runs=2)


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    estimate = Estimate(250_000_000, Cost(kept=4e9, passing=1e9))
    with pytest.raises(
        UsageError, match=r"about 5\.0 GB of memory, and 4\.9 GB are free; the net"
    ) as e:
        estimate.check(4.9e9)
    assert "250,000,000 weights" in str(e.value)
    assert "--set hidden=64" in str(e.value)
    with pytest.raises(
        UsageError, match=r"5\.0 GB of memory for each of 2 runs at once.*fewer --jobs"
    ):
        estimate.check(9e9, runs=2)


def test_an_oversized_run_is_refused_before_it_asks_for_memory(task: Task) -> None:
    # A thousand gigabytes: asking for them would be torch's error, or the end of the process.
    chosen = system("truncated-krylov", {"hidden": 99_999, "order": 500})
    with pytest.raises(UsageError, match=r"needs about 1\d{3}\.\d GB of memory"):
        chosen.fit(task)


def test_the_room_that_there_is_decides(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = system("truncated-krylov", {"hidden": 16, "order": 2})
    monkeypatch.setattr(network_module, "available_memory", lambda: 1_000_000)
    with pytest.raises(UsageError, match="and 1 MB are free"):
        chosen.fit(task)


def test_sizes_for_people() -> None:
    assert [gigabytes(n) for n in (5e5, 9.99e8, 1e9, 1.26e12)] == [
        "0 MB",
        "999 MB",
        "1.0 GB",
        "1260.0 GB",
    ]
