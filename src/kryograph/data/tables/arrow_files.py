"""Arrow tables as sheets, and the files that hold them: Parquet, Arrow (Feather), its streams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, contents
from kryograph.data.tables.sheet import Sheet, is_text, repeated
from kryograph.errors import UsageError
from kryograph.text import quoted_list


def numbered_row(row: int) -> str:
    """Place of a row of a table without lines, such as "row 3"."""
    return f"row {row + 1}"


def sheet_of_arrow(
    table: Any, path: Path | str, place: Callable[[int], str] = numbered_row
) -> Sheet:
    """Convert an Arrow table to a sheet.

    Dictionaries are decoded, and all types of text become one. The nameless index that pandas
    writes is called "column 1" and so on.
    """
    names = [
        f"column {at + 1}" if not name or name.startswith("__index_level_") else name
        for at, name in enumerate(table.column_names)
    ]
    if table.num_rows == 0 or not names:
        raise UsageError(f"{path} has a header but no rows.")
    twice = repeated(names)
    if twice:
        raise UsageError(f"{path} has the column {quoted_list(twice[:1])} more than once.")
    columns = {name: _plain(column) for name, column in zip(names, table.columns, strict=True)}
    return Sheet(path, columns, table.num_rows, place)


def _plain(column: Any) -> Any:
    """Decode a column of a dictionary or extension type, and cast text to the type string."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    if pa.types.is_dictionary(column.type):
        kind = column.type.value_type
        # Arrow cannot decode all types of text, such as views; the values are few, cast those.
        target = pa.string() if is_text(kind) else kind
        chunks = [
            chunk.dictionary.cast(target).take(chunk.indices.cast(pa.int64()))
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, target)
    if is_text(column.type) and column.type != pa.string():
        return column.cast(pa.string())
    return column


def read_parquet(path: Path) -> Sheet:
    """Read all columns of a Parquet file.

    Values that contradict their type, such as text that is not UTF-8, count as damage.
    """
    data = contents(path)
    if not (data.startswith(b"PAR1") and data.endswith(b"PAR1")):
        raise UsageError(f"{path} is cut off or not Parquet: it must start and end with 'PAR1'.")
    return _sheet(
        path,
        "Parquet",
        lambda: parquet.ParquetFile(pa.BufferReader(data)).read(use_threads=False),
    )


def read_arrow(path: Path) -> Sheet:
    """Read an Arrow file (Feather) or a stream of Arrow record batches."""
    data = contents(path)

    def table() -> Any:
        source = pa.BufferReader(data)
        opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
        return opened(source).read_all()

    return _sheet(path, "Arrow", table)


def _sheet(path: Path, title: str, read: Callable[[], Any]) -> Sheet:
    """Read a table, check every value, and convert it; damage is a `UsageError`."""
    try:
        table = read()
        table.validate(full=True)
        sheet = sheet_of_arrow(table, path)
    except UsageError:
        raise
    except Exception as error:  # damage shows in many ways: Arrow's errors, OSError, MemoryError
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{path} is damaged or not {title} ({reason}).") from error
    return sheet


for _ending in ("parquet", "pq"):
    FILE_FORMATS.add(_ending, FileFormat("Parquet", read_parquet))
for _ending in ("arrow", "feather", "ipc"):
    FILE_FORMATS.add(_ending, FileFormat("Arrow", read_arrow))
