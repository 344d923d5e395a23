"""Sheet: a table as it was read, with named columns and the position of each row in its file.

A column holds text or numbers, as the file has it; other modules decide what it is used for. Text
is trimmed, and ids have one spelling whatever the type in the file: 7, "7" and 7.0 are the same id.
An empty cell is a missing number, and the text "".
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.errors import UsageError, near_misses
from kryograph.graph import Indices
from kryograph.text import plural, quoted, quoted_list

Floats: TypeAlias = npt.NDArray[np.float64]
RowNumbers: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
SplitMasks: TypeAlias = tuple[Mask, Mask, Mask]
"""Training, validation and test nodes of K splits: three arrays, K × N."""

NUMERIC_SHARE = 0.9
"""A column of which at least this share of the filled cells are numbers is a column of numbers, and
its other cells are errors."""
LARGEST_WHOLE = 1e100
"""Means and squares of larger numbers would overflow."""

NUMBER_SPELLING = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)$"
"""Text that is meant as a number; those without a use (nan, inf) are refused by name."""

_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
_COMMA = r"(?i)^([+-]?\d*),(\d+(?:e[+-]?\d+)?)$"
_WHOLE = r"^([+-]?\d+)\.0+$"


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of `n` numbers: the rows whose cell is not zero, and their values.

    The value of an empty cell is NaN.
    """

    n: int
    rows: RowNumbers
    values: Floats

    @classmethod
    def from_dense(cls, values: Floats) -> NumberColumn:
        """Build a column from all its cells."""
        rows = np.flatnonzero(values).astype(np.int32)
        return cls(values.size, rows, values[rows])

    @property
    def missing(self) -> RowNumbers:
        """Rows whose cell is empty."""
        return self.rows[np.isnan(self.values)]

    def dense(self) -> Floats:
        """Build the array of all cells."""
        cells = np.zeros(self.n)
        cells[self.rows] = self.values
        return cells


