"""Claims: which of several processes is at which run, without anything to clean up afterwards.

A claim is a lock on one byte of a file that has none: the byte that the run's key points to. The
system gives a lock back when the process that has it ends, whether it ends well or is killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

try:
    import fcntl
except ImportError:  # Windows: two processes may do the same run, and the second row is dropped
    fcntl = None  # type: ignore[assignment]

_POSITIONS = 2**62
"""As many as a file has; that two runs of a thousand share one is as good as impossible."""


class Locks:
    """What this process has claimed."""

    def __init__(self, file: int | None) -> None:
        self._file = file

    @classmethod
    @contextmanager
    def beside(cls, path: Path) -> Iterator[Self]:
        """Claims on the runs of a store, in a file beside it. All are given back at the end."""
        if fcntl is None:
            yield cls(None)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(f"{path}.claims", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            yield cls(file)
        finally:
            os.close(file)

    def take(self, key: str) -> bool:
        """Claim a run, given by a key in hexadecimal digits; whether no other process has it."""
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _position(key))
        except OSError:
            return False
        return True

    def release(self, key: str) -> None:
        """Give a claim back."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _position(key))


def _position(key: str) -> int:
    return int(key, 16) % _POSITIONS
