"""Files of the program: reading text, checking an output, replacing a file or folder as a whole."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kryograph.errors import KryographError, UsageError

Content = TypeVar("Content")


@contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """Create a hidden folder in `parent`, and remove it with its contents when the block ends.

    Files can be renamed from there into `parent`, because both are on the same file system.

    Raises:
        KryographError: If the folder, or a file in the block, cannot be written.
    """
    folder = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
        yield folder
    except OSError as error:
        path = parent / name
        raise KryographError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Path to write a file or folder to; when the block ends, it is renamed to `path`.

    If the block raises an error or the process is interrupted, `path` is left as it was.

    Raises:
        KryographError: If something cannot be written.
    """
    with temporary_folder(path.parent, path.name) as folder:
        new, old = folder / path.name, folder / "old"
        yield new
        if not path.is_dir():
            new.replace(path)
            return
        # A folder that is not empty cannot be replaced in one step.
        path.replace(old)
        try:
            new.replace(path)
        except BaseException:
            old.replace(path)
            raise


def check_output(
    path: Path, *, overwrite: bool, is_ours: Callable[[Path], bool], kind: str
) -> None:
    """Check, before any work is done, that `path` may and can be written.

    Args:
        path: The file or folder to write. Missing parent folders are no error.
        overwrite: Whether an existing file or folder may be replaced.
        is_ours: Whether an existing file or folder looks like one that the program wrote.
        kind: What `is_ours` recognises, with an article, for the message.

    Raises:
        UsageError: If it must not be overwritten, or cannot be written.
    """
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists already: choose another name, or add --overwrite.")
    if path.exists() and not is_ours(path):
        raise UsageError(f"{path} is not {kind}, so it is not overwritten.")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryDirectory(dir=parent):
            pass
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {parent}: {error.strerror}.") from None


def check_own_file(path: Path) -> None:
    """Check that a file can be written; one that exists must have been written by kryograph."""
    check_output(path, overwrite=True, is_ours=_is_own, kind="a file that kryograph wrote")


def _is_own(path: Path) -> bool:
    return path.is_file() and b"kryograph" in path.read_bytes()[:4096]


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file as a whole, or leave what is there."""
    with replaced(path) as new:
        new.write_text(text, "utf-8")


def read_text(path: Path) -> str:
    """Read a UTF-8 file; a file that is missing or not UTF-8 is a `UsageError`."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a text in UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parse_toml(text: str, location: str, convert: Callable[[dict[str, Any]], Content]) -> Content:
    """Parse a TOML text and convert its values; errors name the `location` of the text."""
    try:
        return convert(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{location} is not TOML: {error}.") from None
    except UsageError as error:
        raise UsageError(f"{location}: {error}") from None
