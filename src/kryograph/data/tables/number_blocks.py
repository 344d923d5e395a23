"""Blocks of numbers: counts of words, other numbers, and booleans."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.empty_cells import (
    empty_notes,
    empty_rows,
    mark_empty,
    mark_names,
    marked_shares,
    parse_shares,
)
from kryograph.data.tables.feature_blocks import FeatureBlock, parse_floats, parse_names
from kryograph.data.tables.node_table import NodeTable, column_statistics, stack_numbers
from kryograph.data.tables.sheet import Floats, NumberColumn, Sheet, without_zeros
from kryograph.graph import Features
from kryograph.sparse import row_normalise
from kryograph.text import plural, quoted, quoted_list

TRUE_WORDS = ("true", "yes", "1", "t", "y")
FALSE_WORDS = ("false", "no", "0", "f", "n")
"""Spellings of a boolean, whatever the case of their letters; TRUE_WORDS are the other value."""


@dataclass(frozen=True)
class Counts(FeatureBlock):
    """A bag of words: many columns of counts, divided by the sum of each row."""

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    means: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Mean of each column, which stands for an empty cell."""
    key = "counts"
    scaled = False
    parallel = ("names", "means")

    @classmethod
    def learn(cls, table: NodeTable) -> Counts:
        names = tuple(itertools.compress(table.of_kind("number"), table.bag_of_words))
        means, _ = column_statistics(table.numbers(names))
        return cls(names, parse_floats(means))

    def apply(self, table: NodeTable) -> Features:
        cells = table.numbers(self.names)
        empty = empty_rows(cells)
        table.notes += empty_notes(self.names, empty, "mean")
        _fill(cells, self.means)
        negative = np.flatnonzero(cells.data < 0)
        if negative.size:
            at = int(negative[0])
            column = int(np.searchsorted(cells.indptr, at, side="right")) - 1
            what = f"{cells.data[at]:g} is negative, but the model was trained on counts"
            raise table.sheet.fault(int(cells.indices[at]), self.names[column], what)
        return row_normalise(sp.csr_array(cells))


@dataclass(frozen=True)
class Standardised(FeatureBlock):
    """Columns that are read as numbers, each less its mean and divided by its deviation.

    An empty cell is the mean. A column with many empty cells has a second feature for them.
    """

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    means: tuple[float, ...] = field(metadata={"parse": parse_floats})
    deviations: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Standard deviations; 0 for a column whose values are equal, which becomes zeros."""
    empty_shares: tuple[float, ...] = field(metadata={"parse": parse_shares})
    """Share of empty cells, 0 if they are too few for a feature."""
    parallel = ("names", "means", "deviations", "empty_shares")

    @classmethod
    @abstractmethod
    def recognise(cls, table: NodeTable) -> tuple[str, ...]:
        """Names of the columns of this kind."""

    @classmethod
    @abstractmethod
    def read(cls, table: NodeTable, names: Sequence[str]) -> sp.csc_array:
        """Read columns as numbers: N × k, sparse, NaN where a cell is empty."""

    @classmethod
    def learn(cls, table: NodeTable) -> Self:
        names = cls.recognise(table)
        cells = cls.read(table, names)
        means, deviations = column_statistics(cells)
        shares = marked_shares(table.sheet.rows, empty_rows(cells))
        return cls(names, parse_floats(means), parse_floats(deviations), shares)

    @property
    def features(self) -> tuple[str, ...]:
        return (*self.names, *mark_names(self.names, self.empty_shares))

    def apply(self, table: NodeTable) -> Features:
        cells = self.read(table, self.names)
        empty = empty_rows(cells)
        table.notes += empty_notes(self.names, empty, "mean")
        _fill(cells, self.means)
        means, deviations = np.array(self.means), np.array(self.deviations)
        dense: Floats = cells.toarray()
        constant = [self.names[at] for at in np.flatnonzero(deviations == 0)]
        if constant:
            more = ", …" if len(constant) > 5 else ""
            table.notes.append(
                f"{plural(len(constant), 'column')} with one value only: "
                f"{quoted_list(constant[:5])}{more}."
            )
        dense -= means
        dense *= np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations != 0)
        if not any(self.empty_shares):
            return dense
        return np.hstack([dense, mark_empty(table.sheet.rows, empty, self.empty_shares)])


@dataclass(frozen=True)
class Numbers(Standardised):
    """Columns of numbers that are not a bag of words."""

    key = "numbers"

    @classmethod
    def recognise(cls, table: NodeTable) -> tuple[str, ...]:
        return tuple(itertools.compress(table.of_kind("number"), ~table.bag_of_words))

    @classmethod
    def read(cls, table: NodeTable, names: Sequence[str]) -> sp.csc_array:
        return table.numbers(names)


@dataclass(frozen=True)
class Booleans(Standardised):
    """Columns of true and false, yes and no, or 1 and 0, read as the numbers 1 and 0."""

    key = "booleans"

    @classmethod
    def recognise(cls, table: NodeTable) -> tuple[str, ...]:
        return table.of_kind("boolean")

    @classmethod
    def read(cls, table: NodeTable, names: Sequence[str]) -> sp.csc_array:
        columns = [boolean_numbers(table.sheet, name) for name in names]
        return stack_numbers(columns, table.sheet.rows)


def boolean_numbers(sheet: Sheet, name: str) -> NumberColumn:
    """Read a column of booleans as 1 and 0; a cell that is neither is an error."""
    cells = pc.utf8_lower(without_zeros(sheet.text(name))).combine_chunks()
    words = pa.array((*TRUE_WORDS, *FALSE_WORDS))
    codes = pc.index_in(cells, value_set=words).fill_null(-1).to_numpy()
    values = np.where(codes < len(TRUE_WORDS), 1.0, 0.0)
    values[codes < 0] = np.nan
    bad = (codes < 0) & ~np.asarray(pc.equal(cells, ""))
    if bad.any():
        row = int(bad.argmax())
        cell = quoted(sheet.text(name)[row].as_py())
        what = f"{cell} is neither true nor false; leave the cell empty if it is unknown"
        raise sheet.fault(row, name, what)
    return NumberColumn.from_dense(values)


def _fill(cells: sp.csc_array, means: Sequence[float]) -> None:
    """Put the mean of its column into each empty cell."""
    empty = np.isnan(cells.data)
    column = np.repeat(np.arange(len(means)), np.diff(cells.indptr))[empty]
    cells.data[empty] = np.array(means)[column]
