from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data.tables.number_blocks import Booleans, Numbers, boolean_numbers
from kryograph.errors import UsageError
from kryograph.sparse import row_normalise
from kryograph.text import ignore_progress
from tests.data.tables.examples import block, dense, learned, node_table, sheet, words


def test_numbers_are_standardised() -> None:
    columns, features, notes = learned(sheet(age=["1", "3", "5"], same=["4", "4", "4"]))
    assert block(columns, "numbers") == {
        "names": ["age", "same"],
        "means": [3.0, 4.0],
        "deviations": [pytest.approx(np.sqrt(8 / 3)), 0.0],
        "empty_shares": [0.0, 0.0],
    }
    assert not features[:, 1].any()
    np.testing.assert_allclose(features[:, 0] / features[2, 0], [-1, 0, 1], atol=1e-15)
    assert notes == ["1 column with one value only: 'same'."]


def test_a_constant_column_is_zero_however_it_rounds() -> None:
    columns, features, _ = learned(sheet(same=["0.1"] * 10, other=["1"] + ["2"] * 9))
    assert block(columns, "numbers")["deviations"][0] == 0
    assert not features[:, 0].any()


def test_an_empty_number_is_the_mean_and_marked() -> None:
    table = node_table(sheet(age=["1", "", "5", ""]), {"age": "number"})
    numbers = Numbers.learn(table)
    assert numbers == Numbers(("age",), (3.0,), (2.0,), (0.5,))
    assert numbers.features == ("age", "age is empty")
    assert dense(numbers.apply(table)).tolist() == [[-1, -1], [0, 1], [1, -1], [0, 1]]
    assert table.notes == ["2 empty cells in column 'age' filled with its mean."]


def test_few_empty_numbers_are_not_marked() -> None:
    cells = [str(number) for number in range(39)] + [""]
    assert learned(sheet(age=cells))[0].features == ("age",)
    assert learned(sheet(age=[*cells[1:], ""]))[0].features == ("age", "age is empty")


def test_many_columns_with_empty_cells_make_one_note() -> None:
    _, _, notes = learned(sheet(**{f"x{at}": ["1", "", "2"] for at in range(9)}))
    assert notes == ["9 empty cells in 9 columns filled with the column's mean."]


def test_one_row_is_enough_to_learn_from() -> None:
    columns, features, notes = learned(
        sheet(age=["7"], new=["yes"]), {"age": "number", "new": "boolean"}
    )
    assert columns.features == ("age", "new")
    assert features.tolist() == [[0, 0]]
    assert len(notes) == 2


@pytest.mark.parametrize(
    "cells",
    [
        [True, None, False, True],
        ["yes", "", "no", "YES"],
        ["True", " ", "false", "TRUE "],
        ["1", "", "0", "1.0"],
        [1.0, None, 0.0, 1.0],
        ["t", "", "n", "y"],
    ],
)
def test_booleans_are_one_number(cells: list[object]) -> None:
    table = node_table(sheet(new=cells), {"new": "boolean"})
    column = boolean_numbers(table.sheet, "new").dense()
    np.testing.assert_array_equal(column, [1, np.nan, 0, 1])
    booleans = Booleans.learn(table)
    assert booleans.means == (2 / 3,)
    assert booleans.features == ("new", "new is empty")
    np.testing.assert_allclose(
        dense(booleans.apply(table))[:, 0], np.array([1, 0, -2, 1]) / np.sqrt(2), atol=1e-12
    )


def test_a_cell_that_is_not_a_boolean_is_refused_at_its_place() -> None:
    columns, _, _ = learned(sheet(new=["yes", "no"]), {"new": "boolean"})
    with pytest.raises(
        UsageError, match=r"line 3, column 'new': 'maybe' is neither true nor false"
    ):
        columns.apply(sheet(new=["", "maybe"]), ["0", "1"], ignore_progress)


def test_a_bag_of_words_is_divided_by_its_sum() -> None:
    table = words(50, 20)
    columns, features, _ = learned(sheet(**table))
    counts = np.array([[float(cell) for cell in cells] for cells in table.values()]).T
    assert block(columns, "counts")["names"] == list(table)
    np.testing.assert_array_equal(features, row_normalise(sp.csr_array(counts)).toarray())


@pytest.mark.parametrize(
    ("width", "density", "extra", "counts"),
    [
        (19, 0.2, {}, 0),  # too few
        (20, 0.7, {}, 0),  # too full
        (20, 0.2, {"year": ["1999"] * 50}, 20),  # never zero: not a count
        (20, 0.2, {"change": ["0"] * 49 + ["-1"]}, 20),  # negative: not a count
    ],
)
def test_what_a_bag_of_words_is(
    width: int, density: float, extra: dict[str, list[str]], counts: int
) -> None:
    columns, _, _ = learned(sheet(**words(50, width, density), **extra))
    names = [len(block(columns, key)["names"]) for key in ("counts", "numbers")]
    assert names == [counts, width + len(extra) - counts]


def test_a_negative_count_is_refused_later() -> None:
    columns, _, _ = learned(sheet(**words(50, 20)))
    other = {f"w{at}": ["0", "-2"] for at in range(20)}
    with pytest.raises(UsageError, match=r"line 3, column 'w0': -2 is negative, but"):
        columns.apply(sheet(**other), ["0", "1"], ignore_progress)
