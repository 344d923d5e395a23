"""The one rule by which numbers become features, for tables, matrices and other graph libraries.

Columns that are never negative and often zero are a bag of words if they are many, together with
columns of the same range. The rows of a bag are divided by their sum. All other columns are
standardised, and scaled so that their rows are about as long as those of a bag. The rule changes
nothing in features that it has made itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.graph import Features, Graph
from kryograph.sparse import row_normalise

BAG_COLUMNS = 20
"""Smallest number of columns of a bag of words."""

COLUMN_ZEROS, BAG_ZEROS = 0.1, 0.5
"""Smallest share of zeros in a column of a bag, and mean share that the whole bag must exceed."""

ROW_LENGTH = 0.2
"""Mean length of the rows of standardised columns; bags of words have about the same."""


@dataclass(frozen=True, eq=False)
class FeatureRule:
    """How the columns of a matrix become features; learned from one matrix, applied to others.

    Args:
        bag: Whether a column belongs to the bag of words, F.
        means: Mean of each other column, 0 in the bag, F.
        factors: What each other column is multiplied by after the mean is subtracted, F.
    """

    bag: npt.NDArray[np.bool_]
    means: npt.NDArray[np.float64]
    factors: npt.NDArray[np.float64]

    @classmethod
    def learn(cls, x: Features) -> FeatureRule:
        """Learn the rule from an N × F matrix."""
        columns = x.shape[1]
        if x.shape[0] == 0 or columns == 0:
            return cls(np.zeros(columns, bool), np.zeros(columns), np.zeros(columns))
        bag = bag_columns(sp.csc_array(x))
        means, factors = np.zeros(columns), np.zeros(columns)
        rest = np.flatnonzero(~bag)
        if rest.size:
            part = _dense(x[:, rest])
            means[rest] = part.mean(axis=0)
            spread = part.std(axis=0)
            varies = np.ptp(part, axis=0) > 0
            scale = np.divide(1, spread, out=np.zeros_like(spread), where=varies)
            length = np.sqrt((((part - means[rest]) * scale) ** 2).sum(axis=1)).mean()
            factors[rest] = scale * (ROW_LENGTH / length if length > 0 else 1.0)
        return cls(bag, means, factors)

    def apply(self, x: Features) -> Features:
        """Features of a matrix with the same columns."""
        bag, rest = np.flatnonzero(self.bag), np.flatnonzero(~self.bag)
        if not rest.size:
            return row_normalise(sp.csr_array(x))
        standardised = (_dense(x[:, rest]) - self.means[rest]) * self.factors[rest]
        if not bag.size:
            return standardised
        counts = row_normalise(sp.csr_array(x[:, bag]))
        together = sp.hstack([counts, sp.csr_array(standardised)], format="csc")
        original = np.argsort(np.concatenate([bag, rest]))
        return sp.csr_array(together[:, original])

    def graph(self, graph: Graph) -> Graph:
        """A graph with features made by the rule from its present ones."""
        return Graph(graph.adjacency, self.apply(graph.features), graph.names, graph.cleaning)


def bag_columns(x: sp.csc_array) -> npt.NDArray[np.bool_]:
    """Mark the columns of an N × F matrix that are a bag of words; NaN is an empty cell.

    Columns that are never negative and have a tenth of zeros are a bag if there are many of them,
    mostly zero. Other columns belong to it if their values could be those of the bag: words that
    occur nearly everywhere.
    """
    smallest, largest = x.nanmin(axis=0).toarray(), x.nanmax(axis=0).toarray()
    zeros = 1 - np.diff(x.indptr) / x.shape[0]
    words = (smallest >= 0) & (zeros >= COLUMN_ZEROS)
    if words.sum() < BAG_COLUMNS or zeros[words].mean() <= BAG_ZEROS:
        return np.zeros_like(words)
    fractions = sp.csc_array((x.data % 1 > 0, x.indices, x.indptr), shape=x.shape)
    whole = np.asarray(fractions.sum(axis=0)) == 0
    in_range = (smallest >= 0) & (largest <= largest[words].max()) & (whole | ~whole[words].all())
    return np.asarray(words | in_range)


def is_identity(x: Features) -> bool:
    """Whether features are the identity matrix, which a graph without features has."""
    n, columns = x.shape
    entries = x.nnz if isinstance(x, sp.csr_array) else np.count_nonzero(x)
    return bool(n == columns == entries and np.all(x.diagonal() == 1))


def normalised(graph: Graph) -> tuple[Graph, FeatureRule | None]:
    """Learn the rule from a graph and apply it; the new graph and the rule.

    Without features (the identity) the graph stays as it is and the rule is None.
    """
    x = graph.features
    if is_identity(x):
        return graph, None
    rule = FeatureRule.learn(x)
    return rule.graph(graph), rule


def _dense(x: Features) -> npt.NDArray[np.float64]:
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x, dtype=np.float64)
