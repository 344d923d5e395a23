"""Blocks of names: nodes themselves, categories, and words of a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kryograph.data.tables.feature_blocks import (
    FeatureBlock,
    no_features,
    one_hot,
    parse_categories,
    parse_floats,
    parse_names,
    row_lengths,
    stack_sparse,
)
from kryograph.data.tables.node_table import NodeTable, categories
from kryograph.data.tables.sheet import RowNumbers, Sheet
from kryograph.errors import UsageError
from kryograph.graph import Features
from kryograph.text import plural, quoted, quoted_list

MOST_WORDS = 20_000

ROWS_AT_ONCE = 10_000
"""Number of texts that are split into words at a time; the words take much memory."""
_NOT_A_WORD = r"[^\p{L}\p{N}_]+"


@dataclass(frozen=True)
class Identity(FeatureBlock):
    """One feature for each node, for tables without any columns to use."""

    nodes: tuple[str, ...] = field(metadata={"parse": parse_names})
    """Ids of the nodes; () if there are columns to use."""
    key = "identity"
    scaled = False
    columns = ()

    @classmethod
    def learn(cls, table: NodeTable) -> Identity:
        others = table.kinds or (table.edges is not None and table.edges.used)
        return cls(() if others else tuple(table.ids))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"node {node}" for node in self.nodes)

    def apply(self, table: NodeTable) -> Features:
        features = one_hot(pa.array(table.ids, type=pa.string()), self.nodes)
        new = features.shape[0] - features.nnz
        if new and self.nodes:
            table.notes.append(
                f"{plural(new, 'node')} without features that the model has not seen: the "
                "prediction depends on edges only."
            )
        return features


@dataclass(frozen=True)
class Categories(FeatureBlock):
    """Columns of categories: a feature for each value of each column."""

    values: dict[str, tuple[str, ...]] = field(metadata={"parse": parse_categories})
    """Values of each column, sorted. An empty cell, or one with another value, has no feature."""
    key = "categories"

    @classmethod
    def learn(cls, table: NodeTable) -> Categories:
        return cls({name: categories(table.sheet, name) for name in table.of_kind("category")})

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"{name} = {value}" for name, some in self.values.items() for value in some)

    def apply(self, table: NodeTable) -> Features:
        blocks = [no_features(table.sheet.rows)]
        for name, values in self.values.items():
            cells = table.sheet.keys(name)
            blocks.append(one_hot(cells, values))
            empty = pc.sum(pc.equal(cells, "")).as_py() or 0
            unseen = table.sheet.rows - blocks[-1].nnz - empty
            if empty:
                table.notes.append(f"{plural(empty, 'empty cell')} in column {quoted(name)}.")
            if unseen:
                table.notes.append(
                    f"{plural(unseen, 'cell')} in column {quoted(name)} with a category that the "
                    "model has not seen, ignored."
                )
        return stack_sparse(blocks)


@dataclass(frozen=True)
class Text(FeatureBlock):
    """Columns of text, taken together: the TF-IDF of each word, with rows of length 1.

    A word has two letters or digits at least. A word that occurs t times in a text weighs
    (1 + log t) · idf, where idf = 1 + log((1 + texts) / (1 + texts with the word)).
    """

    names: tuple[str, ...] = field(metadata={"parse": parse_names})
    words: tuple[str, ...] = field(metadata={"parse": parse_names})
    """The most frequent words, at most MOST_WORDS, sorted."""
    idf: tuple[float, ...] = field(metadata={"parse": parse_floats})
    """Weight of each word."""
    key = "text"
    parallel = ("words", "idf")

    @classmethod
    def learn(cls, table: NodeTable) -> Text:
        names = table.of_kind("text")
        if not names:
            return cls((), (), ())
        parts = [_word_counts(rows, words) for rows, words in _words(table.sheet, names)]
        both = [("texts", "sum"), ("times", "sum")]
        totals = pa.concat_tables(parts).group_by("word").aggregate(both)
        if not totals.num_rows:
            raise UsageError(
                f"{table.sheet.path}: there is no word in the text of {quoted_list(names)}."
            )
        order = [("times_sum", "descending"), ("word", "ascending")]
        frequent = totals.sort_by(order).slice(0, MOST_WORDS).sort_by("word")
        texts = np.asarray(frequent["texts_sum"].to_numpy(), dtype=np.float64)
        idf = 1 + np.log((1 + table.sheet.rows) / (1 + texts))
        return cls(names, tuple(frequent["word"].to_pylist()), tuple(idf.tolist()))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(f"word {word}" for word in self.words)

    def apply(self, table: NodeTable) -> Features:
        shape = (table.sheet.rows, len(self.words))
        if not self.words:
            return no_features(table.sheet.rows)
        known = pa.array(self.words, type=pa.string())
        rows, columns = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for some_rows, words in _words(table.sheet, self.names):
            codes = pc.index_in(words, value_set=known).fill_null(-1).to_numpy()
            rows.append(some_rows[codes >= 0])
            columns.append(codes[codes >= 0])
        at = np.concatenate(rows), np.concatenate(columns)
        features = sp.csr_array((np.ones(at[0].size), at), shape=shape)  # repeated words are added
        features.sum_duplicates()
        features.data = (1 + np.log(features.data)) * np.array(self.idf)[features.indices]
        features.data /= np.repeat(row_lengths(features), np.diff(features.indptr))
        return features


def _words(sheet: Sheet, names: tuple[str, ...]) -> Iterator[tuple[RowNumbers, Any]]:
    """Split the text of some rows at a time: the row of each word, and the words in lower case."""
    columns = [sheet.text(name) for name in names]
    for start in range(0, sheet.rows, ROWS_AT_ONCE):
        some = [column.slice(start, ROWS_AT_ONCE).combine_chunks() for column in columns]
        lists = pc.split_pattern_regex(
            pc.utf8_lower(pc.binary_join_element_wise(*some, " ")), _NOT_A_WORD
        )
        words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
        long = pc.greater(pc.utf8_length(words), 1)
        yield start + rows.filter(long).to_numpy().astype(np.int32), words.filter(long)


def _word_counts(rows: RowNumbers, words: Any) -> Any:
    """Count in how many rows a word occurs ("texts"), and how often: an Arrow table."""
    encoded = words.dictionary_encode()
    codes = np.asarray(encoded.indices, dtype=np.int64)
    size = len(encoded.dictionary)
    start = int(rows[0]) if rows.size else 0
    shape = (ROWS_AT_ONCE, size)
    once = sp.csr_array((np.ones(rows.size), (rows - start, codes)), shape=shape).indices
    return pa.table(
        {
            "word": encoded.dictionary,
            "texts": np.bincount(once, minlength=size),
            "times": np.bincount(codes, minlength=size),
        }
    )
