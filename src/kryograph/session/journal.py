"""Journal: every decision of a person, appended to a file and on the disk before the answer.

An entry is one line of JSON: one write to a file that is opened for appending, then fsync. Nothing
is ever removed: undo is an entry of its own. A last line without its end was never acknowledged; it
is moved to `journal.torn` when the journal is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kryograph.errors import KryographError, UsageError

try:
    import fcntl
except ImportError:  # Windows: nothing keeps a second server from opening the same journal
    fcntl = None  # type: ignore[assignment]

JOURNAL, TORN = "journal.jsonl", "journal.torn"

OPERATIONS = ("label", "skip", "undo", "class")


class NotSavedError(KryographError):
    """An entry could not be written; nothing was acknowledged."""


@dataclass(frozen=True)
class Entry:
    """A line of the journal.

    Args:
        seq: Number of the line, from 1.
        time: Time in UTC, in ISO 8601.
        id: Identifier that the page draws, so that an entry that is sent twice is kept once.
        op: One of `OPERATIONS`.
        node: Name of the node; "" for a class.
        label: Name of the class; "" for a skip or an undo.
        by: Name of the person, or "".
        seconds: Seconds that the node was displayed.
        predicted: Class that was predicted before the label was known; "" without a prediction.
        p: Its probability; None without a prediction.
        reason: Why the node was displayed: "suggested", "check" or "picked".
        of: Number of the line that an undo takes back; None otherwise.
    """

    seq: int
    time: str
    id: str
    op: str
    node: str = ""
    label: str = ""
    by: str = ""
    seconds: float = 0.0
    predicted: str = ""
    p: float | None = None
    reason: str = ""
    of: int | None = None

    def line(self) -> bytes:
        """Return the entry as a line of JSON in UTF-8."""
        return json.dumps(asdict(self), ensure_ascii=False).encode() + b"\n"


TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("time", "id", "op", "node", "label", "by", "predicted", "reason"), (str,)),
    "seq": (int,),
    "seconds": (int, float),
    "p": (int, float, type(None)),
    "of": (int, type(None)),
}


class Journal:
    """The journal of a folder, locked for this process until it is closed.

    Args:
        file: Number of the open file.
        path: Path of the file, for messages.
        entries: Entries that it holds.
        torn: Number of bytes that were set aside when it was opened.
    """

    def __init__(self, file: int, path: Path, entries: Sequence[Entry], torn: int) -> None:
        self._file, self.path, self.torn = file, path, torn
        self.entries = list(entries)
        self.by_id = {entry.id: entry for entry in entries}
        self._damaged = False

    @classmethod
    def open(cls, folder: Path) -> Journal:
        """Open the journal of a folder; the folder and an empty journal are made if needed.

        Raises:
            UsageError: If another process has it open, or a line is damaged.
            KryographError: If it cannot be written.
        """
        path = folder / JOURNAL
        try:
            _make_folder(folder)
            is_new = not path.exists()
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise KryographError(f"{path} cannot be written: {error.strerror}.") from None
        try:
            _lock(file, folder)
            if is_new:
                sync_folder(folder)
            entries, torn = _read(file, path)
            return cls(file, path, entries, torn)
        except OSError as error:
            os.close(file)
            raise KryographError(f"{path} cannot be written: {error.strerror}.") from None
        except BaseException:
            os.close(file)
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns, it is on the disk.

        Raises:
            NotSavedError: If it is not. The journal is then as it was before.
        """
        if self._damaged:
            raise NotSavedError(
                f"not saved: {self.path} could not be repaired after a failed write. Stop the "
                "server and start it again."
            )
        assert entry.seq == len(self.entries) + 1
        assert entry.id not in self.by_id
        line, end = entry.line(), os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(0, "no room on the disk")
            os.fsync(self._file)
        except OSError as error:
            self._cut(end)
            raise NotSavedError(f"not saved: {_reason(error)} ({self.path}).") from None
        self.entries.append(entry)
        self.by_id[entry.id] = entry

    def _cut(self, end: int) -> None:
        """Remove what a failed write has left."""
        try:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        except OSError:
            self._damaged = True

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _reason(error: OSError) -> str:
    full = ("No space left on device", "File too large", "Disk quota exceeded")
    words = error.strerror or str(error)
    return "no room on the disk" if words in full else words


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents; each is on the disk when this returns."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Force the names of the files of a folder to the disk."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _lock(file: int, folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(
            f"{folder} is open in another `kryograph label`: stop that one, or choose another "
            "folder with --session."
        ) from None


def _read(file: int, path: Path) -> tuple[list[Entry], int]:
    """Read all entries; set aside a last line without its end and return its length."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        torn = os.open(path.parent / TORN, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(torn, content[end:] + b"\n")
            os.fsync(torn)
        finally:
            os.close(torn)
        sync_folder(path.parent)
        os.ftruncate(file, end)
        os.fsync(file)
    entries: list[Entry] = []
    ids: set[str] = set()
    for number, line in enumerate(content[:end].splitlines(), start=1):
        entry = _parse(line, number, path)
        if entry.id in ids:
            raise _bad_line(path, number, "its id occurs twice")
        ids.add(entry.id)
        entries.append(entry)
    return entries, len(content) - end


def _parse(line: bytes, number: int, path: Path) -> Entry:
    try:
        values: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise _bad_line(path, number, "it is not JSON") from None
    names = [part.name for part in fields(Entry)]
    if not isinstance(values, dict) or set(values) != set(names):
        raise _bad_line(path, number, "it has not the fields of an entry")
    for name, kinds in TYPES.items():
        if not isinstance(values[name], kinds) or isinstance(values[name], bool):
            raise _bad_line(path, number, f"its {name!r} is {values[name]!r}")
    if values["seq"] != number:
        raise _bad_line(path, number, f"its number is {values['seq']}")
    if values["op"] not in OPERATIONS:
        raise _bad_line(path, number, f"its operation is {values['op']!r}")
    return Entry(**values)


def _bad_line(path: Path, number: int, reason: str) -> UsageError:
    return UsageError(
        f"{path}, line {number}: {reason}. The journal was edited or damaged; nothing is guessed. "
        "Repair the line, or choose another folder with --session."
    )
