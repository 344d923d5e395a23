"""NodeTable: a table of nodes whose features are to be made, and what is known of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.sheet import Floats, Mask, NumberColumn, Sheet
from kryograph.errors import UsageError
from kryograph.features import bag_columns
from kryograph.text import OnProgress, quoted

Cells = TypeVar("Cells")

FEW_CATEGORIES = 50
CATEGORY_SHARE = 0.1
MOST_CATEGORIES = 10_000
"""A column may have CATEGORY_SHARE times as many categories as rows; FEW_CATEGORIES are always
allowed, and more than MOST_CATEGORIES never."""


@dataclass(eq=False)
class NodeTable:
    """A table of nodes whose features are to be made."""

    sheet: Sheet
    ids: Sequence[str]
    kinds: Mapping[str, str]
    """Kind of each column to learn from, in the order of the features: "number", "boolean",
    "category", "date", "text" or "vector". Empty if a recipe names the columns."""
    edges: EdgeAttributes | None
    """Attributes of the edges; None if there are none."""
    progress: OnProgress
    notes: list[str] = field(default_factory=list)
    """Sentences on what was done; they are added here."""

    _parsed: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def parsed(self, name: str, parse: Callable[[Sheet, str], Cells]) -> Cells:
        """Parse a column, or return what was parsed before; it must not be changed."""
        if name not in self._parsed:
            self._parsed[name] = parse(self.sheet, name)
        cells: Cells = self._parsed[name]
        return cells

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Names of the columns of one kind."""
        return tuple(name for name, some in self.kinds.items() if some == kind)

    @cached_property
    def bag_of_words(self) -> Mask:
        """Marks the columns of numbers that are counts of words."""
        return bag_columns(self.numbers(self.of_kind("number")))

    def numbers(self, names: Sequence[str]) -> sp.csc_array:
        """Read columns of numbers: N × k, sparse, NaN where a cell is empty."""
        columns = []
        for at, name in enumerate(names):
            if at % 50 == 0:
                self.progress("features", at / len(names))
            column = self.sheet.numbers(name, required=True)
            assert column is not None
            columns.append(column)
        return stack_numbers(columns, self.sheet.rows)


def stack_numbers(columns: Sequence[NumberColumn], rows: int) -> sp.csc_array:
    """Put columns of numbers side by side: N × k, sparse, NaN where a cell is empty."""
    indptr = np.cumsum([0, *(column.rows.size for column in columns)])
    at = np.concatenate([np.empty(0, np.int32), *(column.rows for column in columns)])
    values = np.concatenate([np.empty(0), *(column.values for column in columns)])
    return sp.csc_array((values, at, indptr), shape=(rows, len(columns)))


def column_statistics(cells: sp.csc_array) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the filled cells of each column; 0 if all are empty.

    The deviation is exactly 0 if all filled cells are equal.
    """
    known = cells.copy()
    known.data = np.nan_to_num(cells.data)
    filled = cells.shape[0] - np.asarray((cells != cells).sum(axis=0))
    means = np.asarray(known.sum(axis=0)) / np.maximum(filled, 1)
    stored = np.diff(cells.indptr)
    known.data = np.nan_to_num((cells.data - np.repeat(means, stored)) ** 2)
    zeros = cells.shape[0] - stored
    squares = np.asarray(known.sum(axis=0)) + zeros * means**2
    constant = cells.nanmin(axis=0).toarray() == cells.nanmax(axis=0).toarray()
    return means, np.where(constant, 0.0, np.sqrt(squares / np.maximum(filled, 1)))


def too_many(sheet: Sheet) -> int:
    """Largest number of categories that a column of the table may have."""
    return int(min(max(FEW_CATEGORIES, CATEGORY_SHARE * sheet.rows), MOST_CATEGORIES))


def distinct(sheet: Sheet, name: str, most: int) -> tuple[str, ...] | None:
    """Return the values of a column, sorted, or None if there are more than `most`.

    It stops as soon as there are more, so that ten million values cost neither time nor memory.
    """
    values: set[str] = set()
    for chunk in sheet.text(name).chunks:
        for start in range(0, len(chunk), 1 << 16):
            values.update(pc.unique(chunk.slice(start, 1 << 16)).to_pylist())
            if len(values) > most + 1:
                return None
    names = set(pc.unique(sheet.keys(name)).to_pylist()) - {""}  # 7.0 may be 7
    return tuple(sorted(names)) if len(names) <= most else None


def categories(sheet: Sheet, name: str) -> tuple[str, ...]:
    """Return the values of a column of categories; too many of them are an error."""
    most = too_many(sheet)
    values = distinct(sheet, name, most)
    if values is None:
        raise UsageError(
            f"{sheet.path}, column {quoted(name)}: it has more than {most:,} different values, too "
            f"many for categories; read it as text with --text {name}, or leave it out with "
            f"--ignore {name}."
        )
    return values
