from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kryograph.data.tables.vectors import convert_vectors, is_vector, is_vectors, read_vectors
from kryograph.errors import UsageError
from tests.data.tables.examples import sheet

ROWS = [[1.0, 2.0], None, [3.0, 4.0]]
SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]
TYPES = (
    pa.list_(pa.float64()),
    pa.list_(pa.float32(), 2),
    pa.large_list(pa.float32()),
    pa.list_(pa.int8()),
)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(ROWS),
        pa.array(ROWS, pa.large_list(pa.float32())),
        pa.array(ROWS, pa.list_(pa.int16(), 2)),
        ["[1.0, 2]", "", "[3.0 4e0]"],
    ],
)
def test_lists_become_lists_of_one_length(cells: object) -> None:
    table = sheet(x=cells)
    assert is_vectors(table, "x")
    assert convert_vectors(table, "x") == 2
    assert table.columns["x"].type == pa.list_(pa.float64(), 2)
    assert table.columns["x"].to_pylist() == ROWS


def test_text_without_brackets_is_a_vector_only_if_it_is_named_so() -> None:
    table = sheet(x=["1 2", "3;4"])
    assert not is_vectors(table, "x")
    convert_vectors(table, "x")
    assert table.columns["x"].to_pylist() == [[1, 2], [3, 4]]


def test_slices_keep_their_rows() -> None:
    column = pa.chunked_array([pa.array(ROWS).slice(1), pa.array([[5.0, 6.0]])])
    table = sheet(x=["", "", ""])
    table.columns["x"] = column
    convert_vectors(table, "x")
    assert table.columns["x"].to_pylist() == [None, [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            pa.array([[1.0, 2.0], [1.0], [2.0]]),
            r"line 3, column 'x': the vector has 1 number, but the first one, on line 2, has 2; "
            r".*--ignore x \(1 more cell like this\)",
        ),
        (pa.array([[1.0, np.nan]]), r"line 2, column 'x': number 2 of the vector is empty"),
        (pa.array([[1.0], [None]]), r"line 3, column 'x': number 1 of the vector is empty"),
        (pa.array([[], []], pa.list_(pa.float64())), r"column 'x': its vectors are empty"),
        (pa.array([["a"]]), r"column 'x': it holds list<.*, not vectors"),
        (["1 b"], r"line 2, column 'x': '1 b' is not a list of numbers"),
        (["1 2", "", "b 3 c", "d"], r"line 4, .*'b 3 c' is not a list of numbers \(1 more cell"),
        ([None, [1.0, 2.0], []], r"line 4, .*has 0 numbers, but the first one, on line 3, has 2"),
        ([[1.0, 2.0], [np.inf, 1e101]], r"line 3, column 'x': number 1 of the vector is .*finite"),
        ([["a"], ["b"]], r"column 'x': it holds list<.*string>, not vectors"),
    ],
)
def test_what_is_no_vector(cells: object, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        convert_vectors(sheet(x=cells), "x")


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_vectors_of_every_type_are_read(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(SQUARE[:3], kind), pa.array([None, *SQUARE[3:]], kind)])
    vectors, empty = read_vectors(sheet(x=column.combine_chunks()), "x")
    np.testing.assert_array_equal(vectors, [*SQUARE[:3], [0, 0], SQUARE[3]])
    assert empty.tolist() == [3]
    assert is_vector(kind)


def test_text_and_numbers_are_no_vectors() -> None:
    for kind in (pa.string(), pa.float64(), pa.list_(pa.string()), pa.list_(pa.list_(pa.int8()))):
        assert not is_vector(kind)
