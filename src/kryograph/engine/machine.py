"""The machine: its rates, its free memory, the peak memory of a computation, its description.

All of it is about the CPU. Code for another device belongs here: its rates for `measure_rates`, and
its memory for `available_memory` and `peak_bytes`.
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
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

from kryograph.engine.cost import Rates
from kryograph.errors import UsageError

T = TypeVar("T")

TIMED_MATRIX_SIDE = 1024
"""Rows and columns of the matrices whose product is timed."""
TIMED_BUFFER_NUMBERS = 32 * 2**20
"""Numbers in the buffer whose copy is timed: 128 MiB, several times any last-level cache."""
TIMED_STEPS = 100
"""Small training steps that are timed together, because one is too short for the clock."""
KERNELS_PER_STEP = 8
"""Kernels of a timed training step and of its gradient."""

CGROUP_V1_FILES = ("memory.limit_in_bytes", "memory.usage_in_bytes")
CGROUP_V2_FILES = ("memory.max", "memory.current")
"""Files with the memory limit and the used memory of a control group, by its version."""

PROCESS = Path("/proc/self")
RESET_PEAK = "5"
"""Value for `/proc/self/clear_refs` that resets the peak memory of the process (proc(5))."""

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
"""A program with the products of networks in mixed precision.

The kernel depends on the number of threads, and on the size: torch uses oneDNN for large products
only.
"""

WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
"""Environment in which oneDNN does not use AMX; oneDNN reads it once, at the first product."""


def measure_rates() -> Rates:
    """Measure the rates in float32 with the current number of threads: half a second, cached."""
    return _measure(torch.get_num_threads())


@cache
def _measure(threads: int) -> Rates:
    """Measure the rates with `threads` threads, which must be the current number."""
    a, b, c = torch.rand(3, TIMED_MATRIX_SIDE, TIMED_MATRIX_SIDE)
    product = _shortest(lambda: torch.mm(a, b, out=c), times=4)
    source, target = torch.ones(2, TIMED_BUFFER_NUMBERS)
    copy = _shortest(lambda: target.copy_(source), times=5)
    few, weights = torch.ones(8, 8), torch.ones(8, 8, requires_grad=True)

    def train() -> None:
        for _ in range(TIMED_STEPS):
            torch.relu(few @ weights).sum().backward()  # type: ignore[no-untyped-call]

    return Rates(
        flops=2 * TIMED_MATRIX_SIDE**3 / product,
        bytes=2 * source.nbytes / copy,
        launch=_shortest(train, times=5) / (TIMED_STEPS * KERNELS_PER_STEP),
    )


def _shortest(work: Callable[[], object], times: int) -> float:
    """The shortest of several times in seconds: disturbances only make work slower."""
    return min(timeit.repeat(work, number=1, repeat=times))


def available_memory(root: Path = Path("/")) -> int | None:
    """Number of bytes that this process may still allocate; None if unknown (not Linux)."""
    free = _kilobytes("MemAvailable", _read(root / "proc/meminfo"))
    machine = [] if free is None else [free]
    return min([*machine, *_free_in_groups(root)], default=None)


def _free_in_groups(root: Path) -> Iterator[int]:
    """Bytes left by the limit of each control group around this process."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        limit, use = CGROUP_V1_FILES if controllers else CGROUP_V2_FILES
        # In a container the folder of the group may be missing, and `mount` is the group itself.
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(mount):
                allowed, used = _read(folder / limit).strip(), _read(folder / use).strip()
                if allowed.isdecimal() and used.isdecimal():
                    yield max(0, int(allowed) - int(used) + _reclaimable(folder))


def _reclaimable(group: Path) -> int:
    """Bytes of cached files, which count as used but are freed when memory is allocated."""
    counts = dict(line.split() for line in _read(group / "memory.stat").splitlines())
    # Version 1 has both, the second one without inner groups; version 2 has the second one only.
    return int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))


def check_bfloat16() -> None:
    """Raise a `UsageError` if products in bfloat16 crash on this processor."""
    fault = bfloat16_fault(BFLOAT16_PRODUCTS)
    if fault is not None:
        raise UsageError(fault)


@cache
def bfloat16_fault(program: str) -> str | None:
    """Explain in a sentence why products in bfloat16 do not work here; None if they do.

    Some virtual machines report Intel's AMX but cannot execute it, and a product kills the process
    by a signal. The products of `program` are therefore tried in a child process. The first call
    takes a few seconds; the result is cached.
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
    """Run a Python program in a child process; the error that ended it, or None."""
    process = subprocess.run(
        # -P: a file torch.py in the current folder is not imported.
        [sys.executable, "-P", "-c", program],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if process.returncode == 0:
        return None
    if process.returncode < 0:
        return signal.strsignal(-process.returncode) or f"signal {-process.returncode}"
    lines = process.stderr.split("\n")
    return next((line for line in reversed(lines) if line), f"exit code {process.returncode}")


def describe() -> dict[str, object]:
    """Describe processor, memory and libraries, for the records of benchmarks."""
    model = re.search(r"^model name\s*: (.+)$", _read(Path("/proc/cpuinfo")), re.MULTILINE)
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return {
        "cpu": model[1].strip() if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_bytes": _total_memory(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "blas": blas[1] if blas else "unknown",
    }


def _total_memory() -> int | None:
    """Number of bytes of memory of the machine; None if the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _read(path: Path) -> str:
    """Read a file of the system; an empty text if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


def _kilobytes(name: str, text: str) -> int | None:
    """A size such as "VmRSS: 12 kB" in a text of the kernel, in bytes."""
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def peak_bytes(work: Callable[[], T]) -> tuple[T, int | None]:
    """Call `work` and measure its peak memory beyond what the process held before.

    Linux records the peak memory of a process. It is reset before the call, and what the process
    held at that time is subtracted. The memory is None if it cannot be measured (not Linux).

    >>> peak_bytes(lambda: 6 * 7)[0]
    42
    """
    gc.collect()
    # Work that reuses freed memory would seem to need less, so malloc returns it first. Only glibc
    # has malloc_trim, and only Unix finds it without the name of a library.
    with suppress(AttributeError, TypeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        (PROCESS / "clear_refs").write_text(RESET_PEAK)
    except OSError:
        return work(), None
    before = _kilobytes("VmRSS", _read(PROCESS / "status"))
    result = work()
    peak = _kilobytes("VmHWM", _read(PROCESS / "status"))
    return result, None if before is None or peak is None else max(0, peak - before)
