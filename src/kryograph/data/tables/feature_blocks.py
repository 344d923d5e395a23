"""What is done to features before any system sees them.

The blocks that features are made of: numbers, counts, categories, words, the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.data.tables.sheet import Floats, NumberColumn, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import plural, quoted, quoted_list


def row_normalise(features: sp.csr_array) -> sp.csr_array:
    """Each row divided by its sum; a row that sums to zero stays as it is.

    >>> row_normalise(sp.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    sums = np.asarray(features.sum(axis=1), dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.ones_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ features)


Mask: TypeAlias = npt.NDArray[np.bool_]

FEW_CATEGORIES = 50
CATEGORY_SHARE = 0.1
MOST_CATEGORIES = 10_000
MOST_WORDS = 20_000


@dataclass(frozen=True, eq=False)
class NumberBlock:
    """Columns of numbers: n × k with an entry for every non-zero cell, and which were empty."""

    names: tuple[str, ...]
    matrix: sp.csc_array
    missing: sp.csc_array
    """1 where a cell was empty."""

    def take(self, mask: Mask) -> NumberBlock:
        """Some of the columns."""
        names = tuple(name for name, kept in zip(self.names, mask, strict=True) if kept)
        return NumberBlock(names, self.matrix[:, mask], self.missing[:, mask])

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.matrix.shape[0])

    @property
    def given(self) -> Floats:
        """How many cells of each column are not empty."""
        empty: Floats = np.diff(self.missing.indptr).astype(np.float64)
        return self.rows - empty

    def zeros(self) -> Floats:
        """The share of zeros in each column."""
        stored: Floats = np.diff(self.matrix.indptr).astype(np.float64)
        return (self.given - stored) / self.rows

    def _extreme(self, best: np.ufunc) -> Floats:
        """The smallest or largest cell that is given, zeros included."""
        stored = np.diff(self.matrix.indptr)
        found = np.zeros(stored.size)
        full = np.flatnonzero(stored)
        if full.size:
            found[full] = best.reduceat(self.matrix.data, self.matrix.indptr[full])
        return np.where(stored < self.given, best(found, 0), found)

    def smallest(self) -> Floats:
        """Of each column."""
        return self._extreme(np.minimum)

    def largest(self) -> Floats:
        """Of each column."""
        return self._extreme(np.maximum)

    def means(self) -> Floats:
        """Of the cells that are given; 0 if none is."""
        return np.asarray(self.matrix.sum(axis=0)) / np.maximum(self.given, 1)

    def deviations(self) -> Floats:
        """Of the cells that are given; 0 for a column that is constant, without rounding."""
        means, given = self.means(), self.given
        apart = self.matrix.copy()
        apart.data = (apart.data - np.repeat(means, np.diff(apart.indptr))) ** 2
        zeros = given - np.diff(apart.indptr)
        squares = np.asarray(apart.sum(axis=0)) + zeros * means**2
        found = np.sqrt(squares / np.maximum(given, 1))
        return np.where(self.smallest() == self.largest(), 0.0, found)

    def filled_note(self) -> list[str]:
        """How many empty cells there are, in a sentence."""
        empty = np.diff(self.missing.indptr)
        where = np.flatnonzero(empty)
        if where.size > 5:
            return [
                f"{empty.sum():,} empty cells in {where.size:,} columns filled with the column's "
                "mean."
            ]
        return [
            f"{plural(empty[at], 'empty cell')} in column {quoted(self.names[at])} filled with "
            "its "
            "mean."
            for at in where
        ]


