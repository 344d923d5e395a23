"""The machine: its speed, the memory left on it, whether bfloat16 works, and its description.

Peak memory: how much a computation held at most, as the system saw it.

Linux remembers the most memory that a process has held. The memory of one computation is that
mark, put back before it starts, less what the process held already.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import torch

from kryograph.engine.cost import Rates
from kryograph.errors import UsageError

SIDE = 1024
"""Rows and columns of the matrices whose product is timed."""
BUFFER = 32 * 2**20
"""Numbers in the buffer that is copied: 128 MiB, several times any last-level cache."""
LAUNCHES = 500
"""Small operations in a row, so that the clock can see them."""

V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")
V2 = ("memory.max", "memory.current")
"""Where control groups keep their limit and its use."""

BFLOAT16_PRODUCTS = """
import torch
for threads in (torch.get_num_threads(), 1):
    torch.set_num_threads(threads)
    for rows, inner, columns in ((2, 2, 2), (300, 60, 16), (1024, 512, 64)):
        x, weight = torch.ones(rows, inner), torch.ones(inner, columns, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            product = x @ weight
        product.float().sum().backward()
"""
"""A program that multiplies as networks do in mixed precision.

With one thread and with several, torch chooses other kernels; small products are not left to
oneDNN, large ones are.
"""

WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
"""The environment in which oneDNN does not use AMX; it is read once, before the first product."""


def measure_rates() -> Rates:
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


def check_bfloat16() -> None:
    """Refuse bfloat16 on a processor whose bfloat16 products crash."""
    fault = bfloat16_fault(BFLOAT16_PRODUCTS)
    if fault is not None:
        raise UsageError(fault)


@cache
def bfloat16_fault(program: str) -> str | None:
    """A sentence that says why bfloat16 products do not work here; None if they do.

    Some virtual machines announce Intel's AMX but cannot execute it: there a product ends the whole
    process by a signal, so it is tried in another one. This takes a few seconds the first time.

    Args:
        program: What the other process runs: `BFLOAT16_PRODUCTS`.
    """
    cause = _cause_of_death(program, {})
    if cause is None:
        return None
    fault = f"Products in bfloat16 do not work on this processor ({cause}): use --precision float32"
    if _cause_of_death(program, WITHOUT_AMX) is not None:
        return f"{fault}."
    assignments = " ".join(f"{name}={value}" for name, value in WITHOUT_AMX.items())
    return (
        f"{fault}, or start the program without AMX, where they work: "
        f"{assignments} kryograph train …"
    )


def _cause_of_death(program: str, environment: Mapping[str, str]) -> str | None:
    """What ended a Python program in a process of its own; None if it ran to its end."""
    done = subprocess.run(
        # -P: a file torch.py in the current folder is not imported.
        [sys.executable, "-P", "-c", program],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return signal.strsignal(-done.returncode) or f"signal {-done.returncode}"
    lines = done.stderr.split("\n")
    return next((line for line in reversed(lines) if line), f"exit code {done.returncode}")


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


Returned = TypeVar("Returned")

PROCESS = Path("/proc/self")
FORGET_PEAK = "5"
"""What `clear_refs` takes for putting the mark back (proc(5))."""


def peak_bytes(work: Callable[[], Returned]) -> tuple[Returned, int | None]:
    """What `work` returns, and the most memory it held beyond what was held before.

    The memory is None where the system does not tell (not Linux).

    >>> peak_bytes(lambda: 6 * 7)[0]
    42
    """
    gc.collect()
    _return_freed_memory()
    try:
        (PROCESS / "clear_refs").write_text(FORGET_PEAK)
    except OSError:
        return work(), None
    before = _status("VmRSS")
    result = work()
    peak = _status("VmHWM")
    return result, None if before is None or peak is None else max(0, peak - before)


def _return_freed_memory() -> None:
    """Ask malloc for what it keeps: work that reused it would seem to need less."""
    # Only glibc has this function, and only a Unix finds functions without a library's name.
    with suppress(AttributeError, TypeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(name: str) -> int | None:
    """A size in bytes from the process's status."""
    found = re.search(rf"^{name}:\s+(\d+) kB", (PROCESS / "status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
