from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import parquet

from kryograph.data.tables import read_tables
from kryograph.data.tables.feature_blocks import stack_columns
from kryograph.data.tables.recipe import learn
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from kryograph.sparse import row_normalise
from kryograph.text import ignore_progress
from tests.data.tables.examples import (
    learned,
    sheet,
    words,
)


def test_numbers_are_standardised() -> None:
    columns, features, notes = learned(sheet(age=["1", "3", "5"], same=["4", "4", "4"]))
    assert columns.to_json()["numbers"] == ["age", "same"]
    assert columns.to_json()["means"] == [3.0, 4.0]
    assert columns.to_json()["deviations"] == [pytest.approx(np.sqrt(8 / 3)), 0.0]
    assert not features[:, 1].any()
    np.testing.assert_allclose(features[:, 0] / features[2, 0], [-1, 0, 1], atol=1e-15)
    assert notes == ["1 column with one value only: 'same'."]


def test_a_constant_column_is_zero_however_it_rounds() -> None:
    columns, features, _ = learned(sheet(same=["0.1"] * 10, other=["1"] + ["2"] * 9))
    assert columns.to_json()["deviations"][0] == 0
    assert not features[:, 0].any()


def test_an_empty_number_is_the_mean() -> None:
    columns, features, notes = learned(sheet(age=["1", "", "5"]))
    assert columns.to_json()["means"] == [3.0]
    assert columns.to_json()["deviations"] == [2.0]
    assert features[1, 0] == 0
    assert notes == ["1 empty cell in column 'age' filled with its mean."]


def test_many_columns_with_empty_cells_make_one_note() -> None:
    _, _, notes = learned(sheet(**{f"x{at}": ["1", "", "2"] for at in range(9)}))
    assert notes == ["9 empty cells in 9 columns filled with the column's mean."]


def test_categories_are_one_hot() -> None:
    columns, features, notes = learned(sheet(colour=["red", "blue", "", "red"]))
    assert columns.to_json()["categories"] == [["colour", ["blue", "red"]]]
    assert columns.features == ("colour = blue", "colour = red")
    np.testing.assert_array_equal(features > 0, [[0, 1], [1, 0], [0, 0], [0, 1]])
    assert notes == ["1 empty cell in column 'colour'."]


@pytest.mark.parametrize(("rows", "kinds", "fine"), [(60, 50, True), (60, 51, False)])
def test_how_many_categories_there_may_be(rows: int, kinds: int, fine: bool) -> None:
    table = sheet(kind=[f"k{row % kinds}" for row in range(rows)])
    if fine:
        assert len(learned(table)[0].features) == kinds
    else:
        with pytest.raises(UsageError, match=r"more than 50 different values.*--text kind"):
            learned(table)


def test_a_tenth_of_the_nodes_may_differ() -> None:
    assert len(learned(sheet(kind=[f"k{row % 100}" for row in range(1000)]))[0].features) == 100


def test_text_is_tf_idf_over_all_its_columns() -> None:
    table = sheet(title=["red red apple", "pear"], body=["apple", "red"])
    columns, features, _ = learned(table, text=("title", "body"))
    assert columns.to_json()["words"] == ["apple", "pear", "red"]
    # idf = 1 + log(3 / (1 + documents)); tf = 1 + log(count); rows of length 0.2 each.
    row = np.array([1 + np.log(2), 0, 1 + np.log(2)]) * [1 + np.log(1.5), 1, 1]
    np.testing.assert_allclose(features[0], 0.2 * row / np.linalg.norm(row))


def test_a_bag_of_words_is_divided_by_its_sum() -> None:
    table = words(50, 20)
    columns, features, _ = learned(sheet(**table))
    counts = np.array([[float(cell) for cell in cells] for cells in table.values()]).T
    assert columns.to_json()["counts"] == list(table)
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
    assert len(columns.to_json()["counts"]) == counts
    assert len(columns.to_json()["counts"]) + len(columns.to_json()["numbers"]) == width + len(
        extra
    )


def test_features_are_sparse_where_that_is_smaller() -> None:
    ids = [str(at) for at in range(60)]

    def kind(table: Sheet) -> type:
        how: dict[str, object] = {"id": None, "label": None, "text": (), "ignore": ()}
        return type(learn(table, ids, progress=ignore_progress, **how)[1])  # type: ignore[arg-type]

    assert kind(sheet(kind=[f"k{at % 50}" for at in range(60)])) is sp.csr_array
    assert kind(sheet(x=[str(at) for at in range(60)])) is np.ndarray
    assert isinstance(stack_columns([np.ones((9, 6)), sp.csr_array((9, 2))]), np.ndarray)
    assert isinstance(stack_columns([np.ones((9, 2)), sp.csr_array((9, 6))]), sp.csr_array)


def test_a_negative_count_is_refused_later() -> None:
    columns, _, _ = learned(sheet(**words(50, 20)))
    other = {f"w{at}": ["0", "-2"] for at in range(20)}
    with pytest.raises(UsageError, match=r"line 3, column 'w0': -2 is negative, but"):
        columns.apply(sheet(**other), ["0", "1"], ignore_progress)


def test_ten_million_categories_cost_little(tmp_path: Path) -> None:
    """A tenth of that here: the column is given up after its first rows."""
    rows = 1_000_000
    table = pa.table({"id": np.arange(rows), "kind": [f"k{i}" for i in range(rows)]})
    path = tmp_path / "nodes.parquet"
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match=r"'kind': it has 1,000,000 different values, more than 1"):
        read_tables(None, path, category=["kind"])
