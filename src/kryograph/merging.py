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


def merge_edges(
    pairs: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], n: int, repeat: str
) -> tuple[sp.csr_array, Cleaning]:
    """Build the symmetric N × N adjacency of 2 × E node pairs with positive weights.

    `repeat` is one of `REPEAT_RULES`. Also returns what was changed.
    """
    loops = pairs[0] == pairs[1]
    key, values = pairs[0, ~loops] * n + pairs[1, ~loops], weights[~loops]
    listed = key.size
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    key, values = key[starts], _merged(values, starts, repeat)
    one_way_key = np.minimum(key // n, key % n) * n + np.maximum(key // n, key % n)
    order = np.argsort(one_way_key, kind="stable")
    one_way_key, values = one_way_key[order], values[order]
    first = np.flatnonzero(np.diff(one_way_key, prepend=-1))
    if first.size:
        values = np.maximum.reduceat(values, first)
    edge = one_way_key[first]
    half = sp.coo_array((values, (edge // n, edge % n)), shape=(n, n)).tocsr()
    cleaning = Cleaning(int(loops.sum()), listed - key.size, 2 * edge.size - key.size)
    return half + half.T, cleaning


def _merged(
    values: npt.NDArray[np.float64], starts: npt.NDArray[np.int64], repeat: str
) -> npt.NDArray[np.float64]:
    """Reduce the values between each start and the next one to a single value."""
    counts = np.diff(starts, append=values.size).astype(np.float64)
    if repeat == "count":
        return counts
    if repeat == "first" or not starts.size:
        return values[starts]
    if repeat == "max":
        return np.maximum.reduceat(values, starts)
    sums = np.add.reduceat(values, starts)
    return sums / counts if repeat == "mean" else sums
