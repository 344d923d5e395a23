"""Sheet: a table as it was read, its columns by name, and where each of its rows stands.

A column is text or numbers, as the file has it; what it is used for is decided elsewhere. Text that
is asked for comes trimmed, and in one spelling whatever the file's type was: 7, "7" and 7.0 are
the same id. An empty cell is a missing number, and the text "".

RawGraph: what files say of a graph, before features are made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kryograph.errors import UsageError, near_misses
from kryograph.graph import Indices
from kryograph.text import quoted, quoted_list

Floats: TypeAlias = npt.NDArray[np.float64]
RowNumbers: TypeAlias = npt.NDArray[np.int32]

NUMERIC = 0.9
"""From this share of its given cells on a column is one of numbers, and the others are mistakes."""
LARGEST_WHOLE = 1e100
"""Means and squares of larger numbers would overflow."""

# What is meant as a number; those that are none of use (nan, inf) are refused by name.
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)$"
_COMMA = r"(?i)^([+-]?\d*),(\d+(?:e[+-]?\d+)?)$"
_WHOLE = r"^[+-]?\d+\.0+$"


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers: its non-zero cells, and the rows that were empty."""

    n: int
    rows: RowNumbers
    values: Floats
    missing: RowNumbers

    @classmethod
    def from_dense(
        cls, values: Floats, missing: npt.NDArray[np.bool_] | None = None
    ) -> NumberColumn:
        """From all cells; what stands in an empty one does not matter."""
        if missing is None:
            missing = np.zeros(values.size, dtype=bool)
        rows = np.flatnonzero((values != 0) & ~missing).astype(np.int32)
        return cls(values.size, rows, values[rows], np.flatnonzero(missing).astype(np.int32))


class Sheet:
    """Named columns of equal length.

    Args:
        path: The file, for messages.
        columns: Arrow arrays, or `NumberColumn`.
        rows: How many rows there are.
        place: Where a row stands in the file, as "line 7".
        decimal_comma: Whether 1,5 is a number.
    """

    def __init__(
        self,
        path: Path,
        columns: dict[str, Any],
        rows: int,
        place: Callable[[int], str],
        *,
        decimal_comma: bool = False,
    ) -> None:
        self.path = path
        self.rows = rows
        self.names = tuple(columns)
        self._columns = columns
        self._place = place
        self._decimal_comma = decimal_comma

    def fault(self, row: int, name: str | None, what: str) -> UsageError:
        """An error about one cell, or one row: file, line, column, and what is wrong."""
        column = "" if name is None else f", column {quoted(name)}"
        return UsageError(f"{self.path}, {self._place(row)}{column}: {what}.")

    def place(self, row: int) -> str:
        """Where a row stands in the file."""
        return self._place(row)

    def require(self, name: str, what: str) -> str:
        """The name again, if there is such a column; else an error with the near misses."""
        if name in self._columns:
            return name
        raise UsageError(
            f"{self.path} has no column {quoted(name)}{what}{near_columns(name, self.names)}"
        )

    def numbers(self, name: str, *, required: bool = False) -> NumberColumn | None:
        """A column of numbers, or None if it is one of text; a cell that is neither is an error.

        With `required` a column of text is an error as well.
        """
        import pyarrow as pa

        column = self._columns[name]
        if isinstance(column, NumberColumn):
            return column
        kind = column.type
        if pa.types.is_boolean(kind):
            column, kind = self.text(name), pa.string()
        if is_text(kind):
            found = self._parsed(name, required)
        elif (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_null(kind)
        ):
            found = column.cast(pa.float64(), safe=False)
        elif required:
            raise UsageError(f"{self.path}, column {quoted(name)}: it holds {kind}, not numbers.")
        else:
            return None
        if found is None:
            return None
        values = np.asarray(found.to_numpy(), dtype=np.float64)
        missing = np.asarray(found.is_null().to_numpy())
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~(np.abs(values) <= LARGEST_WHOLE) & ~missing)
        if bad.size:
            cell, row = self._cell(name, int(bad[0])), int(bad[0])
            if np.isfinite(values[row]):
                raise self.fault(row, name, f"{cell} is too large a number")
            raise self.fault(
                row, name, f"{cell} is not a finite number; leave the cell empty if it is unknown"
            )
        parsed = NumberColumn.from_dense(values, missing)
        self._columns[name] = parsed  # the text is not needed any more, and takes more room
        return parsed

    def _parsed(self, name: str, required: bool) -> Any:
        """An Arrow array of numbers, null where empty, or None if most cells are something else."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = self.text(name)
        if self._decimal_comma:
            cells = pc.replace_substring_regex(cells, _COMMA, r"\1.\2")
        given = pc.not_equal(cells, "")
        try:
            return pc.if_else(given, cells, None).cast(pa.float64())
        except pa.ArrowInvalid:
            pass  # some cell is no number; which one, and whether it should be, is seen below
        alike = pc.match_substring_regex(cells, _NUMBER)
        if not required and _count(alike) < NUMERIC * _count(given):
            return None
        row = _first(pc.and_(given, pc.invert(alike)))
        if row is not None:
            raise self.fault(
                row,
                name,
                f"{self._cell(name, row)} is not a number; leave the cell empty if it is unknown",
            )
        values = [float(cell) if cell else None for cell in cells.to_pylist()]
        return pa.chunked_array([pa.array(values, type=pa.float64())])

    def text(self, name: str) -> Any:
        """A column as an Arrow array of trimmed text, "" where a cell is empty."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._columns[name]
        if isinstance(column, NumberColumn):
            return pa.chunked_array([_spelled(column)])
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
                "nor "
                "text; leave it out with --ignore."
            ) from error
        return pc.utf8_trim_whitespace(pc.fill_null(column, ""))

    def keys(self, name: str) -> Any:
        """Text that names something: if all of it is 7.0 and the like, it is 7 that was meant."""
        cells = self.text(name)
        return whole_names(cells) if all_whole(cells) else cells

    def _cell(self, name: str, row: int) -> str:
        return quoted(self.text(name)[row].as_py())


