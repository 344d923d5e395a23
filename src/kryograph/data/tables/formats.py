"""The bytes of a file that somebody hands in, and which of the known kinds they are.

Parquet files as sheets.
"""

from __future__ import annotations

import gzip
import zlib
from enum import Enum
from io import BufferedIOBase
from pathlib import Path

from kryograph.data.tables.sheet import Sheet, is_text, repeated
from kryograph.errors import UsageError
from kryograph.text import quoted_list


class Kind(Enum):
    """What a file is, by its first bytes, or by its name where the bytes do not tell."""

    DELIMITED = "a table of text"
    PARQUET = "Parquet"
    NPZ = "NumPy arrays"
    GRAPHML = "GraphML"
    GEXF = "GEXF"
    EDGE_LIST = "an edge list"

    @property
    def whole(self) -> bool:
        """Whether it brings the nodes and all they have with it, not the edges alone."""
        return self in (Kind.NPZ, Kind.GRAPHML, Kind.GEXF)


_SUFFIXES = {
    ".parquet": Kind.PARQUET,
    ".pq": Kind.PARQUET,
    ".npz": Kind.NPZ,
    ".graphml": Kind.GRAPHML,
    ".gexf": Kind.GEXF,
    ".edgelist": Kind.EDGE_LIST,
}
_SPREADSHEETS = {".xlsx", ".xlsm", ".xls", ".ods"}
_CHUNK = 1 << 20
_ANY_RATIO = 1 << 30
_RATIO = 200
"""A packed file may unpack to `_ANY_RATIO` bytes, to more only if that is at most `_RATIO` times
its size: tables of words that are mostly zeros reach 80."""
_GZIP = b"\x1f\x8b"


def kind_of(path: Path) -> Kind:
    """The kind of a file; one that no reader knows is an error."""
    start = _start(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _SPREADSHEETS:
        raise UsageError(f"{path} is a spreadsheet: save the sheet as CSV, and give that.")
    if start.startswith(b"PAR1"):
        return Kind.PARQUET
    kind = _SUFFIXES.get(suffix, Kind.DELIMITED)
    if start.startswith(b"PK\x03\x04") and kind is not Kind.NPZ:
        raise UsageError(f"{path} is a zip archive: unpack it first.")
    return kind


def _start(path: Path) -> bytes:
    """The first bytes; every reason why a file cannot be opened is found here."""
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
    """All bytes, or the first `most`, unpacked if they are gzip."""
    packed = _start(path).startswith(_GZIP)
    try:
        with gzip.open(path) if packed else path.open("rb") as stream:
            found = stream.read(_CHUNK if most < 0 else most)
            # Zeros are no table, and a small file can unpack to any number of them.
            zeros = packed and b"\0" in found and not found.startswith(b"PAR1")
            if most < 0 and not zeros:
                limit = max(_ANY_RATIO, _RATIO * path.stat().st_size) if packed else None
                found = _rest(stream, found, path, limit)
    except EOFError as error:
        raise UsageError(f"{path} is cut off: its gzip data end too early.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path} is damaged: its gzip data are wrong ({error}).") from error
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not found:
        raise UsageError(f"{path} is empty.")
    return found


def _rest(stream: BufferedIOBase, start: bytes, path: Path, limit: int | None) -> bytes:
    """The start and all that follows, unless it is more than the limit."""
    if limit is None:
        return start + stream.read()
    parts, size = [start], len(start)
    while part := stream.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise UsageError(
                f"{path} unpacks to more than {limit:,} bytes, over {_RATIO} times its size: if "
                "that is meant, unpack it first and give the unpacked file."
            )
    return b"".join(parts)


def encoding_fault(data: bytes, path: Path) -> UsageError | None:
    """What is wrong with bytes that ought to be UTF-8: which byte, and where; None if nothing."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return UsageError(f"{path} is in UTF-16, line 1: save it as UTF-8.")
    zero = data.find(b"\0")
    if zero >= 0:
        return UsageError(f"{path}, {_position(data, zero)}: a zero byte; this is not a text file.")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return UsageError(
            f"{path}, {_position(data, error.start)}: the byte 0x{data[error.start]:02X} is not "
            "UTF-8; save the file as UTF-8 (it may be in Latin-1 or Windows-1252 now)."
        )
    return None


def _position(data: bytes, at: int) -> str:
    line = data.count(b"\n", 0, at) + 1
    start = data.rfind(b"\n", 0, at) + 1
    return f"line {line}, byte {at - start + 1}"


def read_parquet(path: Path) -> Sheet:
    """All columns of a file; what pandas wrote as a nameless index is called "column 1" and so on.

    Values that are not what they claim to be (text that is no UTF-8) are damage as well.
    """
    import pyarrow as pa
    from pyarrow import parquet

    data = contents(path)
    if not (data.startswith(b"PAR1") and data.endswith(b"PAR1")):
        raise UsageError(f"{path} is cut off or not Parquet: it must start and end with 'PAR1'.")
    try:
        table = parquet.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
        table.validate(full=True)
        names = [
            f"column {at + 1}" if not name or name.startswith("__index_level_") else name
            for at, name in enumerate(table.column_names)
        ]
    except Exception as error:  # damage shows in many ways: Arrow's errors, OSError, MemoryError
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{path} is damaged or not Parquet ({said}).") from error
    if table.num_rows == 0 or not names:
        raise UsageError(f"{path} has a header but no rows.")
    twice = repeated(names)
    if twice:
        raise UsageError(f"{path} has the column {quoted_list(twice[:1])} more than once.")
    columns = {
        name: column.cast(column.type.value_type)
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type)
        else column
        for name, column in zip(names, table.columns, strict=True)
    }
    return Sheet(path, columns, table.num_rows, lambda row: f"row {row + 1}")
