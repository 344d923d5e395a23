"""Tables of text: comma, tab or semicolon, quoted or not, with a header or without.

A file is read in one go by Arrow, every cell as text. Only if something is wrong is it gone through
again, slowly, to find the line.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kryograph.data.tables.formats import contents, encoding_fault
from kryograph.data.tables.sheet import Sheet, repeated
from kryograph.errors import UsageError
from kryograph.text import plural, quoted, quoted_list

DELIMITERS = "\t;,"
"""Best first: a comma may also be a decimal point or part of a sentence."""
DELIMITER_SAMPLE_LINES = 20
"""How many records say what the delimiter is."""
CSV_BLOCK_BYTES = 8 << 20
_SPACED_QUOTE = rb'(?m)(^|[,;\t]) +"'
"""A space before a quotation mark, which would make the mark part of the cell."""


@dataclass(frozen=True, eq=False)
class CsvTable:
    """All cells of a file, before it is known whether the first row is a header."""

    path: Path
    delimiter: str
    first: tuple[str, ...]
    columns: list[Any]
    """Arrow arrays of text that include the first row."""
    spaces: bool

    @property
    def rows(self) -> int:
        """How many there are, the first included."""
        return len(self.columns[0])

    def sheet(self, header: bool) -> Sheet:
        """The table; without a header its columns are called "1", "2" and so on."""
        if not header:
            names = [str(at + 1) for at in range(len(self.columns))]
            columns = dict(zip(names, self.columns, strict=True))
            return Sheet(
                self.path, columns, self.rows, self._place, decimal_comma=self.delimiter == ";"
            )
        if self.rows == 1:
            raise UsageError(f"{self.path} has a header, line {self.line(0)}, but no rows.")
        names = [name or f"column {at + 1}" for at, name in enumerate(self.first)]
        twice = repeated(names)
        if twice:
            raise UsageError(
                f"{self.path}, line {self.line(0)}: {quoted_list(twice[:3])} stands more than "
                "once; every column needs a name of its own."
            )
        columns = {name: column.slice(1) for name, column in zip(names, self.columns, strict=True)}
        return Sheet(
            self.path,
            columns,
            self.rows - 1,
            lambda row: self._place(row + 1),
            decimal_comma=self.delimiter == ";",
        )

    def _place(self, row: int) -> str:
        return f"line {self.line(row)}"

    def line(self, row: int) -> int:
        """The line on which a row starts, found by going through the file again."""
        data, skipped = _text(self.path, self.spaces)
        for at, (line, _) in enumerate(_records(data, self.delimiter)):
            if at == row:
                return line + skipped
        raise AssertionError(f"{self.path} has no row {row}")


def read_delimited(path: Path, *, spaces: bool = False) -> CsvTable:
    """Read a file; `spaces` says that cells may be separated by spaces, as in lists of edges.

    Such a list may start with lines of comment, marked by # or %.
    """
    data, skipped = _text(path, spaces)
    delimiter = _delimiter(data)
    first = next(_records(data, delimiter), None)
    if first is None:
        raise UsageError(f"{path} is empty: it has nothing but blank lines.")
    if data.count(b'"') % 2:
        _refuse_open_quote(data, delimiter, path, skipped)
    columns = _columns(data, delimiter, len(first[1]), path, skipped)
    names = tuple(cell.strip().lstrip("#").strip() for cell in first[1])
    return CsvTable(path, delimiter, names, columns, spaces)


def _text(path: Path, spaces: bool) -> tuple[bytes, int]:
    """The bytes from the first row on, and how many lines of comment stand before it."""
    data = contents(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        raise encoding_fault(data, path) or AssertionError
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data[:4096].strip() and not data.strip():
        raise UsageError(f"{path} is empty: it has nothing but blank lines.")
    skipped = 0
    if spaces:
        comment = re.match(rb"(?:[#%][^\n]*\n)+", data)
        if comment:
            data = data[comment.end() :]
            skipped = comment.group().count(b"\n")
            if not data.strip():
                raise UsageError(f"{path} has {plural(skipped, 'line')} of comment, but no rows.")
        head = _head(data)
        if not _consistent(head, DELIMITERS) and _consistent(_tabs(head), "\t"):
            data = _tabs(data)
    if re.search(_SPACED_QUOTE, _head(data)):
        data = re.sub(_SPACED_QUOTE, rb'\1"', data)
    return (data if data.endswith((b"\n", b"\r")) else data + b"\n"), skipped


def _tabs(data: bytes) -> bytes:
    """The same cells, with one tab for every run of spaces."""
    return re.sub(rb"(?m)^\t|\t(?=\r?$)", b"", re.sub(rb"[ \t]+", b"\t", data))


def _head(data: bytes) -> bytes:
    """The first million bytes or so, in whole lines."""
    end = data.rfind(b"\n", 0, 1 << 20)
    return data if end < 0 else data[: end + 1]


def _consistent(head: bytes, delimiters: str) -> str:
    """The delimiter that splits the first records into the most columns, all alike; "" if none."""
    best, most = "", 1
    for delimiter in delimiters:
        widths = set()
        for at, (_, cells) in enumerate(_records(head, delimiter)):
            if at == DELIMITER_SAMPLE_LINES:
                break
            widths.add(len(cells))
        if len(widths) == 1 and max(widths) > most:
            best, most = delimiter, max(widths)
    return best


def _delimiter(data: bytes) -> str:
    head = _head(data)
    found = _consistent(head, DELIMITERS)
    if found:
        return found
    # Rows of different lengths: the first one decides, and the others will be complained about.
    line = head.lstrip().split(b"\n", 1)[0].decode(errors="replace")
    return max(",\t;", key=line.count)


def _records(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, and the line on which it starts."""
    stream = io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace", newline="")
    limit = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.reader(stream, delimiter=delimiter)
        line = 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _columns(data: bytes, delimiter: str, width: int, path: Path, skipped: int) -> list[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    def read(block: int) -> Any:
        return arrow.read_csv(
            pa.BufferReader(data),
            read_options=arrow.ReadOptions(autogenerate_column_names=True, block_size=block),
            parse_options=arrow.ParseOptions(
                delimiter=delimiter, newlines_in_values=b'"' in data, ignore_empty_lines=True
            ),
            convert_options=arrow.ConvertOptions(
                column_types={f"f{at}": pa.string() for at in range(width)},
                strings_can_be_null=False,
            ),
        )

    try:
        try:
            table = read(CSV_BLOCK_BYTES)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise
            table = read(min(len(data) + 1, (1 << 31) - 1))  # a row that is longer than a block
        if table.num_columns != width or table.num_rows == 0:
            raise pa.ArrowInvalid(f"{table.num_columns} columns instead of {width}")
    except (pa.ArrowException, OverflowError) as error:
        raise _explained(data, delimiter, path, skipped, error) from error
    return list(table.columns)


def _explained(
    data: bytes, delimiter: str, path: Path, skipped: int, error: Exception
) -> UsageError:
    """The sentence for a file that Arrow does not read."""
    wrong = encoding_fault(contents(path), path)
    if wrong is not None:
        return wrong
    start = width = None
    ragged: tuple[int, list[str]] | None = None
    for line, cells in _records(data, delimiter):
        if width is None:
            start, width = line + skipped, len(cells)
        elif ragged is not None:
            return _ragged(path, ragged, start, width, last=False)
        elif len(cells) != width:
            ragged = line + skipped, cells
    if ragged is not None:
        return _ragged(path, ragged, start, width, last=True)
    return UsageError(f"{path} cannot be read as a table ({str(error).splitlines()[0]}).")


def _ragged(
    path: Path, ragged: tuple[int, list[str]], start: int | None, width: int | None, *, last: bool
) -> UsageError:
    line, cells = ragged
    count = plural(len(cells), "column")
    hint = "; is the file cut off?" if last and len(cells) < (width or 0) else ""
    return UsageError(
        f"{path}, line {line}, column {len(cells)}: it ends after {count} ({quoted(cells[-1])})"
        f", but line {start} has {width}{hint or '.'}"
    )


def _refuse_open_quote(data: bytes, delimiter: str, path: Path, skipped: int) -> None:
    stream = io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace", newline="")
    limit = csv.field_size_limit(sys.maxsize)
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    line = 1
    try:
        for _ in reader:
            line = reader.line_num + 1
    except csv.Error as error:
        if "end of data" in str(error):
            raise UsageError(
                f"{path}, line {line + skipped}: a quotation mark is opened here and never closed; "
                "is the file cut off?"
            ) from error
        raise UsageError(
            f"{path}, line {reader.line_num + skipped}: a quotation mark inside a quoted cell must "
            "be written twice."
        ) from error
    finally:
        csv.field_size_limit(limit)
