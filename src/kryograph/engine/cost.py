"""The cost model: what a computation does, and how long that takes on a machine.

A computation is a list of kernels. A kernel does some floating-point operations and moves some
bytes, and takes as long as the slower of the two. A sparse product counts every row that it
gathers as moved; a number takes four bytes. Forms are compared at nominal rates, never at measured
ones: the choice, and with it the last digit of every result, must not depend on how busy the
machine is.

Estimate: what a run will take, before it starts, and whether there is room for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kryograph.errors import UsageError
from kryograph.text import gigabytes


@dataclass(frozen=True)
class Rates:
    """Speed of a machine.

    These are floating-point operations a second in a large matrix product, bytes read and written a
    second in a large copy, and seconds to start a kernel in a training step.
    """

    flops: float
    bytes: float
    launch: float


NOMINAL = Rates(flops=140e9, bytes=24e9, launch=5e-6)
"""Two cores of a server of 2021, in float32."""

USUAL_EPOCHS = 200
"""Number of epochs of a usual run, over which a preparation has to pay off."""

SHORT = 2e-3
"""Seconds: a kernel that takes less is hardly faster with more threads."""

TOO_SHORT = 2e-4
"""Seconds: a kernel that takes less is not faster with more threads."""

EFFICIENCY = 0.7
"""The share of the better of both rates that kernels of usual shapes reach."""

SPARSE_LAUNCHES = 3
"""Starting a sparse product, which checks its matrix, takes as long as this many dense kernels."""

CACHE_BYTES, CACHE_SPEEDUP = 8 * 2**20, 4
"""A dense factor of at most this size stays in the cache, and its rows are gathered so many times
as fast as a copy of memory (`kryograph bench spmm`)."""

LOOP_LAUNCHES = 80
"""Kernels an epoch that the training loop starts beside the network: loss, checks, accuracies."""

RUN_BYTES = 10e6
"""Memory of any run: kernels whose code is loaded at first use, and the allocator's reserve."""


@dataclass(frozen=True)
class Kernel:
    """One operation on tensors: its arithmetic, its memory traffic and the number of its starts."""

    flops: float
    bytes: float
    launches: int = 1

    def seconds(self, rates: Rates) -> float:
        """Expected duration in seconds at these rates."""
        return self.launches * rates.launch + self.floor(rates) / EFFICIENCY

    def floor(self, rates: Rates) -> float:
        """Shortest possible duration in seconds."""
        return max(self.flops / rates.flops, self.bytes / rates.bytes)


@dataclass(frozen=True)
class Cost:
    """Kernels one after the other, and the memory that is needed for them.

    >>> dense, sparse = gemm_cost(640, 14330, 1950), spmm_cost(49216, 2708, 1950)
    >>> (dense + sparse).seconds() == dense.seconds() + sparse.seconds()
    True
    """

    kernels: tuple[Kernel, ...] = ()
    kept: float = 0.0
    passing: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.kernels + other.kernels, self.kept + other.kept, max(self.passing, other.passing)
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(self.kernels * times, self.kept, self.passing)

    def seconds(self, rates: Rates = NOMINAL) -> float:
        """Expected duration in seconds at these rates."""
        return sum(kernel.seconds(rates) for kernel in self.kernels)

    def floor(self, rates: Rates) -> float:
        """Shortest possible duration in seconds, whatever the program."""
        return sum(kernel.floor(rates) for kernel in self.kernels)

    def narrow(self, rates: Rates = NOMINAL, seconds: float = SHORT) -> bool:
        """Whether most of the time goes into kernels that take less than `seconds`."""
        short = sum(t for t in (k.seconds(rates) for k in self.kernels) if t < seconds)
        return short > self.seconds(rates) / 2

    @property
    def memory(self) -> float:
        """Peak number of bytes: resident memory, and the largest temporary memory beside it."""
        return self.kept + self.passing


def gemm_cost(rows: int, inner: int, columns: int) -> Cost:
    """Cost of (rows × inner) @ (inner × columns), both dense."""
    moved = rows * inner + inner * columns + rows * columns
    return Cost((Kernel(2.0 * rows * inner * columns, 4.0 * moved),))


def spmm_cost(nnz: int, rows: int, columns: int) -> Cost:
    """Cost of a sparse matrix with `nnz` entries times a dense one; each entry gathers a row."""
    gathered, result = nnz * (4 * columns + 8), 4 * rows * columns
    # The dense factor is about as large as the result.
    moved = result + gathered / (CACHE_SPEEDUP if result <= CACHE_BYTES else 1)
    return Cost((Kernel(2.0 * nnz * columns, float(moved), SPARSE_LAUNCHES),))


def memory_pass_cost(numbers: float) -> Cost:
    """Cost of a pass over memory that reads or writes this many numbers."""
    return Cost((Kernel(0.0, 4.0 * numbers),))


def resident(numbers: float) -> Cost:
    """Memory for numbers that stay allocated for the whole run."""
    return Cost(kept=4.0 * numbers)


def temporary(numbers: float) -> Cost:
    """Memory for numbers that are allocated for a part of an epoch."""
    return Cost(passing=4.0 * numbers)


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of one run.

    An epoch is a training step with the optimiser and a scoring; a closed form has one. `after` is
    the estimate of what the same run does afterwards, such as the next member of a blend.
    """

    weights: int
    epoch: Cost
    epochs: int = USUAL_EPOCHS
    after: Estimate | None = None

    def seconds(self, rates: Rates = NOMINAL) -> float:
        """Predicted duration of a usual run, in seconds, on a machine with these rates."""
        rest = 0.0 if self.after is None else self.after.seconds(rates)
        return self.epochs * self.epoch.seconds(rates) + rest

    @property
    def memory(self) -> float:
        """Peak number of bytes, beyond what the program itself holds."""
        return max(self.epoch.memory, 0.0 if self.after is None else self.after.memory)

    def repeated(self, times: int) -> Estimate:
        """Estimate of the same run done several times, one after the other."""
        rest = None if self.after is None else self.after.repeated(times)
        return replace(self, epochs=times * self.epochs, after=rest)

    def check(self, available: float | None, runs: int = 1) -> None:
        """Raise a `UsageError` if the free bytes, if known, are too few for `runs` at once."""
        if available is None or runs * self.memory <= available:
            return
        share = f" for each of {runs} runs at once" if runs > 1 else ""
        fewer = "fewer --jobs, or " if runs > 1 else ""
        raise UsageError(
            f"This needs about {gigabytes(self.memory)} of memory{share}, and "
            f"{gigabytes(available)} are free; the network has {self.weights:,} weights. "
            f"Try {fewer}a smaller network, such as --set hidden=64."
        )
