from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data.tables.empty_cells import (
    empty_notes,
    empty_rows,
    mark_empty,
    mark_names,
    marked_shares,
    parse_shares,
)

NAN = np.nan


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def test_empty_cells_are_listed_by_column() -> None:
    cells = sp.csc_array(np.array([[NAN, 1, 0], [0, 2, NAN], [NAN, 3, 0]]))
    assert [some.tolist() for some in empty_rows(cells)] == [[0, 2], [], [1]]
    assert empty_rows(sp.csc_array((3, 0))) == []


@pytest.mark.parametrize(("count", "share"), [(0, 0.0), (4, 0.0), (5, 0.05), (99, 0.99), (100, 0)])
def test_a_twentieth_of_empty_cells_is_marked_but_not_all(count: int, share: float) -> None:
    assert marked_shares(100, [rows(*range(count))]) == (share,)


def test_marks_have_mean_0_and_deviation_1() -> None:
    marks = mark_empty(5, [rows(3), rows(), rows(0)], [0.2, 0.0, 0.0])
    np.testing.assert_allclose(marks[:, 0], [-0.5, -0.5, -0.5, 2, -0.5])
    assert mark_names(["age", "size", "height"], [0.2, 0.0, 0.0]) == ("age is empty",)


def test_many_columns_make_one_note() -> None:
    names = list("abcdef")
    assert empty_notes(names, [rows(0), *[rows()] * 5], "mean") == [
        "1 empty cell in column 'a' filled with its mean."
    ]
    assert empty_notes(names, [rows(0, 1)] * 6, "mean") == [
        "12 empty cells in 6 columns filled with the column's mean."
    ]


@pytest.mark.parametrize("value", [[1.0], [-0.1], [float("nan")], ["x"], [None]])
def test_a_share_is_at_least_0_and_below_1(value: list[float]) -> None:
    assert parse_shares([0, 0.5]) == (0.0, 0.5)
    with pytest.raises((TypeError, ValueError)):
        parse_shares(value)
