from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from kryograph.data.tables.feature_blocks import (
    no_features,
    one_hot,
    parse_categories,
    parse_float_lists,
    parse_floats,
    parse_names,
    row_lengths,
    stack_columns,
    stack_sparse,
)


def test_a_cell_is_marked_at_its_value() -> None:
    marks = one_hot(pa.array(["b", "x", "", "a"]), ["a", "b"]).toarray()
    assert marks.tolist() == [[0, 1], [0, 0], [0, 0], [1, 0]]
    assert one_hot(pa.array(["b"]), []).shape == no_features(1).shape == (1, 0)


def test_columns_are_sparse_where_that_is_smaller() -> None:
    assert isinstance(stack_columns([np.ones((9, 6)), sp.csr_array((9, 2))]), np.ndarray)
    assert isinstance(stack_columns([np.ones((9, 2)), sp.csr_array((9, 6))]), sp.csr_array)
    assert stack_columns([no_features(3), np.ones((3, 0))]).shape == (3, 0)


@pytest.mark.parametrize("empty_rows", [False, True])
def test_sparse_and_dense_blocks_are_stacked(empty_rows: bool) -> None:
    rng = np.random.default_rng(0)
    dense = [rng.integers(-2, 3, (6, width)).astype(float) for width in (3, 0, 4, 1)]
    if empty_rows:
        for part in dense:
            part[[0, 3, 5]] = 0
    parts = [dense[0], sp.csr_array(dense[1]), sp.csr_array(dense[2]), dense[3]]
    stacked = stack_sparse(parts)
    assert stacked.has_canonical_format
    assert stacked.nnz == sum(np.count_nonzero(part) for part in dense)
    np.testing.assert_array_equal(stacked.toarray(), np.hstack(dense))


def test_the_length_of_rows_is_that_of_a_dense_matrix() -> None:
    rows = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]])
    for matrix in (rows, sp.csr_array(rows)):
        np.testing.assert_allclose(row_lengths(matrix), [5, 0, 3])


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (parse_names, ["a", "b"], ["a", [1], None, {"a": 1}]),
        (parse_floats, [1, 2.5], [[float("nan")], ["x"], [None], None, 3]),
        (parse_float_lists, [[1.0], [2.0, 3.0]], [[1.0], [[float("inf")]], "x"]),
        (parse_categories, [["a", ["x", "y"]], ["b", []]], [[["a", 3]], [["a"]], {"a": 1}, None]),
    ],
)
def test_other_values_than_expected_are_refused(
    parse: Callable[[object], object], good: object, bad: list[object]
) -> None:
    assert parse(good)
    for value in bad:
        with pytest.raises((TypeError, ValueError)):
            parse(value)


def test_a_column_may_have_one_list_of_values() -> None:
    with pytest.raises(ValueError, match="listed twice"):
        parse_categories([["a", ["x"]], ["a", ["y"]]])