def read_numbers(
    sheet: Sheet, names: Sequence[str], progress: Callable[[str, float], None]
) -> NumberBlock:
    """Some columns of a table, all of which must be numbers."""
    found: list[NumberColumn] = []
    for at, name in enumerate(names):
        if at % 50 == 0:
            progress("features", at / len(names))
        cells = sheet.numbers(name, required=True)
        assert cells is not None
        found.append(cells)
    shape = (sheet.rows, len(names))

    def csc(rows: list[npt.NDArray[np.int32]], values: Floats) -> sp.csc_array:
        indptr = np.cumsum([0, *(some.size for some in rows)])
        indices = np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)
        return sp.csc_array((values, indices, indptr), shape=shape)

    values = np.concatenate([column.values for column in found]) if found else np.empty(0)
    empty = [column.missing for column in found]
    return NumberBlock(
        tuple(names),
        csc([column.rows for column in found], values),
        csc(empty, np.ones(sum(some.size for some in empty))),
    )


def _filled(numbers: NumberBlock, means: Floats) -> sp.csc_array:
    if numbers.missing.nnz == 0:
        return numbers.matrix
    return numbers.matrix + numbers.missing @ sp.diags_array(means).tocsc()


def counts(sheet: Sheet, numbers: NumberBlock, means: Floats, notes: list[str]) -> sp.csr_array:
    """Each row divided by its sum, as the words of the citation graphs are."""
    negative = np.flatnonzero(numbers.matrix.data < 0)
    if negative.size:
        at = int(negative[0])
        column = int(np.searchsorted(numbers.matrix.indptr, at, side="right")) - 1
        value = numbers.matrix.data[at]
        row = int(numbers.matrix.indices[at])
        what = f"{value:g} is negative, but the model was trained on counts"
        raise sheet.fault(row, numbers.names[column], what)
    notes += numbers.filled_note()
    return row_normalise(sp.csr_array(_filled(numbers, means)))


def standardised(
    numbers: NumberBlock, means: Floats, deviations: Floats, notes: list[str]
) -> npt.NDArray[np.float64]:
    """Each column less its mean, divided by its deviation; a constant one becomes zeros."""
    notes += numbers.filled_note()
    constant = [name for name, d in zip(numbers.names, deviations, strict=True) if d == 0]
    if constant:
        more = ", …" if len(constant) > 5 else ""
        notes.append(
            f"{plural(len(constant), 'column')} with one value only: "
            f"{quoted_list(constant[:5])}{more}."
        )
    dense: npt.NDArray[np.float64] = _filled(numbers, means).toarray()
    dense -= means
    dense *= np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations != 0)
    return dense


def too_many(sheet: Sheet) -> int:
    """More categories than this make no features."""
    return int(min(max(FEW_CATEGORIES, CATEGORY_SHARE * sheet.rows), MOST_CATEGORIES))


def distinct(sheet: Sheet, name: str, most: int) -> tuple[str, ...] | None:
    """The values of a column, sorted, or None if they are more than `most`.

    Stops as soon as that is known, so that ten million of them cost neither time nor memory.
    """
    import pyarrow.compute as pc

    found: set[str] = set()
    for chunk in sheet.text(name).chunks:
        for start in range(0, len(chunk), 1 << 16):
            found.update(pc.unique(chunk.slice(start, 1 << 16)).to_pylist())
            if len(found) > most + 1:
                return None
    if len(found) <= most + 1:  # 7.0 may be 7
        found = set(pc.unique(sheet.keys(name)).to_pylist())
    found.discard("")
    return tuple(sorted(found)) if len(found) <= most else None


def categories(sheet: Sheet, name: str) -> tuple[str, ...]:
    """The values of a column, each of which becomes a feature."""
    most = too_many(sheet)
    found = distinct(sheet, name, most)
    if found is None:
        raise UsageError(
            f"{sheet.path}, column {quoted(name)}: it has more than {most:,} different values, too "
            f"many for categories; read it as text with --text {name}, or leave it out with "
            f"--ignore {name}."
        )
    return found


def refuse_many_categories(sheet: Sheet, taken: Collection[str | None]) -> None:
    """Raise an error if a column that is not taken has too many categories."""
    for name in sheet.names:
        if name not in taken and sheet.numbers(name) is None:
            categories(sheet, name)


