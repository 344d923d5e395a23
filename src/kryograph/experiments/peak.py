"""Peak memory: how much a computation held at most, as the system saw it.

Linux remembers the most memory that a process has held. The memory of one computation is that
mark, put back before it starts, less what the process held already.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PROCESS = Path("/proc/self")
FORGET_PEAK = "5"
"""What `clear_refs` takes for putting the mark back (proc(5))."""


def peak_bytes(work: Callable[[], T]) -> tuple[T, int | None]:
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
