"""Feature blocks: the kinds of columns in a table of nodes, and how each becomes features.

`FEATURE_BLOCKS` lists the kinds. A kind recognises its columns in a table and learns what it needs
to make features of them, makes the same features for another table, and is stored as JSON.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.node_table import NodeTable, column_statistics
from kryograph.data.tables.sheet import Floats, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.sparse import row_normalise
from kryograph.text import plural, quoted, quoted_list

MOST_WORDS = 20_000


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


def _parse_categories(value: Any) -> dict[str, tuple[str, ...]]:
    return {str(name): parse_names(some) for name, some in value}


@dataclass(frozen=True)
class FeatureBlock(ABC):
    """One kind of columns. Its fields are its part of the recipe, under the same names in JSON."""

    scaled: ClassVar[bool] = True
    """Whether the features are multiplied by a factor, so that no block outweighs another."""
    parallel: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that must have equally many entries."""

    @classmethod
    @abstractmethod
    def learn(cls, table: NodeTable) -> FeatureBlock:
        """Recognise the columns of this kind in a table, and learn from them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are used; by default those in the first field."""
        return tuple(getattr(self, fields(self)[0].name))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, such as "colour = red"; by default those of the columns."""
        return self.columns

    @abstractmethod
    def apply(self, table: NodeTable) -> Features:
        """Make the features, N × k, of a table that has the columns; adds notes to the table."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as lists."""
        return {part.name: list(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FeatureBlock:
        """Read what `to_json` returned; raises a KeyError, TypeError or ValueError otherwise."""
        block = cls(**{f.name: f.metadata["parse"](values[f.name]) for f in fields(cls)})
        if len({len(values[name]) for name in block.parallel}) > 1:
            raise ValueError("its lists do not match")
        return block


@dataclass(frozen=True)
class Identity(FeatureBlock):
    """One feature for each node, for a table without any columns to use."""

    nodes: tuple[str, ...] = field(metadata={"parse": parse_names})
    """Ids of the nodes; () if there are columns to use."""
    scaled = False
    columns = ()

    @classmethod
    def learn(cls, table: NodeTable) -> Identity:
        return cls(() if table.others or table.text else tuple(table.ids))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"node {node}" for node in self.nodes)

    def apply(self, table: NodeTable) -> Features:
        features = _one_hot(pa.array(table.ids, type=pa.string()), self.nodes)
        new = features.shape[0] - features.nnz
        if new and self.nodes:
            table.notes.append(
                f"{plural(new, 'node')} without features that the model has not seen: the "
                "prediction depends on edges only."
            )
        return features


@dataclass(frozen=True)
class Counts(FeatureBlock):
    """A bag of words: many columns of counts, divided by the sum of each row."""

    counts: tuple[str, ...] = field(metadata={"parse": parse_names})
    count_means: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Mean of each column, which stands for an empty cell."""
    scaled = False
    parallel = ("counts", "count_means")

    @classmethod
    def learn(cls, table: NodeTable) -> Counts:
        names = tuple(itertools.compress(table.numeric, table.bag_of_words))
        means, _ = column_statistics(table.numbers(names))
        return cls(names, parse_floats(means))

    def apply(self, table: NodeTable) -> Features:
        cells = table.filled_numbers(self.counts, self.count_means)
        negative = np.flatnonzero(cells.data < 0)
        if negative.size:
            at = int(negative[0])
            column = int(np.searchsorted(cells.indptr, at, side="right")) - 1
            what = f"{cells.data[at]:g} is negative, but the model was trained on counts"
            raise table.sheet.fault(int(cells.indices[at]), self.counts[column], what)
        return row_normalise(sp.csr_array(cells))


@dataclass(frozen=True)
class Numbers(FeatureBlock):
    """Other columns of numbers, each less its mean and divided by its standard deviation."""

    numbers: tuple[str, ...] = field(metadata={"parse": parse_names})
    means: tuple[float, ...] = field(metadata={"parse": parse_floats})
    deviations: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Standard deviations; 0 for a column whose values are equal, which becomes zeros."""
    parallel = ("numbers", "means", "deviations")

    @classmethod
    def learn(cls, table: NodeTable) -> Numbers:
        names = tuple(itertools.compress(table.numeric, ~table.bag_of_words))
        means, deviations = column_statistics(table.numbers(names))
        return cls(names, parse_floats(means), parse_floats(deviations))

    def apply(self, table: NodeTable) -> Features:
        means, deviations = np.array(self.means), np.array(self.deviations)
        dense: Floats = table.filled_numbers(self.numbers, self.means).toarray()
        constant = [self.numbers[at] for at in np.flatnonzero(deviations == 0)]
        if constant:
            more = ", …" if len(constant) > 5 else ""
            table.notes.append(
                f"{plural(len(constant), 'column')} with one value only: "
                f"{quoted_list(constant[:5])}{more}."
            )
        dense -= means
        dense *= np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations != 0)
        return dense