@dataclass(eq=False)
class Sheet:
    """Named columns of equal length."""

    path: Path | str
    """File, or a name for the object that was passed."""
    columns: dict[str, Any]
    """Arrow arrays (see `text_column`) or `NumberColumn`, by name."""
    rows: int
    place: Callable[[int], str]
    """Returns the position of a row in the file, such as "line 7"."""
    decimal_comma: bool = field(default=False, kw_only=True)
    """Whether 1,5 is a number."""
    missing: tuple[str, ...] = field(default=(), kw_only=True)
    """Words that count as an empty cell."""

    def __post_init__(self) -> None:
        self.names = tuple(self.columns)

    @property
    def title(self) -> str:
        """Name of the file without its folders, or of the object that was passed."""
        return self.path.name if isinstance(self.path, Path) else self.path

    def arrow_type(self, name: str) -> Any:
        """Arrow type of a column; None if it is a `NumberColumn`."""
        column = self.columns[name]
        return None if isinstance(column, NumberColumn) else column.type

    def fault(self, row: int, name: str, what: str, more: int = 0) -> UsageError:
        """Build the error for a cell: file, line, column, and what is wrong.

        `more` is the number of further cells of the column with the same fault.
        """
        others = f" ({plural(more, 'more cell')} like this)" if more else ""
        return UsageError(f"{self.path}, {self.place(row)}, column {quoted(name)}: {what}{others}.")

    def with_empty_rows(self, places: Sequence[str]) -> Sheet:
        """Build a sheet with further rows whose cells are all empty; `places` are theirs."""
        more = len(places)

        def extended(column: Any) -> Any:
            if isinstance(column, NumberColumn):
                rows = np.arange(column.n, column.n + more, dtype=np.int32)
                values = np.concatenate([column.values, np.full(more, np.nan)])
                return NumberColumn(column.n + more, np.concatenate([column.rows, rows]), values)
            return pa.chunked_array([*column.chunks, pa.nulls(more, column.type)], column.type)

        return Sheet(
            self.path,
            {name: extended(column) for name, column in self.columns.items()},
            self.rows + more,
            lambda row: self.place(row) if row < self.rows else places[row - self.rows],
            decimal_comma=self.decimal_comma,
            missing=self.missing,
        )

    def require(self, name: str, what: str) -> str:
        """Return `name`; if there is no such column, raise an error with near misses."""
        if name in self.columns:
            return name
        raise UsageError(
            f"{self.path} has no column {quoted(name)}{what}{near_columns(name, self.names)}"
        )

    def numbers(self, name: str, *, required: bool = False) -> NumberColumn | None:
        """Parse a column of numbers; None if it is a column of text.

        A single cell of text in a column of numbers is an error; with `required` a column of text
        is one as well.
        """
        column = self.columns[name]
        if isinstance(column, NumberColumn):
            return column
        kind = column.type
        if pa.types.is_boolean(kind):
            column, kind = self.text(name), pa.string()
        parsed = None
        if is_text(kind):
            parsed = self._parsed(name, required)
        elif any(is_kind(kind) for is_kind in _NUMERIC):
            parsed = column.cast(pa.float64(), safe=False)
        elif required:
            raise UsageError(f"{self.path}, column {quoted(name)}: it holds {kind}, not numbers.")
        if parsed is None:
            return None
        values = np.asarray(parsed.to_numpy(), dtype=np.float64)  # NaN where a cell is empty
        with np.errstate(invalid="ignore"):
            bad = ~(np.abs(values) <= LARGEST_WHOLE) & ~np.asarray(parsed.is_null().to_numpy())
        if bad.any():
            row = int(bad.argmax())
            fault = "not a finite number; leave the cell empty if it is unknown"
            if np.isfinite(values[row]):
                fault = "too large a number"
            what = f"{self._cell(name, row)} is {fault}"
            raise self.fault(row, name, what, int(bad.sum()) - 1)
        numbers = NumberColumn.from_dense(values)
        self.columns[name] = numbers  # the text is not needed any more, and takes more room
        return numbers

    def _parsed(self, name: str, required: bool) -> Any:
        """Parse text as an Arrow array of numbers, null where empty; None if it is mostly text."""
        cells = self.text(name)
        if self.decimal_comma:
            cells = pc.replace_substring_regex(cells, _COMMA, r"\1.\2")
        filled = pc.not_equal(cells, "")
        try:
            return pc.if_else(filled, cells, None).cast(pa.float64())
        except pa.ArrowInvalid:
            pass  # some cell is not a number; which one, and whether it should be, is seen below
        # The first rows are enough to say no to most columns.
        some = cells.slice(0, math.ceil(1.1 * (1 - NUMERIC_SHARE) * len(cells)))
        words = _count(pc.not_equal(some, "")) - _count(
            pc.match_substring_regex(some, NUMBER_SPELLING)
        )
        if not required and words > (1 - NUMERIC_SHARE) * len(cells):
            return None
        numeric = pc.match_substring_regex(cells, NUMBER_SPELLING)
        if not required and _count(numeric) < NUMERIC_SHARE * _count(filled):
            return None
        bad = np.flatnonzero(np.asarray(pc.and_(filled, pc.invert(numeric))))
        if bad.size:
            row = int(bad[0])
            cell = cells[row].as_py()
            what = (
                f"{quoted(cell)} is not a number; {_repair(cell)}, or read the column as "
                f"--category {name}"
            )
            raise self.fault(row, name, what, bad.size - 1)
        values = [float(cell) if cell else None for cell in cells.to_pylist()]
        return pa.chunked_array([pa.array(values, type=pa.float64())])

    def text(self, name: str) -> Any:
        """Return a column as an Arrow array of trimmed text, "" where a cell is empty."""
        column = self.columns[name]
        if isinstance(column, NumberColumn):
            spelled = _whole(pa.array(column.dense())).cast(pa.string()).fill_null("")
            return pa.chunked_array([spelled])
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        try:
            if pa.types.is_boolean(kind):
                column = pc.if_else(column, "True", "False")
            elif pa.types.is_floating(kind):
                column = _whole(column.cast(pa.float64()))
            elif pa.types.is_nested(kind) or "binary" in str(kind):
                raise pa.ArrowInvalid(f"{kind} is not text")
            column = column.cast(pa.string())
        except pa.ArrowException as error:
            raise UsageError(
                f"{self.path}, column {quoted(name)}: it holds {kind}, which is neither numbers "
                f"nor text; leave it out with --ignore {name}."
            ) from error
        cells = pc.utf8_trim_whitespace(pc.fill_null(column, ""))
        if not self.missing:
            return cells
        empty = pc.is_in(cells, value_set=pa.array(self.missing, pa.string()))
        return pc.if_else(empty, "", cells) if pc.any(empty).as_py() else cells

    def keys(self, name: str) -> Any:
        """Return a column as text that names something: if every cell is like 7.0, it becomes 7."""
        return whole_keys(self.text(name))

    def _cell(self, name: str, row: int) -> str:
        return quoted(self.text(name)[row].as_py())


