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
    stack_columns,
)


def test_a_cell_is_marked_at_its_value() -> None:
    marks = one_hot(pa.array(["b", "x", "", "a"]), ["a", "b"]).toarray()
    assert marks.tolist() == [[0, 1], [0, 0], [0, 0], [1, 0]]
    assert one_hot(pa.array(["b"]), []).shape == no_features(1).shape == (1, 0)


def test_columns_are_sparse_where_that_is_smaller() -> None:
    assert isinstance(stack_columns([np.ones((9, 6)), sp.csr_array((9, 2))]), np.ndarray)
    assert isinstance(stack_columns([np.ones((9, 2)), sp.csr_array((9, 6))]), sp.csr_array)
    assert stack_columns([no_features(3), np.ones((3, 0))]).shape == (3, 0)


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
