"""TODO: say what this module is."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kryograph.errors import KryographError


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new place beside `out`, which takes its name when everything is written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise KryographError(f"{out} cannot be written: {error.strerror}.") from None
    try:
        new = half / out.name
        yield new
        old = half / "old"
        if out.exists():
            os.replace(out, old)
        try:
            os.replace(new, out)
        except BaseException:
            if old.exists():
                os.replace(old, out)
            raise
    except OSError as error:
        raise KryographError(f"{out} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
