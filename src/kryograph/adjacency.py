"""The adjacency of a list of edges: symmetric, without self-loops, each pair once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.errors import UsageError


def checked_weights(weights: npt.ArrayLike, number: int) -> npt.NDArray[np.float64]:
    """Weights of that many edges, which must be positive and finite."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (number,):
        raise UsageError(f"There are {number} edges, but weights {values.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        at = wrong[0]
        raise UsageError(f"Edge {at} has weight {values[at]}: weights must be positive.")
    return values


def symmetric_adjacency(
    pairs: npt.NDArray[np.int64], values: npt.NDArray[np.float64] | None, n: int
) -> tuple[sp.csr_array, int]:
    """Adjacency of pairs without loops, and the number of pairs that differ in order or nodes.

    A pair that is listed more than once has its largest weight; without `values` all weights are 1.
    """
    # One number for each pair: the smaller node, the greater node, and which comes first.
    key = np.minimum(pairs[0], pairs[1])
    key *= n
    key += np.maximum(pairs[0], pairs[1])
    key *= 2
    key += pairs[0] > pairs[1]
    if values is None:
        key.sort()
    else:
        order = np.argsort(key)
        key, values = key[order], values[order]
    directed = _count_distinct(key)
    key >>= 1
    first = np.flatnonzero(np.diff(key, prepend=-1))
    key = key[first]
    low = key // n
    key -= low * n
    index = np.int32 if max(n, 2 * key.size) < np.iinfo(np.int32).max else np.int64
    start = np.zeros(n + 1, dtype=index)
    np.cumsum(np.bincount(low, minlength=n), out=start[1:])
    heaviest = np.ones(key.size)
    if values is not None and key.size:
        heaviest = np.maximum.reduceat(values, first)
    half = sp.csr_array((heaviest, key.astype(index), start), shape=(n, n))
    return sp.csr_array(half + half.T), directed


def _count_distinct(sorted_numbers: npt.NDArray[np.int64]) -> int:
    return int(np.count_nonzero(np.diff(sorted_numbers, prepend=-1)))


def canonical_csr(matrix: sp.sparray | sp.spmatrix) -> sp.csr_array:
    """Copy a matrix to its canonical form: sorted indices, no repeated entry, no stored zero."""
    copy = sp.csr_array(matrix, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy
