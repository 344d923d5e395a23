"""Block of vectors: columns of lists of equally many numbers, such as embeddings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

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
from kryograph.data.tables.sheet import RowNumbers
from kryograph.data.tables.vectors import read_vectors
from kryograph.graph import Features


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
