"""Walks: where the value that a node receives comes from, and through which edge.

A node v receives Σ_k (M_1 M_2 … M_k g_k)_v, where M_1, M_2, … are N × N matrices, mostly all the
same operator L, and g_k are N numbers. Row k of the `arrivals` of v is (M_1 … M_k)^T e_v, the
weights with which v receives the numbers of g_k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from kryograph.explain.contributions import Values


def arrivals(node: int, steps: Sequence[sp.csr_array], n: int) -> Values:
    """Weights (K + 1) × N with which one of n nodes receives values after 0, …, K steps."""
    weights = np.zeros((len(steps) + 1, n))
    weights[0, node] = 1.0
    for k, matrix in enumerate(steps):
        weights[k + 1] = matrix.T @ weights[k]
    return weights


def through_edges(
    node: int, steps: Sequence[sp.csr_array], values: Values
) -> tuple[Values, Values]:
    """Divide what a node receives by the edge on which it arrives.

    Self-loops of an operator are steps that do not leave the node: a value counts for the first
    edge to another node on its walk.

    Args:
        node: The node v.
        steps: Matrices M_1, …, M_K.
        values: Values g_0, …, g_K, (K + 1) × N.

    Returns:
        What v receives through each neighbour, N (zero elsewhere), and the weights, K + 1, with
        which v receives its own values by walks that never leave it.
    """
    by_edge = np.zeros(values.shape[1])
    own = np.ones(len(values))
    rows = [_row(matrix, node) for matrix in steps]
    for k, (columns, entries) in enumerate(rows):
        own[k + 1] = own[k] * entries[columns == node].sum()
    later = np.zeros(values.shape[1])
    for k in reversed(range(len(steps))):
        # `later` becomes Σ_{j > k} M_{k+2} … M_j g_j: what a node receives from the step k + 1 on.
        if k + 1 < len(steps):
            later = steps[k + 1] @ later
        later = later + values[k + 1]
        columns, entries = rows[k]
        away = columns != node
        by_edge[columns[away]] += own[k] * entries[away] * later[columns[away]]
    return by_edge, own


def _row(matrix: sp.csr_array, node: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and entries of a row of a matrix."""
    start, end = matrix.indptr[node], matrix.indptr[node + 1]
    return matrix.indices[start:end], matrix.data[start:end]
