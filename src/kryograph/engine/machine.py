"""The machine: how fast it is, how much memory is left on it, and what to call it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from time import perf_counter

import torch

from kryograph.engine.cost import Rates

SIDE = 1024
"""Rows and columns of the matrices whose product is timed."""
BUFFER = 32 * 2**20
"""Numbers in the buffer that is copied: 128 MiB, several times any last-level cache."""
LAUNCHES = 500
"""Small operations in a row, so that the clock can see them."""

V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")
V2 = ("memory.max", "memory.current")
"""Where control groups keep their limit and its use."""


def measure() -> Rates:
    """How fast this machine is in float32 with the current number of threads.

    Takes half a second the first time; then the answer is remembered.
    """
    return _measure(torch.get_num_threads())


@cache
def _measure(threads: int) -> Rates:
    """The rates with that many threads, which must be the current number."""
    a, b, c = torch.rand(3, SIDE, SIDE)
    product = _least(lambda: torch.mm(a, b, out=c), times=4)
    source, target = torch.ones(2, BUFFER)
    copy = _least(lambda: target.copy_(source), times=5)
    few = torch.ones(64)

    def launch() -> None:
        for _ in range(LAUNCHES):
            few + few

    return Rates(
        flops=2 * SIDE**3 / product,
        bytes=2 * source.nbytes / copy,
        launch=_least(launch, times=5) / LAUNCHES,
    )


def _least(work: Callable[[], object], times: int) -> float:
    """The shortest time: whatever disturbs a machine makes it slower, never faster."""

    def once() -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    return min(once() for _ in range(times))


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process may still take; None where the system does not say (not Linux).

    Args:
        root: Where `proc` and `sys` lie.
    """
    free = re.search(r"^MemAvailable:\s+(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    machine = [int(free[1]) * 1024] if free else []
    return min([*machine, *_left_in_groups(root)], default=None)


def _left_in_groups(root: Path) -> Iterator[int]:
    """What the limits of this process's control groups, and of those around them, leave."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        limit, use = V1 if controllers else V2
        # A container may not see its own folder, only what is mounted in place of it: `mount`.
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(mount):
                allowed, used = _read(folder / limit).strip(), _read(folder / use).strip()
                if allowed.isdecimal() and used.isdecimal():
                    yield max(0, int(allowed) - int(used) + _cached(folder))


def _cached(group: Path) -> int:
    """Bytes of files that count as used but make room when memory is asked for."""
    counts = dict(line.split() for line in _read(group / "memory.stat").splitlines())
    # Version 1 has both, the second without the groups inside; version 2 has the second only.
    return int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))


def describe() -> dict[str, object]:
    """The machine and what runs on it, for whoever reads a benchmark."""
    model = re.search(r"^model name\s*: (.+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return {
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_bytes": _memory(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "blas": blas[1] if blas else "unknown",
    }


def _memory() -> int | None:
    """Bytes of memory in the machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _read(path: Path) -> str:
    """What a file of the system says; nothing if it is not there."""
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
