from __future__ import annotations

import pytest
import torch

from kryograph.data import load, toy
from kryograph.engine.cost import (
    CACHE_BYTES,
    CACHE_SPEEDUP,
    EFFICIENCY,
    NOMINAL,
    RUN_BYTES,
    USUAL_EPOCHS,
    Cost,
    Estimate,
    Kernel,
    Rates,
    gemm_cost,
    memory_pass_cost,
    resident,
    spmm_cost,
    temporary,
)
from kryograph.engine.forward import Forward, Nodes, Workload
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.errors import UsageError
from kryograph.graph import Task
from kryograph.nn import Snowball, TruncatedKrylov
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.systems import network as network_module
from kryograph.systems import system
from kryograph.text import gigabytes

SLOW = Rates(flops=10, bytes=4, launch=0.5)


@pytest.mark.parametrize(
    ("cost", "flops", "moved"),
    [
        # (2 × 3) @ (3 × 5): thirty multiplications and additions; 6, 15 and 10 numbers.
        (gemm_cost(2, 3, 5), 60, 4 * 31),
        # Seven entries: each reads an index, a value and a row of five, four times as fast because
        # all fits into the cache; three rows are written.
        (spmm_cost(7, 3, 5), 70, 7 * (4 + 4 + 20) / 4 + 60),
        (memory_pass_cost(10), 0, 40),
    ],
)
def test_operations_and_bytes_by_hand(cost: Cost, flops: float, moved: float) -> None:
    [kernel] = cost.kernels
    assert (kernel.flops, kernel.bytes) == (flops, moved)
    assert cost.memory == 0


def test_a_kernel_takes_as_long_as_the_slower_of_the_two() -> None:
    # Six seconds of arithmetic behind 31 of memory; then thirteen behind five.
    assert gemm_cost(2, 3, 5).seconds(SLOW) == 31 / EFFICIENCY + 0.5
    assert Kernel(130, 20).seconds(SLOW) == 13 / EFFICIENCY + 0.5
    assert Kernel(130, 20, launches=3).seconds(SLOW) == 13 / EFFICIENCY + 1.5
    assert Kernel(130, 20).floor(SLOW) == 13
    assert gemm_cost(2, 3, 5).floor(SLOW) == 31


def test_seconds_add_up_kernel_by_kernel() -> None:
    one, other = gemm_cost(2, 3, 5), spmm_cost(7, 3, 5)
    assert (one + other).kernels == one.kernels + other.kernels
    for rates in (SLOW, NOMINAL):
        both = one.seconds(rates) + other.seconds(rates)
        assert (one + other).seconds(rates) == pytest.approx(both)
        assert (one * 3).seconds(rates) == pytest.approx(3 * one.seconds(rates))
        assert (one + other).floor(rates) <= (one + other).seconds(rates)
    # What one kernel saves in arithmetic does not hide the next one's memory.
    merged = Kernel(130 + 1, 20 + 400)
    apart = Cost((Kernel(130, 20), Kernel(1, 400)))
    assert apart.floor(SLOW) == 113 > merged.floor(SLOW)


def test_nothing_costs_nothing() -> None:
    assert Cost() + gemm_cost(2, 3, 5) == gemm_cost(2, 3, 5)
    assert sum([gemm_cost(2, 3, 5)] * 2, Cost()) == gemm_cost(2, 3, 5) * 2
    assert Cost().seconds() == Cost().memory == 0


def test_what_is_kept_adds_up_and_what_passes_does_not() -> None:
    total = resident(10) + temporary(100) + resident(10) + temporary(30)
    assert (total.kept, total.passing, total.memory) == (80, 400, 480)
    # Done again, it needs the same memory.
    assert (total * 4).memory == 480
    assert total.kernels == ()


# Of an epoch


def nodes(training: int, validation: int) -> Nodes:
    return Nodes(torch.arange(training), torch.arange(training, training + validation))


def krylov(hidden: int = 500, training: int = 20, **changes: int) -> Forward:
    network = TruncatedKrylov(30, hidden, 3, order=4, **changes)
    x, L = torch.ones(60, 30), operator(toy.cycle(60))
    return KrylovForward(Workload(network, x, L, nodes(training, 10), Masks()))


def snowball(hidden: int = 500, training: int = 20, **changes: int) -> Forward:
    layers = changes.get("layers", 2)
    x, L = torch.ones(60, 30), operator(toy.cycle(60))
    network = Snowball(30, hidden, 3, layers)
    return SnowballForward(Workload(network, x, L, nodes(training, 10), Masks()))


def flops(forward: Forward) -> float:
    return sum(kernel.flops for kernel in forward.cost().kernels)


def test_an_epoch_of_a_krylov_layer_is_the_products_of_training_and_scored_rows() -> None:
    # Training rows: the gradient (their values are known from scoring). Scored rows: the values.
    products = 2 * (20 + 30) * (4 * 30) * 500
    assert products <= flops(krylov()) <= 1.1 * products


def test_an_epoch_of_snowball_is_at_least_its_largest_products() -> None:
    # On a cycle 20 neighbours in a row become 22 and 24. W_1 meets H_1 on T_1 in both directions
    # and for itself, and forwards where nodes are scored (32 rows of T_1).
    largest = 2 * (3 * 22 + 32) * 500 * 500
    assert largest <= flops(snowball()) <= 2 * largest


@pytest.mark.parametrize("make", [krylov, snowball])
def test_more_of_anything_costs_more(make: type) -> None:
    plain = make().cost()
    for more in (make(hidden=1000), make(training=40), make(layers=3)):
        assert more.cost().seconds() > plain.seconds() > 0
        assert more.cost().memory >= plain.memory > 0


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
    assert wide.memory - RUN_BYTES > 10 * (narrow.memory - RUN_BYTES)
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


def test_spmm_cost_of_a_factor_in_the_cache_moves_fewer_bytes() -> None:
    rows = CACHE_BYTES // (4 * 64)
    inside, outside = (spmm_cost(10 * n, n, 64).kernels[0].bytes for n in (rows, rows + 1))
    assert inside == pytest.approx(10 * rows * (4 * 64 + 8) / CACHE_SPEEDUP + CACHE_BYTES)
    assert outside > 3 * inside
