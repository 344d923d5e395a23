"""Tables of text: comma, tab or semicolon, quoted or not, with a header or without.

Arrow reads the whole file, every cell as text. If that fails, the file is read again, slowly, to
find the line with the error.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow

from kryograph.data.tables.formats import FILE_FORMATS, FileFormat, contents, encoding_fault
from kryograph.data.tables.networkx_files import is_edge_list, read_edge_list
from kryograph.data.tables.sheet import Sheet, repeated
from kryograph.errors import UsageError
from kryograph.text import plural, quoted, quoted_list

DELIMITERS = "\t;,"
"""The most reliable first: a comma may also be a decimal point or part of a sentence."""
DELIMITER_SAMPLE_LINES = 20
"""Number of records that decide what the delimiter is."""
CSV_BLOCK_BYTES = 8 << 20
_SPACED_QUOTE = rb'(?m)(^|[,;\t]) +"'
"""Space before a quotation mark; with it the mark would be part of the cell."""


@dataclass(frozen=True, eq=False)
class CsvTable:
    """All cells of a file; the first row may be a header or data."""

    path: Path
    delimiter: str
    first: tuple[str, ...]
    columns: list[Any]
    """Arrow arrays of text that include the first row."""
    spaces: bool

    @property
    def rows(self) -> int:
        """Number of rows, including the first."""
        return len(self.columns[0])

    def sheet(self, header: bool) -> Sheet:
        """Build the table; without a header its columns are called "1", "2" and so on."""
        names = [str(at + 1) for at in range(len(self.columns))]
        if header:
            if self.rows == 1:
                raise UsageError(f"{self.path} has a header, line {self.line(0)}, but no rows.")
            names = [name or f"column {at + 1}" for at, name in enumerate(self.first)]
            twice = repeated(names)
            if twice:
                raise UsageError(
                    f"{self.path}, line {self.line(0)}: {quoted_list(twice[:3])} stands more than "
                    "once; every column needs a name of its own."
                )
        start = int(header)
        return Sheet(
            self.path,
            dict(zip(names, (column.slice(start) for column in self.columns), strict=True)),
            self.rows - start,
            lambda row: f"line {self.line(row + start)}",
            decimal_comma=self.delimiter == ";",
        )

    def line(self, row: int) -> int:
        """Find the line on which a row starts, by reading the file again."""
        records = _text(self.path, self.spaces).records()
        return next(itertools.islice(records, row, None))[0]


def read_delimited(path: Path, *, spaces: bool = False) -> CsvTable:
    """Read a file.

    With `spaces`, cells may be separated by spaces and the file may start with lines of comment,
    marked by # or %, as in lists of edges.
    """
    text = _text(path, spaces)
    _, first = next(text.records(), (0, None))
    if first is None:
        raise UsageError(f"{path} is empty: it has nothing but blank lines.")
    if text.data.count(b'"') % 2:
        for _ in text.records(strict=True):
            pass  # finds the mark that is wrong
    names = tuple(cell.strip().lstrip("#").strip() for cell in first)
    return CsvTable(path, text.delimiter, names, text.columns(len(first)), spaces)


def read_edge_table(path: Path) -> CsvTable | Sheet:
    """Read a table of edges, which may be one that networkx wrote, or separated by spaces."""
    return read_edge_list(path) if is_edge_list(path) else read_delimited(path, spaces=True)


_FORMAT = FileFormat("table of text", read_delimited, read_edges=read_edge_table)
for _ending in ("csv", "tsv", "txt", "edgelist"):
    FILE_FORMATS.add(_ending, _FORMAT)


@dataclass(frozen=True)
class _Text:
    """Text of a table from its first row on, and the number of lines that stand before it."""

    path: Path
    data: bytes
    delimiter: str
    skipped: int = 0

    def records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield each row that is not blank, with its line; if `strict`, quotation marks count."""
        stream = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", errors="replace", newline="")
        limit = csv.field_size_limit(sys.maxsize)
        reader = csv.reader(stream, delimiter=self.delimiter, strict=strict)
        line = self.skipped + 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = self.skipped + reader.line_num + 1
        except csv.Error as error:
            what = "a quotation mark inside a quoted cell must be written twice."
            if "end of data" in str(error):
                what = "a quotation mark is opened here and never closed; is the file cut off?"
            else:
                line = self.skipped + reader.line_num
            raise UsageError(f"{self.path}, line {line}: {what}") from error
        finally:
            csv.field_size_limit(limit)

    def columns(self, width: int) -> list[Any]:
        """Read all cells as Arrow arrays of text."""
        try:
            try:
                table = self._read(width, CSV_BLOCK_BYTES)
            except pa.ArrowInvalid as error:
                if "straddl" not in str(error):
                    raise
                # A row is longer than a block.
                table = self._read(width, min(len(self.data) + 1, (1 << 31) - 1))
            if table.num_columns != width or table.num_rows == 0:
                raise pa.ArrowInvalid(f"{table.num_columns} columns instead of {width}")
        except (pa.ArrowException, OverflowError) as error:
            raise self._fault(error) from error
        return list(table.columns)

    def _read(self, width: int, block: int) -> Any:
        return arrow.read_csv(
            pa.BufferReader(self.data),
            arrow.ReadOptions(autogenerate_column_names=True, block_size=block),
            arrow.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=b'"' in self.data,
                ignore_empty_lines=True,
            ),
            arrow.ConvertOptions(
                column_types={f"f{at}": pa.string() for at in range(width)},
                strings_can_be_null=False,
            ),
        )

    def _fault(self, error: Exception) -> UsageError:
        """Build the error for a file that Arrow cannot read."""
        fault = encoding_fault(contents(self.path), self.path)
        if fault is not None:
            return fault
        records = self.records()
        start, first = next(records)
        line, cells = next((row for row in records if len(row[1]) != len(first)), (0, []))
        if not cells:
            reason = str(error).splitlines()[0]
            return UsageError(f"{self.path} cannot be read as a table ({reason}).")
        cut_off = len(cells) < len(first) and next(records, None) is None
        return UsageError(
            f"{self.path}, line {line}, column {len(cells)}: it ends after "
            f"{plural(len(cells), 'column')} ({quoted(cells[-1])}), but line {start} has "
            f"{len(first)}{'; is the file cut off?' if cut_off else '.'}"
        )


