"""Threads of a computation: as many as there are cores that other programs leave free.

The threads of a kernel wait for each other. If another program runs on one of the cores, each of
the thousands of kernels of an epoch waits for a thread that is not scheduled, and one thread alone
would be many times as fast. Therefore the free cores are measured when a computation begins, and
again every few seconds.

The measurement compares two readings of the system's counters: cores less the time that they were
busy with other programs. On systems without `/proc/stat` it is the load average of the last minute,
and where there is none all cores count as free.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import torch
from threadpoolctl import ThreadpoolController

PROCESSOR_TIMES = Path("/proc/stat")
"""File of the system with the time that each core was idle and busy (proc(5))."""

SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 10.0
"""Least and greatest time between two readings; the counters have steps of 0.01 s."""

REFRESH_SECONDS = 2.0
"""Time for which a measurement is used."""

FREE_SHARE = 0.75
"""A core counts as free if at least this share of it is."""


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(_own_cores())


def _own_cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


@dataclass(frozen=True)
class CoreTimes:
    """Counters of the system and of this process at a moment, in seconds.

    Args:
        clock: The moment.
        idle: Time for which the cores of this process were idle, summed; None if unknown.
        own: Processor time of this process.
    """

    clock: float
    idle: float | None
    own: float


def read_counters(path: Path = PROCESSOR_TIMES) -> CoreTimes:
    """Read the counters; `path` is a file in the format of `/proc/stat`."""
    return CoreTimes(time.monotonic(), _idle_seconds(path), time.process_time())


def _idle_seconds(path: Path) -> float | None:
    try:
        lines = path.read_text("ascii").splitlines()
        tick = 1 / os.sysconf("SC_CLK_TCK")
        allowed = {f"cpu{number}" for number in _own_cores()}
        # The fourth and fifth number are the time without work and the time of waiting for a disk.
        rows = [row for row in map(str.split, lines) if row and row[0] in allowed]
        return sum(int(row[4]) + int(row[5]) for row in rows) * tick if rows else None
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def free_cores(before: CoreTimes, after: CoreTimes, count: int) -> float:
    """Cores of `count` that other programs left free between two readings.

    >>> idle_for_half_a_second = CoreTimes(1.0, 0.5, own=0.5)
    >>> free_cores(CoreTimes(0.0, 0.0, own=0.0), idle_for_half_a_second, count=2)
    1.0
    """
    if before.idle is None or after.idle is None:
        return _free_by_load(count)
    elapsed = after.clock - before.clock
    others = count * elapsed - (after.idle - before.idle) - (after.own - before.own)
    return count - max(0.0, others) / elapsed


def _free_by_load(count: int) -> float:
    """Free cores by the load average, to which this process contributes a thread or more."""
    try:
        return count - max(0.0, os.getloadavg()[0] - 1)
    except (AttributeError, OSError):
        return float(count)


class _FreeThreads:
    """Number of threads that suits the free cores; measured again when it is too old."""

    def __init__(self) -> None:
        self._reading = read_counters()
        self._threads: int | None = None

    def __call__(self) -> int:
        age = time.monotonic() - self._reading.clock
        if self._threads is not None and age < REFRESH_SECONDS:
            return self._threads
        if age > LONGEST_SECONDS:  # who was busy long ago does not matter
            self._reading, age = read_counters(), 0.0
        if age < SHORTEST_SECONDS:
            time.sleep(SHORTEST_SECONDS - age)
        before, self._reading = self._reading, read_counters()
        count = cores()
        free = free_cores(before, self._reading, count)
        self._threads = min(max(1, int(free + 1 - FREE_SHARE)), count)
        return self._threads


_free_threads = _FreeThreads()


@dataclass(frozen=True)
class _Computation:
    """A computation whose number of threads follows the free cores, up to a limit."""

    limit: int
    narrow: bool


_current: ContextVar[_Computation | None] = ContextVar("current", default=None)


@contextmanager
def on_free_cores(*, narrow: bool = False) -> Iterator[None]:
    """Use as many of torch's threads as there are free cores, and put their number back at the end.

    The number of threads at the beginning, which may be the choice of the user, is never exceeded.
    Inside another such context the limit is that of the outermost one. NumPy, SciPy and
    scikit-learn have one thread meanwhile: their part is small matrices, and their threads would
    take the cores of torch's.

    Args:
        narrow: Whether kernels are too short for threads to share; then torch has one thread.
    """
    outer, before = _current.get(), torch.get_num_threads()
    with nullcontext() if outer else ThreadpoolController().limit(limits=1):
        token = _current.set(_Computation(outer.limit if outer else before, narrow))
        try:
            adapt_threads()
            yield
        finally:
            _current.reset(token)
    torch.set_num_threads(before)


def adapt_threads() -> None:
    """Adapt the number of threads inside `on_free_cores`; elsewhere nothing is done.

    It is cheap enough to be called in every epoch, because it measures every two seconds.
    """
    computation = _current.get()
    if computation is None:
        return
    one = computation.narrow or computation.limit == 1
    # Also if torch reports this number: it may be OpenMP's, and that of MKL another one.
    torch.set_num_threads(1 if one else min(computation.limit, _free_threads()))
