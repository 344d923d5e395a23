"""EdgeAttributes: columns of the table of edges, added up for each node.

Edges count as they are listed: out of their source and into their target, a repeated edge as often
as it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.sheet import Floats, Sheet
from kryograph.graph import Indices

DIRECTIONS = ("out", "in")
"""Whether a node is the source or the target of an edge: row 0 or 1 of the pairs."""

AMOUNTS = ("sum", "mean", "count")
"""Numbers that are computed of the amounts at a node, for each direction."""


@dataclass(frozen=True, eq=False)
class EdgeAttributes:
    """The columns of a table of edges that become features of the nodes."""

    pairs: Indices
    """2 × E node numbers, as listed: sources and targets. A row with a negative number is an edge
    that is not in the graph."""
    sheet: Sheet
    """Table of the edges, E rows."""
    kinds: Mapping[str, str]
    """Kind of each column to learn from: "number", or "category" or "boolean" for types of edges.
    Columns of other kinds are not used. Empty if a recipe names the columns."""

    def __post_init__(self) -> None:
        if self.pairs.shape != (2, self.sheet.rows):
            raise ValueError("pairs and sheet must have the same number of edges")

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns to learn from."""
        return self.of_kind("number", "category", "boolean")

    def of_kind(self, *kinds: str) -> tuple[str, ...]:
        """Names of the columns of some kinds."""
        return tuple(name for name, some in self.kinds.items() if some in kinds)

    def types(self, name: str) -> dict[str, int]:
        """Count the edges of each type that a column names; empty cells are no type."""
        counts = pc.value_counts(self.sheet.keys(name).combine_chunks())
        return {
            value: count
            for value, count in zip(
                counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
            )
            if value
        }

    def amounts(self, name: str, nodes: int) -> Floats:
        """Compute `AMOUNTS` of a column of numbers for each node, first out, then in: N × 6.

        Each becomes sign(x) · log(1 + |x|). Empty cells are passed over; a node without an edge has
        zeros.
        """
        column = self.sheet.numbers(name, required=True)
        assert column is not None
        values = column.dense()
        used = ~np.isnan(values) & (self.pairs >= 0).all(axis=0)
        columns = []
        for ends in self.pairs[:, used]:
            total = np.bincount(ends, values[used], nodes)
            count = np.bincount(ends, minlength=nodes)
            columns += [total, total / np.maximum(count, 1), count]
        table = np.stack(columns, axis=1)
        return np.asarray(np.sign(table) * np.log1p(np.abs(table)))

    def type_counts(self, name: str, types: Sequence[str], nodes: int) -> sp.csr_array:
        """Compute log(1 + number of edges) of each type, first out, then in: N × 2 T, sparse."""
        codes = pc.index_in(self.sheet.keys(name), value_set=pa.array(types, type=pa.string()))
        numbers = codes.fill_null(-1).to_numpy()
        used = (numbers >= 0) & (self.pairs >= 0).all(axis=0)
        sources, targets = self.pairs[:, used]
        columns = np.concatenate([numbers[used], numbers[used] + len(types)])
        rows = np.concatenate([sources, targets])
        counts = sp.csr_array(
            (np.ones(rows.size), (rows, columns)), shape=(nodes, 2 * len(types))
        )  # repeated entries are added
        counts.sum_duplicates()
        counts.data = np.log1p(counts.data)
        return counts


def amount_names(name: str) -> tuple[str, ...]:
    """Names of the features that `EdgeAttributes.amounts` computes.

    >>> amount_names("amount")[0]
    'amount (sum, out)'
    """
    return tuple(f"{name} ({what}, {way})" for way in DIRECTIONS for what in AMOUNTS)


def type_names(name: str, types: Sequence[str]) -> tuple[str, ...]:
    """Names of the features that `EdgeAttributes.type_counts` computes.

    >>> type_names("currency", ["EUR"])
    ('currency = EUR (out)', 'currency = EUR (in)')
    """
    return tuple(f"{name} = {some} ({way})" for way in DIRECTIONS for some in types)