def _text(path: Path, spaces: bool) -> _Text:
    """Read a file, leave out lines of comment before the table, and recognise the delimiter."""
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
        if not _consistent(path, head, DELIMITERS) and _consistent(path, _tabs(head), "\t"):
            data = _tabs(data)
    if re.search(_SPACED_QUOTE, _head(data)):
        data = re.sub(_SPACED_QUOTE, rb'\1"', data)
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"
    # Rows of different lengths: the first one decides, and the others are errors.
    head = _head(data)
    first = head.lstrip().split(b"\n", 1)[0].decode(errors="replace")
    delimiter = _consistent(path, head, DELIMITERS) or max(",\t;", key=first.count)
    return _Text(path, data, delimiter, skipped)


def _tabs(data: bytes) -> bytes:
    """Replace every run of spaces by one tab."""
    return re.sub(rb"(?m)^\t|\t(?=\r?$)", b"", re.sub(rb"[ \t]+", b"\t", data))


def _head(data: bytes) -> bytes:
    """Return the first million bytes or so, in whole lines."""
    end = data.rfind(b"\n", 0, 1 << 20)
    return data if end < 0 else data[: end + 1]


def _consistent(path: Path, head: bytes, delimiters: str) -> str:
    """Find the delimiter that splits the first records into the most columns, equally many in each.

    Returns "" if no delimiter does.
    """
    best, most = "", 1
    for delimiter in delimiters:
        records = _Text(path, head, delimiter).records()
        widths = {len(cells) for _, cells in itertools.islice(records, DELIMITER_SAMPLE_LINES)}
        if len(widths) == 1 and max(widths) > most:
            best, most = delimiter, max(widths)
    return best