def text_column(cells: Sequence[str]) -> Any:
    """Build a column of text for a `Sheet`; an empty cell is ""."""
    return pa.chunked_array([pa.array(cells, type=pa.string())])


def whole_keys(cells: Any) -> Any:
    """Remove ".0" from the cells of an Arrow array of text if every filled one is like 7.0."""
    # The first rows are enough to say no to most columns.
    all_whole = all(
        _count(pc.match_substring_regex(some, _WHOLE)) == _count(pc.not_equal(some, ""))
        for some in (cells.slice(0, 100), cells)
    )
    return without_zeros(cells) if all_whole else cells


def without_zeros(cells: Any) -> Any:
    """Remove ".0" from the end of whole numbers in an Arrow array of text."""
    return pc.replace_substring_regex(cells, _WHOLE, r"\1")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def near_columns(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about a missing column: near misses and the columns there are.

    >>> near_columns("topc", ["id", "topic"])
    ": did you mean 'topic'? There are: 'id', 'topic'."
    """
    near = " or ".join(quoted(candidate) for candidate in near_misses(name, names))
    hint = f": did you mean {near}?" if near else "."
    if len(names) > 12:
        return f"{hint} There are {len(names):,} columns, the first {quoted_list(names[:3])}."
    return f"{hint} There are: {quoted_list(names)}."


def _repair(cell: str) -> str:
    """Advice on a cell of a column of numbers that is not a number."""
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", cell):
        return f"write it as {cell.replace(',', '')}"
    return f"if it stands for an empty cell, say --missing {shlex.quote(cell)}"


def _count(mask: Any) -> int:
    return pc.sum(mask).as_py() or 0


def _whole(column: Any) -> Any:
    """Cast floating-point numbers to integers if all of them are whole; NaN is an empty cell."""
    column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # a fraction, or too large
        return column


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Nodes and edges as files list them, before features are computed."""

    ids: tuple[str, ...]
    pairs: Indices
    """2 × E node numbers, as listed."""
    weights: Floats | None
    """E numbers, 0 or more; None if all edges have weight 1."""
    sheet: Sheet
    """Attributes of the nodes, a row for each node."""
    label: str | None = None
    """Name of the column of labels; None if the file does not say which it is."""
    masks: SplitMasks | None = None
    """Splits that the file holds; None if it has none."""
    known: Mask | None = None
    """Training nodes, N; None if the file does not say. Other labels are not for training."""
    edges: Sheet | None = None
    """Attributes of the edges, a row for each edge; None if there are none."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Names of what the file has beyond that, each with the reason why it is not read."""
    notes: tuple[str, ...] = ()
