"""Empty cells: what they are filled with is told, and a column with many has a feature for them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from kryograph.data.tables.sheet import Floats, RowNumbers
from kryograph.text import plural, quoted

MARKED_SHARE = 0.05
"""A column of which at least this share of the cells is empty has a feature that marks them."""


def empty_rows(cells: sp.csc_array) -> list[RowNumbers]:
    """Row numbers of the empty cells (NaN) of each column."""
    empty = np.flatnonzero(np.isnan(cells.data))
    ends = np.searchsorted(empty, cells.indptr)
    rows = cells.indices[empty]
    return [rows[start:end] for start, end in itertools.pairwise(ends)]


def marked_shares(rows: int, empty: Sequence[RowNumbers]) -> tuple[float, ...]:
    """Share of the cells of each column that are empty; 0 if they are too few to be marked."""
    shares = [some.size / rows for some in empty]
    return tuple(share if MARKED_SHARE <= share < 1 else 0.0 for share in shares)


def mark_empty(rows: int, empty: Sequence[RowNumbers], shares: Sequence[float]) -> Floats:
    """Mark the empty cells of each column with a share above 0: N × k, standardised by the share.

    With the share p that was learned, an empty cell is √((1 − p) / p), another −√(p / (1 − p)).
    """
    marked = [(some, share) for some, share in zip(empty, shares, strict=True) if share > 0]
    marks = np.empty((rows, len(marked)))
    for at, (some, share) in enumerate(marked):
        marks[:, at] = -np.sqrt(share / (1 - share))
        marks[some, at] = np.sqrt((1 - share) / share)
    return marks


def mark_names(columns: Sequence[str], shares: Sequence[float]) -> tuple[str, ...]:
    """Names of the features that `mark_empty` makes."""
    pairs = zip(columns, shares, strict=True)
    return tuple(f"{name} is empty" for name, share in pairs if share > 0)


def parse_shares(value: Sequence[float]) -> tuple[float, ...]:
    """Check shares that were read from JSON: at least 0 and below 1."""
    shares = tuple(float(share) for share in value)
    if not all(0 <= share < 1 for share in shares):
        raise ValueError("a share is not between 0 and 1")
    return shares


def empty_notes(columns: Sequence[str], empty: Sequence[RowNumbers], filling: str) -> list[str]:
    """Build the sentences on empty cells; `filling` is what they hold now, such as "mean"."""
    counts = {name: some.size for name, some in zip(columns, empty, strict=True) if some.size}
    if len(counts) > 5:
        count = f"{sum(counts.values()):,} empty cells in {len(counts):,} columns"
        return [f"{count} filled with the column's {filling}."]
    return [
        f"{plural(count, 'empty cell')} in column {quoted(name)} filled with its {filling}."
        for name, count in counts.items()
    ]
