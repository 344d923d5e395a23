"""The cost model: what a computation does, and how long that takes on a machine.

A computation is a list of kernels. A kernel does some floating-point operations and moves some
bytes, and takes as long as the slower of the two. A sparse product counts every row that it
gathers as moved. Forms are compared at nominal rates, never at measured ones: the choice, and
with it the last digit of every result, must not depend on how busy the machine is.

Estimate: what a run will take, before it starts, and whether there is room for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kryograph.errors import UsageError
from kryograph.text import gigabytes


@dataclass(frozen=True)
class Rates:
    """How fast a machine is.

    Args:
        flops: Floating-point operations a second in a large matrix product.
        bytes: Bytes read and written a second in a large copy.
        launch: Seconds to start a kernel.
    """

    flops: float
    bytes: float
    launch: float


NOMINAL = Rates(flops=140e9, bytes=24e9, launch=5e-6)
"""Two cores of a server of 2021, in float32."""


USUAL_EPOCHS = 200
"""What a run usually takes: over so many a preparation has to pay off."""


SHORT = 2e-3
"""Seconds: a kernel that takes less is hardly faster with more threads."""


EFFICIENCY = 0.7
"""The share of the better of both rates that kernels of usual shapes reach."""

SPARSE_LAUNCHES = 8
"""A sparse product starts as slowly as so many dense kernels: it checks and wraps its matrix."""


@dataclass(frozen=True)
class Kernel:
    """One operation on tensors."""

    flops: float
    bytes: float
    launches: int = 1

    def seconds(self, rates: Rates) -> float:
        """How long it takes, as a rule."""
        return self.launches * rates.launch + self.floor(rates) / EFFICIENCY

    def floor(self, rates: Rates) -> float:
        """The least it can take."""
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
            self.kernels + other.kernels,
            self.kept + other.kept,
            max(self.passing, other.passing),
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(self.kernels * times, self.kept, self.passing)

    def seconds(self, rates: Rates = NOMINAL) -> float:
        """How long it takes."""
        return sum(kernel.seconds(rates) for kernel in self.kernels)

    def floor(self, rates: Rates) -> float:
        """The least it can take, whoever programs it."""
        return sum(kernel.floor(rates) for kernel in self.kernels)

    def narrow(self, rates: Rates = NOMINAL) -> bool:
        """Whether most of the time goes into kernels too short for threads to share."""
        short = sum(t for t in (k.seconds(rates) for k in self.kernels) if t < SHORT)
        return short > self.seconds(rates) / 2

    @property
    def memory(self) -> float:
        """Bytes: what is kept throughout, and the most that is held at one time beside it."""
        return self.kept + self.passing


def gemm_cost(rows: int, inner: int, columns: int, size: int = 4) -> Cost:
    """(rows × inner) @ (inner × columns), both dense."""
    moved = rows * inner + inner * columns + rows * columns
    return Cost((Kernel(2.0 * rows * inner * columns, float(size * moved)),))


def spmm_cost(nnz: int, rows: int, columns: int, size: int = 4) -> Cost:
    """A sparse matrix with that many entries times a dense one; each entry gathers a row."""
    moved = nnz * (columns * size + 4 + size) + rows * columns * size
    return Cost((Kernel(2.0 * nnz * columns, float(moved), SPARSE_LAUNCHES),))


def memory_pass_cost(numbers: float, size: int = 4) -> Cost:
    """A pass over memory that reads or writes so many numbers."""
    return Cost((Kernel(0.0, float(numbers * size)),))


def resident(numbers: float, size: int = 4) -> Cost:
    """So many numbers are kept throughout."""
    return Cost(kept=float(numbers * size))


def temporary(numbers: float, size: int = 4) -> Cost:
    """So many numbers are held for a while."""
    return Cost(passing=float(numbers * size))


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of one run.

    Args:
        weights: Number of trained parameters.
        epoch: Cost of one epoch: training step, optimiser and scoring.
        epochs: Number of epochs that a run usually takes; 1 for a closed form.
        after: Estimate of what the same run does afterwards, such as the next member of a blend.
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
        """Refuse what cannot fit.

        Args:
            available: Bytes that are free; None if nobody knows.
            runs: How many are to be done at once.
        """
        if available is None or runs * self.memory <= available:
            return
        each = f" for each of {runs} runs at once" if runs > 1 else ""
        fewer = "fewer --jobs, or " if runs > 1 else ""
        raise UsageError(
            f"This needs about {gigabytes(self.memory)} of memory{each}, and "
            f"{gigabytes(available)} are free; the network has {self.weights:,} weights. "
            f"Try {fewer}a smaller network, such as --set hidden=64."
        )
