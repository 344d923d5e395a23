from __future__ import annotations

import pytest
import torch

from kryograph.data import toy
from kryograph.engine.cost import (
    EFFICIENCY,
    NOMINAL,
    Cost,
    Kernel,
    Rates,
    gemm_cost,
    memory_pass_cost,
    resident,
    spmm_cost,
    temporary,
)
from kryograph.engine.forward import Forward, Nodes
from kryograph.engine.krylov_forward import KrylovForward
from kryograph.engine.snowball_forward import SnowballForward
from kryograph.nn import Snowball, TruncatedKrylov
from kryograph.nn.functional import Masks
from kryograph.operators import operator

SLOW = Rates(flops=10, bytes=4, launch=0.5)


@pytest.mark.parametrize(
    ("cost", "flops", "moved"),
    [
        # (2 × 3) @ (3 × 5): thirty multiplications and additions; 6, 15 and 10 numbers.
        (gemm_cost(2, 3, 5), 60, 4 * 31),
        (gemm_cost(2, 3, 5, size=8), 60, 8 * 31),
        # Seven entries: each reads an index, a value and a row of five; three rows are written.
        (spmm_cost(7, 3, 5), 70, 7 * (4 + 4 + 20) + 60),
        (spmm_cost(7, 3, 5, size=8), 70, 7 * (4 + 8 + 40) + 120),
        (memory_pass_cost(10), 0, 40),
        (memory_pass_cost(10, size=8), 0, 80),
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
    total = resident(10) + temporary(100) + resident(5, size=8) + temporary(30)
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
    return KrylovForward(network, x, L, nodes(training, 10), Masks())


def snowball(hidden: int = 500, training: int = 20, **changes: int) -> Forward:
    layers = changes.get("layers", 2)
    x, L = torch.ones(60, 30), operator(toy.cycle(60))
    network = Snowball(30, hidden, 3, layers)
    return SnowballForward(network, x, L, nodes(training, 10), Masks())


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
