"""Tables of JSON lines: one object on each line, whose keys are the names of the columns.

Arrow reads the whole file. If it cannot, as where numbers and text are mixed in a column, the file
is read again, slowly, and such a column becomes text.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow

from kryograph.data.tables.arrow_files import sheet_of_arrow
from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, text_contents
from kryograph.data.tables.sheet import Sheet, text_column
from kryograph.errors import UsageError

JSON_BLOCK_BYTES = 8 << 20


def read_json_lines(path: Path) -> Sheet:
    """Read a file of JSON lines; blank lines are left out."""
    data = text_contents(path).removeprefix(b"\xef\xbb\xbf")
    if data.lstrip()[:1] != b"{":
        raise UsageError(f"{path}, line 1: a line must hold a JSON object, such as {{'id': 7}}.")

    def place(row: int) -> str:
        filled = (at for at, line in enumerate(data.splitlines()) if line.strip())
        return f"line {next(itertools.islice(filled, row, None)) + 1}"

    try:
        table = _read(data, None)
        # Arrow takes text that looks like a date for one, but it may be an id.
        texts = [part.name for part in table.schema if pa.types.is_timestamp(part.type)]
        if texts:
            table = _read(data, pa.schema([(name, pa.string()) for name in texts]))
            table = table.select(_names(data, table))
        if table.num_rows != sum(1 for line in data.splitlines() if line.strip()):
            raise pa.ArrowInvalid("an object stands on several lines, or several on one")
    except (pa.ArrowException, OverflowError):
        return Sheet(path, *_slowly(path, data), place)
    return sheet_of_arrow(table, path, place)


for _ending in ("jsonl", "ndjson"):
    FILE_FORMATS.add(_ending, FileFormat("JSON lines", read_json_lines))


def _read(data: bytes, schema: Any) -> Any:
    return arrow.read_json(
        pa.BufferReader(data),
        arrow.ReadOptions(block_size=max(JSON_BLOCK_BYTES, data.find(b"\n") + 1)),
        arrow.ParseOptions(explicit_schema=schema),
    )


def _names(data: bytes, table: Any) -> list[str]:
    """Names of the columns in the order of the first line; an explicit schema changes it."""
    first = json.loads(data.lstrip().split(b"\n", 1)[0])
    names = [name for name in first if name in table.column_names]
    return names + [name for name in table.column_names if name not in names]


def _slowly(path: Path, data: bytes) -> tuple[dict[str, Any], int]:
    """Read line by line: the columns and the number of rows."""
    cells: dict[str, list[Any]] = {}
    rows = 0
    for at, line in enumerate(data.splitlines()):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "it is nested too deeply")
            where = f", byte {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
            raise UsageError(f"{path}, line {at + 1}{where}: it is not JSON ({reason}).") from error
        if not isinstance(record, dict):
            raise UsageError(f"{path}, line {at + 1}: it holds no JSON object.")
        for name, value in record.items():
            column = cells.setdefault(name, [])
            column += [None] * (rows - len(column))
            column.append(value)
        rows += 1
    columns = {}
    for at, (name, values) in enumerate(cells.items()):
        values += [None] * (rows - len(values))
        columns[name or f"column {at + 1}"] = _column(values)
    return columns, rows


def _column(values: list[Any]) -> Any:
    """Build an Arrow column; values of several types become text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 or kinds == {int, float}:
        try:
            return pa.chunked_array([pa.array(values)])
        except (pa.ArrowException, OverflowError):
            pass  # numbers beyond 64 bits, or objects of several shapes
    return text_column(
        [
            ""
            if value is None
            else _spelled(value)
            if isinstance(value, str)
            else json.dumps(value)
            for value in values
        ]
    )


def _spelled(text: str) -> str:
    """Replace halves of characters, which JSON can write and UTF-8 cannot."""
    return text.encode(errors="replace").decode()