def one_hot(sheet: Sheet, columns: Mapping[str, tuple[str, ...]], notes: list[str]) -> sp.csr_array:
    """A column for every category; a cell that is empty or unheard of has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = []
    for name, values in columns.items():
        cells = sheet.keys(name)
        codes = pc.index_in(cells, value_set=pa.array(values, type=pa.string())).fill_null(-1)
        number = np.asarray(codes.to_numpy())
        rows = np.flatnonzero(number >= 0)
        shape = (sheet.rows, len(values))
        made.append(sp.csr_array((np.ones(rows.size), (rows, number[rows])), shape=shape))
        empty = pc.sum(pc.equal(cells, "")).as_py() or 0
        unseen = sheet.rows - rows.size - empty
        if empty:
            notes.append(f"{plural(empty, 'empty cell')} in column {quoted(name)}.")
        if unseen:
            notes.append(
                f"{plural(unseen, 'cell')} in column {quoted(name)} with a category that the "
                "model "
                "has not seen, ignored."
            )
    return sp.hstack(made, format="csr") if made else _nothing(sheet.rows)


def _documents(sheet: Sheet, names: tuple[str, ...]) -> list[str]:
    import pyarrow.compute as pc

    joined: list[str] = pc.binary_join_element_wise(
        *(sheet.text(name) for name in names), " "
    ).to_pylist()
    return joined


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, dtype=np.float64, **options)


def vocabulary(sheet: Sheet, names: tuple[str, ...]) -> tuple[tuple[str, ...], Floats]:
    """The words of some columns of text, at most 20,000 (the commonest), and their weights."""
    if not names:
        return (), np.empty(0)
    vectorizer = _vectorizer(max_features=MOST_WORDS)
    try:
        vectorizer.fit(_documents(sheet, names))
    except ValueError as error:  # "empty vocabulary"
        raise UsageError(
            f"{sheet.path}: there is no word in the text of {quoted_list(names)}."
        ) from error
    return tuple(vectorizer.get_feature_names_out().tolist()), np.asarray(vectorizer.idf_)


def tf_idf(
    sheet: Sheet, names: tuple[str, ...], words: tuple[str, ...], idf: Floats
) -> sp.csr_array:
    """How often each word occurs (1 + log), times its weight, rows of length 1."""
    if not names or not words:
        return _nothing(sheet.rows)
    vectorizer = _vectorizer(vocabulary={word: at for at, word in enumerate(words)})
    vectorizer.idf_ = idf
    return sp.csr_array(vectorizer.transform(_documents(sheet, names)))


def identity(ids: Sequence[str], nodes: Sequence[str], notes: list[str]) -> sp.csr_array:
    """A column for every node that the model knows; the others have nothing."""
    shape = (len(ids), len(nodes))
    if tuple(ids) == tuple(nodes):
        return sp.eye_array(len(ids), format="csr")
    number = {node: at for at, node in enumerate(nodes)}
    pairs = [(row, number[node]) for row, node in enumerate(ids) if node in number]
    new = len(ids) - len(pairs)
    if new:
        notes.append(
            f"{plural(new, 'node')} without features that the model has not seen: all it can go "
            "by is their edges."
        )
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return sp.csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _nothing(rows: int) -> sp.csr_array:
    return sp.csr_array((rows, 0), dtype=np.float64)


def stack_columns(parts: Sequence[Features]) -> Features:
    """Blocks side by side, sparse if that takes less room."""
    some = [part for part in parts if part.shape[1]]
    if not some:
        return parts[0]
    rows, width = some[0].shape[0], sum(part.shape[1] for part in some)
    stored = sum(
        int(part.nnz if isinstance(part, sp.csr_array) else np.count_nonzero(part)) for part in some
    )
    if stored * 12 + rows * 4 < rows * width * 8:
        return sp.csr_array(sp.hstack([sp.csr_array(part) for part in some], format="csr"))
    return np.hstack([part.toarray() if isinstance(part, sp.csr_array) else part for part in some])
