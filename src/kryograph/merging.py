"""Merging of repeated edges: the one place where a list of edges becomes a simple graph.

Edges with the same source and target are repeated; a rule of `REPEAT_RULES` gives them one weight.
The two directions of a pair are one edge of an undirected graph, with the larger of their weights,
so that a list of all edges in both directions gives the same graph as a list of one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.errors import UsageError
from kryograph.text import plural

REPEAT_RULES = ("sum", "max", "mean", "count", "first")
"""Weights that repeated edges can get; "first" is that of the one listed first."""


@dataclass(frozen=True)
class Cleaning:
    """Numbers of the changes that were made to a list of edges.

    Self-loops are removed, entries with the source and target of an earlier one merged with it, and
    the other direction of one-way pairs added.
    """

    loops: int = 0
    repeated: int = 0
    one_way: int = 0

    def __str__(self) -> str:
        changes = [
            (self.loops, "self-loop", "removed"),
            (self.repeated, "repeated edge", "merged"),
            (self.one_way, "one-way edge", "made two-way"),
        ]
        return ", ".join(f"{plural(n, noun)} {verb}" for n, noun, verb in changes if n)


def checked_weights(weights: npt.ArrayLike, number: int) -> npt.NDArray[np.float64]:
    """Weights of that many edges, which must be positive and finite."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (number,):
        raise UsageError(f"There are {number} edges, but weights of shape {values.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        at = wrong[0]
        raise UsageError(f"Edge {at} has weight {values[at]}: weights must be positive.")
    return values


def canonical_csr(matrix: sp.sparray | sp.spmatrix) -> sp.csr_array:
    """Copy a matrix to its canonical form: sorted indices, no repeated entry, no stored zero."""
    copy = sp.csr_array(matrix, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def merge_edges(
    pairs: npt.NDArray[np.int64], weights: npt.NDArray[np.float64] | None, n: int, repeat: str
) -> tuple[sp.csr_array, Cleaning]:
    """Build the symmetric N × N adjacency of 2 × E node pairs with positive weights.

    Without weights all of them are 1. `repeat` is one of `REPEAT_RULES`. Also returns what was
    changed.
    """
    is_loop = pairs[0] == pairs[1]
    loops = int(np.count_nonzero(is_loop))
    if loops:
        pairs = pairs[:, ~is_loop]
        weights = None if weights is None else weights[~is_loop]
    # One number for each pair: the smaller node, the greater node, and which comes first.
    key = np.minimum(pairs[0], pairs[1])
    key *= n
    key += np.maximum(pairs[0], pairs[1])
    key *= 2
    key += pairs[0] > pairs[1]
    if weights is None:
        key.sort()
    else:
        order = np.argsort(key, kind=None if repeat == "max" else "stable")
        key, weights = key[order], weights[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    merged = _merged(weights, starts, key.size, repeat)
    repeated, directed = key.size - starts.size, starts.size
    key = key[starts]
    key >>= 1
    first = np.flatnonzero(np.diff(key, prepend=-1))
    key = key[first]
    values = np.ones(key.size)
    if merged is not None and key.size:
        values = np.maximum.reduceat(merged, first)
    low = key // n
    key -= low * n
    index = np.int32 if max(n, 2 * key.size) < np.iinfo(np.int32).max else np.int64
    start = np.zeros(n + 1, dtype=index)
    np.cumsum(np.bincount(low, minlength=n), out=start[1:])
    half = sp.csr_array((values, key.astype(index), start), shape=(n, n))
    cleaning = Cleaning(loops, repeated, 2 * key.size - directed)
    return sp.csr_array(half + half.T), cleaning


def _merged(
    values: npt.NDArray[np.float64] | None, starts: npt.NDArray[np.int64], size: int, repeat: str
) -> npt.NDArray[np.float64] | None:
    """Reduce the values between each start and the next one to one; None if all results are 1."""
    counts = np.diff(starts, append=size).astype(np.float64)
    if repeat == "count" or (repeat == "sum" and values is None):
        return counts
    if values is None:
        return None
    if repeat == "first" or not starts.size:
        return values[starts]
    if repeat == "max":
        return np.maximum.reduceat(values, starts)
    sums = np.add.reduceat(values, starts)
    return sums / counts if repeat == "mean" else sums
