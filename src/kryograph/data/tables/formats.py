"""File formats: the registry of readers by file name ending, and the bytes of a file.

A format is found by the last ending of the file's name (before ".gz"). An ending that is not
registered here may be that of a plug-in; a file with any other ending is read as a table of text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kryograph.data.tables.sheet import RawGraph, Sheet
from kryograph.errors import UsageError
from kryograph.registry import Registry

if TYPE_CHECKING:
    from kryograph.data.tables.delimited import CsvTable


@dataclass(frozen=True)
class FileFormat:
    """One format of the files that a user may pass."""

    title: str
    """Name of the format in messages, such as "GraphML"."""
    read: Callable[[Path], RawGraph | Sheet | CsvTable]
    """Reads a file. Returns a `RawGraph` if `whole`, else a `Sheet`, or a `CsvTable` if the first
    row may be a header or data."""
    whole: bool = False
    """Whether a file holds nodes and edges; otherwise it holds one table."""
    read_edges: Callable[[Path], Sheet | CsvTable] | None = None
    """Reads a table of edges; None if `read` does."""


def _check(ending: str, value: object) -> None:
    if not isinstance(value, FileFormat):
        raise UsageError(f"{ending!r} must be a FileFormat, not a {type(value).__name__}")


FILE_FORMATS: Registry[FileFormat] = Registry("file format", "kryograph.formats", _check)
"""Every file format by the ending of its files, without the dot; plug-ins come last."""

TEXT = "csv"
"""Ending of the format of files whose ending is not known."""
SPREADSHEETS = {"xlsx", "xlsm", "xls", "ods"}
CHUNK_BYTES = 1 << 20
UNPACKED_BYTES = 1 << 30
UNPACKED_RATIO = 200
"""A packed file may unpack to UNPACKED_BYTES, or to this times its size if that is more. Tables of
words that are mostly zeros reach a ratio of 80."""
_GZIP = b"\x1f\x8b"


def format_of(path: Path) -> FileFormat:
    """Find the format of a file; a file that cannot be opened or that no reader knows is an error.

    Parquet and Arrow files are recognised by their first bytes, whatever the file's name is.
    """
    start = _start(path)
    endings = path.name.lower().removesuffix(".gz").split(".")[1:] or [TEXT]
    ending = {b"PAR1": "parquet", b"ARRO": "arrow"}.get(start, endings[-1])
    format = FILE_FORMATS.get(ending)
    if ending in FILE_FORMATS.failures:
        raise UsageError(f"{path} cannot be read. {FILE_FORMATS.failures[ending]}")
    if format is None and ending in SPREADSHEETS:
        raise UsageError(f"{path} is a spreadsheet: save the sheet as CSV, and give that.")
    format = format or FILE_FORMATS[TEXT]
    if start.startswith(b"PK\x03\x04") and format == FILE_FORMATS[TEXT]:
        raise UsageError(f"{path} is a zip archive: unpack it first.")
    return format


def _start(path: Path) -> bytes:
    """Read the first four bytes; a path that is not a readable file is an error."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a file.")
        if not path.exists():
            raise UsageError(f"There is no file {path}.")
        if not path.is_file():
            raise UsageError(f"{path} is not a regular file.")
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not start:
        raise UsageError(f"{path} is empty.")
    return start


def contents(path: Path, most: int = -1) -> bytes:
    """Read all bytes of a file, or the first `most`; gzip is unpacked."""
    packed = _start(path).startswith(_GZIP)
    try:
        limit = max(UNPACKED_BYTES, UNPACKED_RATIO * path.stat().st_size)
        with gzip.open(path) if packed else path.open("rb") as stream:
            data = stream.read(CHUNK_BYTES if packed and most < 0 else most)
            # Zeros are not a table, and a small file can unpack to any number of them.
            if packed and most < 0 and (b"\0" not in data or data.startswith(b"PAR1")):
                parts, size = [data], len(data)
                while size <= limit and parts[-1]:
                    parts.append(stream.read(CHUNK_BYTES))
                    size += len(parts[-1])
                data = b"".join(parts)
    except EOFError as error:
        raise UsageError(f"{path} is cut off: its gzip data end too early.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged: its gzip data are wrong ({error}).") from error
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    if packed and len(data) > limit:
        raise UsageError(
            f"{path} unpacks to more than {limit:,} bytes, over {UNPACKED_RATIO} times its "
            "size. If this is intended, unpack the file first and pass the unpacked one."
        )
    if not data:
        raise UsageError(f"{path} is empty.")
    return data


def text_contents(path: Path) -> bytes:
    """Read all bytes of a file that must be UTF-8."""
    data = contents(path)
    fault = encoding_fault(data, path)
    if fault is not None:
        raise fault
    return data


def encoding_fault(data: bytes, path: Path) -> UsageError | None:
    """Find the first byte that is not UTF-8 text; returns the error, or None if there is none."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return UsageError(f"{path} is in UTF-16, line 1: save it as UTF-8.")
    at, what = data.find(b"\0"), "a zero byte; this is not a text file"
    if at < 0:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            at = error.start
            what = (
                f"the byte 0x{data[at]:02X} is not UTF-8; save the file as UTF-8 (it may be in "
                "Latin-1 or Windows-1252 now)"
            )
        else:
            return None
    line, start = data.count(b"\n", 0, at) + 1, data.rfind(b"\n", 0, at) + 1
    return UsageError(f"{path}, line {line}, byte {at - start + 1}: {what}.")