def all_whole(cells: Any) -> bool:
    """Whether every cell that is given is a whole number written with a point, as 7.0."""
    import pyarrow.compute as pc

    # One look is enough to say no to most columns.
    return all(
        _count(pc.match_substring_regex(some, _WHOLE)) == _count(pc.not_equal(some, ""))
        for some in (cells.slice(0, 100), cells)
    )


def whole_names(cells: Any) -> Any:
    """The same without .0 at the end."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(cells, r"^([+-]?\d+)\.0+$", r"\1")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def near_columns(name: str, names: Sequence[str]) -> str:
    """The end of a sentence about a name that does not exist: what was perhaps meant.

    >>> near_columns("topc", ["id", "topic"])
    ": did you mean 'topic'? There are: 'id', 'topic'."
    """
    near = " or ".join(quoted(candidate) for candidate in near_misses(name, names))
    hint = f": did you mean {near}?" if near else "."
    if len(names) > 12:
        return f"{hint} There are {len(names):,} columns, the first {quoted_list(names[:3])}."
    return f"{hint} There are: {quoted_list(names)}."


def _count(mask: Any) -> int:
    import pyarrow.compute as pc

    return pc.sum(mask).as_py() or 0


def _first(mask: Any) -> int | None:
    """The first row that is true."""
    import pyarrow.compute as pc

    row: int = pc.index(mask, True).as_py()
    return None if row < 0 else row


def _whole(column: Any) -> Any:
    """Floating-point numbers as integers if all of them are; NaN is an empty cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # a fraction, or too large
        return column


def _spelled(column: NumberColumn) -> Any:
    import pyarrow as pa

    dense = np.zeros(column.n)
    dense[column.rows] = column.values
    mask = np.zeros(column.n, dtype=bool)
    mask[column.missing] = True
    return _whole(pa.array(dense, mask=mask)).cast(pa.string()).fill_null("")


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Nodes, edges, and what is known of the nodes."""

    ids: tuple[str, ...]
    pairs: Indices
    """2 × E node numbers, as listed."""
    weights: Floats | None
    sheet: Sheet
    """A row for each node."""
    id: str | None = None
    """The column of ids, if the sheet has one."""
    label: str | None = None
    """The column of labels, if the file says which it is."""
    edge_names: tuple[str, ...] = ()
    """The columns of the edge table, if there is one."""
    notes: tuple[str, ...] = ()
