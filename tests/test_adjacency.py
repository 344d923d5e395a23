"""`kryograph.adjacency`: lists of edges as symmetric matrices."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.adjacency import checked_weights, symmetric_adjacency
from kryograph.errors import UsageError


def test_symmetric_adjacency_has_each_pair_once_in_both_directions() -> None:
    pairs = np.array([[2, 0, 0, 1], [0, 2, 2, 2]])
    matrix, directed = symmetric_adjacency(pairs, None, 3)
    assert matrix.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert directed == 3  # 2-0, 0-2 and 1-2
    assert matrix.has_canonical_format


def test_symmetric_adjacency_a_repeated_pair_has_its_largest_weight() -> None:
    pairs = np.array([[2, 0, 0, 1], [0, 2, 2, 2]])
    matrix, directed = symmetric_adjacency(pairs, np.array([1.0, 5.0, 2.0, 0.5]), 3)
    assert matrix.toarray().tolist() == [[0, 0, 5], [0, 0, 0.5], [5, 0.5, 0]]
    assert directed == 3


@pytest.mark.parametrize("values", [None, np.empty(0)])
def test_symmetric_adjacency_without_edges_is_empty(values: np.ndarray | None) -> None:
    matrix, directed = symmetric_adjacency(np.empty((2, 0), dtype=np.int64), values, 4)
    assert (matrix.shape, matrix.nnz, directed) == ((4, 4), 0, 0)


def test_checked_weights_name_the_first_edge_that_is_wrong() -> None:
    with pytest.raises(UsageError, match=r"Edge 1 has weight 0\.0"):
        checked_weights([1.0, 0.0, -1.0], 3)
    with pytest.raises(UsageError, match="There are 2 edges"):
        checked_weights([1.0], 2)