@dataclass(frozen=True)
class Categories(FeatureBlock):
    """Columns of categories: a feature for each value of each column."""

    categories: dict[str, tuple[str, ...]] = field(metadata={"parse": _parse_categories})
    """Values of each column, sorted. An empty cell, or one with another value, has no feature."""

    @classmethod
    def learn(cls, table: NodeTable) -> Categories:
        return cls(table.categorical)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(
            f"{name} = {value}" for name, some in self.categories.items() for value in some
        )

    def apply(self, table: NodeTable) -> Features:
        blocks = [_nothing(table.sheet)]
        for name, values in self.categories.items():
            cells = table.sheet.keys(name)
            blocks.append(_one_hot(cells, values))
            empty = pc.sum(pc.equal(cells, "")).as_py() or 0
            unseen = table.sheet.rows - blocks[-1].nnz - empty
            if empty:
                table.notes.append(f"{plural(empty, 'empty cell')} in column {quoted(name)}.")
            if unseen:
                table.notes.append(
                    f"{plural(unseen, 'cell')} in column {quoted(name)} with a category that the "
                    "model has not seen, ignored."
                )
        return sp.hstack(blocks, format="csr")

    def to_json(self) -> dict[str, Any]:
        return {"categories": [[name, list(some)] for name, some in self.categories.items()]}


@dataclass(frozen=True)
class Text(FeatureBlock):
    """Columns of text, taken together: the TF-IDF of each word, with rows of length 1."""

    text: tuple[str, ...] = field(metadata={"parse": parse_names})
    words: tuple[str, ...] = field(metadata={"parse": parse_names})
    """The most frequent words, at most MOST_WORDS."""
    idf: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Weight of each word."""
    parallel = ("words", "idf")

    @classmethod
    def learn(cls, table: NodeTable) -> Text:
        if not table.text:
            return cls((), (), ())
        vectorizer = _vectorizer(max_features=MOST_WORDS)
        try:
            vectorizer.fit(_documents(table.sheet, table.text))
        except ValueError as error:  # "empty vocabulary"
            raise UsageError(
                f"{table.sheet.path}: there is no word in the text of {quoted_list(table.text)}."
            ) from error
        words = tuple(vectorizer.get_feature_names_out().tolist())
        return cls(table.text, words, parse_floats(vectorizer.idf_))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"word {word}" for word in self.words)

    def apply(self, table: NodeTable) -> Features:
        if not self.words:
            return _nothing(table.sheet)
        vectorizer = _vectorizer(vocabulary={word: at for at, word in enumerate(self.words)})
        vectorizer.idf_ = np.array(self.idf)
        return sp.csr_array(vectorizer.transform(_documents(table.sheet, self.text)))


FEATURE_BLOCKS: tuple[type[FeatureBlock], ...] = (Identity, Counts, Numbers, Categories, Text)
"""Every kind of feature block, in the order of their features."""


def _documents(sheet: Sheet, names: tuple[str, ...]) -> list[str]:
    columns = (sheet.text(name) for name in names)
    joined: list[str] = pc.binary_join_element_wise(*columns, " ").to_pylist()
    return joined


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, dtype=np.float64, **options)


def _one_hot(cells: Any, values: Sequence[str]) -> sp.csr_array:
    """Mark the value of each cell of an Arrow array of text: N × values; others have no mark."""
    codes = pc.index_in(cells, value_set=pa.array(values, type=pa.string())).fill_null(-1)
    number = codes.to_numpy()
    rows = np.flatnonzero(number >= 0)
    shape = (len(cells), len(values))
    return sp.csr_array((np.ones(rows.size), (rows, number[rows])), shape=shape)


def _nothing(sheet: Sheet) -> sp.csr_array:
    return sp.csr_array((sheet.rows, 0), dtype=np.float64)


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
        return sp.csr_array(sp.hstack([sp.csr_array(part) for part in some], format="csr"))
    return np.hstack([part.toarray() if isinstance(part, sp.csr_array) else part for part in some])
