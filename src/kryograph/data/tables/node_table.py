"""NodeTable: a table of nodes whose features are to be made, and what is known of its columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.sheet import Floats, Mask, Sheet
from kryograph.errors import UsageError
from kryograph.features import bag_columns
from kryograph.text import OnProgress, plural, quoted

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
    progress: OnProgress
    text: tuple[str, ...] = ()
    """Columns that are read as text."""
    others: tuple[str, ...] = ()
    """Columns whose kind is to be recognised."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what was done; they are added here."""

    @cached_property
    def categorical(self) -> dict[str, tuple[str, ...]]:
        """Columns of `others` that do not hold numbers, with their categories."""
        values = {}
        for at, name in enumerate(self.others):
            if at % 50 == 0:
                self.progress("features", at / len(self.others))
            if self.sheet.numbers(name) is None:
                values[name] = categories(self.sheet, name)
        return values

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Columns of `others` that hold numbers."""
        return tuple(name for name in self.others if name not in self.categorical)

    @cached_property
    def bag_of_words(self) -> Mask:
        """Marks the columns of `numeric` that are counts."""
        return bag_columns(self.numbers(self.numeric))

    def numbers(self, names: Sequence[str]) -> sp.csc_array:
        """Read columns of numbers: N × k, sparse, NaN where a cell is empty."""
        columns = []
        for at, name in enumerate(names):
            if at % 50 == 0:
                self.progress("features", at / len(names))
            column = self.sheet.numbers(name, required=True)
            assert column is not None
            columns.append(column)
        indptr = np.cumsum([0, *(column.rows.size for column in columns)])
        rows = np.concatenate([np.empty(0, np.int32), *(column.rows for column in columns)])
        values = np.concatenate([np.empty(0), *(column.values for column in columns)])
        return sp.csc_array((values, rows, indptr), shape=(self.sheet.rows, len(names)))

    def filled_numbers(self, names: Sequence[str], means: Sequence[float]) -> sp.csc_array:
        """Read columns of numbers with the means in the empty cells, and add a note on that."""
        cells = self.numbers(names)
        empty = np.isnan(cells.data)
        column = np.repeat(np.arange(len(names)), np.diff(cells.indptr))[empty]
        cells.data[empty] = np.array(means)[column]
        at, counts = np.unique(column, return_counts=True)
        if at.size > 5:
            count = f"{column.size:,} empty cells in {at.size:,} columns"
            self.notes.append(f"{count} filled with the column's mean.")
        else:
            self.notes += [
                f"{plural(count, 'empty cell')} in column {quoted(names[number])} filled with its "
                "mean."
                for number, count in zip(at, counts, strict=True)
            ]
        return cells


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


def refuse_many_categories(sheet: Sheet, taken: Collection[str | None]) -> None:
    """Raise an error if a column that is not `taken` has too many categories."""
    for name in sheet.names:
        if name not in taken and sheet.numbers(name) is None:
            categories(sheet, name)
