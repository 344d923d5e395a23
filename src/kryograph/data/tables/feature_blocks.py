"""FeatureBlock: columns of one kind, how they become features, and how that is stored as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.sheet import Floats
from kryograph.graph import Features


def parse_names(value: Any) -> tuple[str, ...]:
    """Check a list of names that was read from JSON."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError("a list of names was expected")
    return tuple(value)


def parse_floats(value: Any) -> tuple[float, ...]:
    """Check a list of finite numbers."""
    values = tuple(float(number) for number in value)
    if not np.all(np.isfinite(values)):
        raise ValueError("a number is not finite")
    return values


def parse_float_lists(value: Any) -> tuple[tuple[float, ...], ...]:
    """Check a list of lists of finite numbers."""
    return tuple(parse_floats(row) for row in value)


def parse_categories(value: Any) -> dict[str, tuple[str, ...]]:
    """Check the values of columns of categories: a list of columns, each [name, values]."""
    values = {str(name): parse_names(some) for name, some in value}
    if len(values) < len(value):
        raise ValueError("a column is listed twice")
    return values


@dataclass(frozen=True)
class FeatureBlock(ABC):
    """Columns of one kind. The fields are stored under their own names in the recipe."""

    key: ClassVar[str]
    """Name of the block in the recipe."""
    scaled: ClassVar[bool] = True
    """Whether the features are multiplied by a factor, so that no block outweighs another."""
    parallel: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that must have equally many entries."""

    @classmethod
    @abstractmethod
    def learn(cls, table: NodeTable) -> FeatureBlock:
        """Take the columns of this kind from a table, and learn from them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are used; by default those in the first field."""
        return tuple(getattr(self, fields(self)[0].name))

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """Names of the columns of the table of edges that are used; by default none."""
        return ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, such as "colour = red"; by default those of the columns."""
        return self.columns

    @abstractmethod
    def apply(self, table: NodeTable) -> Features:
        """Make the features, a new N × k matrix, of a table that has the columns.

        Notes on what was done are added to the table.
        """

    def to_json(self) -> dict[str, Any]:
        """Return the fields as lists."""
        return {part.name: _as_list(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def from_json(cls, values: Any) -> FeatureBlock:
        """Read what `to_json` returned; raises a KeyError, TypeError or ValueError otherwise."""
        block = cls(**{f.name: f.metadata["parse"](values[f.name]) for f in fields(cls)})
        if len({len(getattr(block, name)) for name in block.parallel}) > 1:
            raise ValueError("its lists do not match")
        return block


def _as_list(value: Any) -> list[Any]:
    entries = value.items() if isinstance(value, dict) else value
    return [_as_list(entry) if isinstance(entry, tuple) else entry for entry in entries]


def no_features(rows: int) -> sp.csr_array:
    """Build the features of a block without columns, N × 0."""
    return sp.csr_array((rows, 0), dtype=np.float64)


def one_hot(cells: Any, values: Sequence[str]) -> sp.csr_array:
    """Mark the value of each cell of an Arrow array of text: N × values; others have no mark."""
    codes = pc.index_in(cells, value_set=pa.array(values, type=pa.string())).fill_null(-1)
    number = codes.to_numpy()
    rows = np.flatnonzero(number >= 0)
    shape = (len(cells), len(values))
    return sp.csr_array((np.ones(rows.size), (rows, number[rows])), shape=shape)


def stack_columns(parts: Sequence[Features]) -> Features:
    """Put blocks side by side; sparse if that takes less memory."""
    some = [part for part in parts if part.shape[1]]
    if not some:
        return parts[0]
    rows, width = some[0].shape[0], sum(part.shape[1] for part in some)
    stored = sum(
        int(part.nnz if isinstance(part, sp.csr_array) else np.count_nonzero(part)) for part in some
    )
    if stored * 12 + rows * 4 < rows * width * 8:
        return stack_sparse(some)
    return np.hstack([part.toarray() if isinstance(part, sp.csr_array) else part for part in some])


def stack_sparse(parts: Sequence[Features]) -> sp.csr_array:
    """Put blocks side by side in a sparse matrix; scipy's hstack takes twice the memory."""
    rows = parts[0].shape[0]
    counts = [
        np.diff(part.indptr) if isinstance(part, sp.csr_array) else np.count_nonzero(part, axis=1)
        for part in parts
    ]
    indptr = np.concatenate([[0], np.cumsum(sum(counts, np.zeros(rows, np.int64)))])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    free, first = indptr[:-1].copy(), 0
    for part, count in zip(parts, counts, strict=True):
        block = _as_csr(part)
        places = np.repeat(free - block.indptr[:-1], count) + np.arange(block.nnz)
        indices[places] = block.indices + first
        data[places] = block.data
        free += count
        first += part.shape[1]
    return sp.csr_array((data, indices, indptr), shape=(rows, first))


def row_lengths(x: Features) -> Floats:
    """Euclidean length of each row, N."""
    if isinstance(x, sp.csr_array):
        squares = sp.csr_array((x.data**2, x.indices, x.indptr), shape=x.shape)
        return np.asarray(np.sqrt(squares.sum(axis=1)))
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", x, x)))


def _as_csr(part: Features) -> sp.csr_array:
    """Convert a matrix; scipy would list the position of each entry in between."""
    if isinstance(part, sp.csr_array):
        return part
    filled = part != 0
    indptr = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    columns = np.broadcast_to(np.arange(part.shape[1], dtype=np.int32), part.shape)
    return sp.csr_array((part[filled], columns[filled], indptr), shape=part.shape)
