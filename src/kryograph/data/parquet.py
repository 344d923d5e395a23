"""Parquet files as sheets."""

from __future__ import annotations

from pathlib import Path

from kryograph.data.files import contents
from kryograph.data.sheet import Sheet, is_text, listed, repeated
from kryograph.errors import UsageError


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
        raise UsageError(f"{path} has the column {listed(twice[:1])} more than once.")
    columns = {
        name: column.cast(column.type.value_type)
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type)
        else column
        for name, column in zip(names, table.columns, strict=True)
    }
    return Sheet(path, columns, table.num_rows, lambda row: f"row {row + 1}")
