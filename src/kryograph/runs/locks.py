"""Locks: which of several processes is doing which run, without anything to clean up afterwards.

A run is locked by a lock on one byte of an empty file; the position of the byte follows from the
key of the run. The operating system releases a lock when its process ends, even if it is killed.
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
"""Number of bytes that can be locked: so many that two runs practically never share one."""


class Locks:
    """Locks of this process on the runs of a store."""

    def __init__(self, file: int | None) -> None:
        self._file = file

    @classmethod
    @contextmanager
    def beside(cls, store: Path) -> Iterator[Self]:
        """Locks in the file `<store>.claims`; all are released when the block ends."""
        if fcntl is None:
            yield cls(None)
            return
        store.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(f"{store}.claims", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            yield cls(file)
        finally:
            os.close(file)

    def take(self, key: str) -> bool:
        """Lock the run with this key (hexadecimal); False if another process has locked it."""
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _position(key))
        except OSError:
            return False
        return True

    def release(self, key: str) -> None:
        """Release the lock on the run with this key."""
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _position(key))


def _position(key: str) -> int:
    return int(key, 16) % _POSITIONS
