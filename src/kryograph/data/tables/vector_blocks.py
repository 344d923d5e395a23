"""Block of vectors: columns of lists of equally many numbers, such as embeddings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kryograph.data.tables.empty_cells import (
    empty_notes,
    mark_empty,
    mark_names,
    marked_shares,
    parse_shares,
)
from kryograph.data.tables.feature_blocks import (
    FeatureBlock,
    parse_float_lists,
    parse_floats,
    parse_names,
)
from kryograph.data.tables.node_table import NodeTable
from kryograph.data.tables.sheet import Floats, NumberColumn, RowNumbers, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import plural, quoted


@dataclass(frozen=True)
class Vectors(FeatureBlock):
    """Columns of vectors, each less its mean; an empty cell is the mean.

    The numbers of a column share one scale, so that the angles between vectors stay what they are.
    """

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    centres: tuple[tuple[float, ...], ...] = field(metadata={"parse": parse_float_lists})
    """Mean vector of each column."""
    lengths: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Root of the mean squared distance from the centre; 0 if all vectors of a column are equal."""
    empty_shares: tuple[float, ...] = field(metadata={"parse": parse_shares})
    """Share of empty cells, 0 if they are too few for a feature."""
    key = "vectors"
    parallel = ("names", "centres", "lengths", "empty_shares")

    @classmethod
    def learn(cls, table: NodeTable) -> Vectors:
        names = table.of_kind("vector")
        centres, lengths = [], []
        empty: list[RowNumbers] = []
        for name in names:
            vectors, missing = table.parsed(name, read_vectors)
            known = np.delete(vectors, missing, axis=0) if missing.size else vectors
            centre, constant = known.mean(axis=0), bool((known == known[0]).all())
            centres.append(tuple(centre.tolist()))
            lengths.append(0.0 if constant else float(np.sqrt(known.var(axis=0).sum())))
            empty.append(missing)
        shares = marked_shares(table.sheet.rows, empty)
        return cls(names, tuple(centres), parse_floats(lengths), shares)

    @property
    def features(self) -> tuple[str, ...]:
        entries = (
            f"{name}[{at}]"
            for name, centre in zip(self.names, self.centres, strict=True)
            for at in range(len(centre))
        )
        return (*entries, *mark_names(self.names, self.empty_shares))

    def apply(self, table: NodeTable) -> Features:
        parts = [np.zeros((table.sheet.rows, 0))]
        empty: list[RowNumbers] = []
        for name, centre, length in zip(self.names, self.centres, self.lengths, strict=True):
            vectors, missing = table.parsed(name, partial(read_vectors, width=len(centre)))
            vectors = (vectors - centre) * (1 / length if length > 0 else 0.0)
            vectors[missing] = 0.0
            parts.append(vectors)
            empty.append(missing)
        table.notes += empty_notes(self.names, empty, "mean")
        parts.append(mark_empty(table.sheet.rows, empty, self.empty_shares))
        return np.concatenate(parts, axis=1)


def read_vectors(sheet: Sheet, name: str, width: int | None = None) -> tuple[Floats, RowNumbers]:
    """Read a column of lists: N × d numbers, 0 where a cell is empty, and the rows of empty cells.

    All lists must have the length `width`, or that of the first one if it is None.
    """
    column = sheet.columns[name]
    kind = "numbers" if isinstance(column, NumberColumn) else column.type
    if not is_vector(kind):
        raise UsageError(f"{sheet.path}, column {quoted(name)}: it holds {kind}, not vectors.")
    column = column.combine_chunks()
    empty = np.asarray(column.is_null())
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), -1))
    filled = np.flatnonzero(~empty)
    trained = width is not None
    if width is None:
        width = int(lengths[filled[0]]) if filled.size else 0
    unequal = filled[lengths[filled] != width]
    if unequal.size:
        row = int(unequal[0])
        others = (
            "the model was trained on" if trained else f"that of {sheet.place(int(filled[0]))} has"
        )
        what = f"the list has {plural(int(lengths[row]), 'number')}, but {others} {width:,}"
        raise sheet.fault(row, name, what)
    numbers = pc.list_flatten(column).cast(pa.float64(), safe=False)
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row, at = int(filled[bad[0] // width]), int(bad[0] % width)
        what = f"number {at} of the list is empty or not finite; leave the whole cell empty"
        raise sheet.fault(row, name, f"{what} if the vector is unknown")
    vectors = np.zeros((sheet.rows, width))
    vectors[filled] = values.reshape(-1, width)
    return vectors, np.flatnonzero(empty).astype(np.int32)


def is_vector(kind: Any) -> bool:
    """Whether an Arrow type is a list of numbers."""
    is_list = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(kind) for is_kind in is_list):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))
