"""Sheet: a table as it was read, with named columns and the position of each row in its file.

A column holds text or numbers, as the file has it; other modules decide what it is used for. Text
is trimmed, and ids have one spelling whatever the type in the file: 7, "7" and 7.0 are the same id.
An empty cell is a missing number, and the text "".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.errors import UsageError, near_misses
from kryograph.graph import Indices
from kryograph.text import quoted, quoted_list

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

_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
# Text that is meant as a number; those without a use (nan, inf) are refused by name.
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)$"
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

    path: Path
    columns: dict[str, Any]
    """Arrow arrays (see `text_column`) or `NumberColumn`, by name."""
    rows: int
    place: Callable[[int], str]
    """Returns the position of a row in the file, such as "line 7"."""
    decimal_comma: bool = field(default=False, kw_only=True)
    """Whether 1,5 is a number."""

    def __post_init__(self) -> None:
        self.names = tuple(self.columns)

    def fault(self, row: int, name: str, what: str) -> UsageError:
        """Build the error for a cell: file, line, column, and what is wrong."""
        return UsageError(f"{self.path}, {self.place(row)}, column {quoted(name)}: {what}.")

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
            raise self.fault(row, name, f"{self._cell(name, row)} is {fault}")
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
        numeric = pc.match_substring_regex(cells, _NUMBER)
        if not required and _count(numeric) < NUMERIC_SHARE * _count(filled):
            return None
        row = pc.index(pc.and_(filled, pc.invert(numeric)), True).as_py()
        if row >= 0:
            what = "is not a number; leave the cell empty if it is unknown"
            raise self.fault(row, name, f"{self._cell(name, row)} {what}")
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
                "nor text; leave it out with --ignore."
            ) from error
        return pc.utf8_trim_whitespace(pc.fill_null(column, ""))

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
    """E positive numbers; None if all edges have weight 1."""
    sheet: Sheet
    """Attributes of the nodes, a row for each node."""
    id: str | None = None
    """Name of the column of ids; None if the sheet has none."""
    label: str | None = None
    """Name of the column of labels; None if the file does not say which it is."""
    edge_names: tuple[str, ...] = ()
    """Names of the columns of the edge table."""
    masks: SplitMasks | None = None
    """Splits that the file holds; None if it has none."""
    notes: tuple[str, ...] = ()
