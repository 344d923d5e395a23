from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data.tables.feature_blocks import (
    NumberBlock,
    read_numbers,
    row_normalise,
    stack_columns,
)
from kryograph.data.tables.recipe import Recipe, learn
from kryograph.data.tables.sheet import NumberColumn, Sheet, near_columns
from kryograph.errors import UsageError
from kryograph.graph import Features


def quiet(stage: str, fraction: float) -> None:
    pass


def sheet(**columns: list[str]) -> Sheet:
    rows = len(next(iter(columns.values())))
    arrays = {name: pa.chunked_array([pa.array(cells)]) for name, cells in columns.items()}
    return Sheet(Path("nodes.csv"), arrays, rows, lambda row: f"line {row + 2}")


def made(
    table: Sheet, text: tuple[str, ...] = ()
) -> tuple[Recipe, npt.NDArray[np.floating], list[str]]:
    ids = [str(row) for row in range(table.rows)]
    columns, features, notes = learn(
        table, ids, id=None, label=None, text=text, ignore=(), progress=quiet
    )
    return columns, dense(features), notes


def dense(features: Features) -> npt.NDArray[np.floating]:
    return features.toarray() if isinstance(features, sp.csr_array) else features


def words(rows: int, width: int, density: float = 0.2) -> dict[str, list[str]]:
    """A bag of words, as columns of text."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, (rows, width)) * (rng.random((rows, width)) < density)
    return {f"w{at}": [str(cell) for cell in counts[:, at]] for at in range(width)}


def test_numbers_are_standardised() -> None:
    columns, features, notes = made(sheet(age=["1", "3", "5"], same=["4", "4", "4"]))
    assert columns.numbers == ("age", "same")
    assert columns.means == (3.0, 4.0)
    assert columns.deviations == (pytest.approx(np.sqrt(8 / 3)), 0.0)
    assert not features[:, 1].any()
    np.testing.assert_allclose(features[:, 0] / features[2, 0], [-1, 0, 1], atol=1e-15)
    assert notes == ["1 column with one value only: 'same'."]


def test_a_constant_column_is_zero_however_it_rounds() -> None:
    columns, features, _ = made(sheet(same=["0.1"] * 10, other=["1"] + ["2"] * 9))
    assert columns.deviations[0] == 0
    assert not features[:, 0].any()


def test_an_empty_number_is_the_mean() -> None:
    columns, features, notes = made(sheet(age=["1", "", "5"]))
    assert columns.means == (3.0,)
    assert columns.deviations == (2.0,)
    assert features[1, 0] == 0
    assert notes == ["1 empty cell in column 'age' filled with its mean."]


def test_many_columns_with_empty_cells_make_one_note() -> None:
    _, _, notes = made(sheet(**{f"x{at}": ["1", "", "2"] for at in range(9)}))
    assert notes == ["9 empty cells in 9 columns filled with the column's mean."]


def test_an_empty_column_is_ignored() -> None:
    columns, features, notes = made(sheet(x=["1", "2"], nothing=["", " "]))
    assert columns.ignored == ("nothing",)
    assert features.shape == (2, 1)
    assert notes == ["The column 'nothing' of nodes.csv is empty and was ignored."]


@pytest.mark.parametrize("written", ["1", " 1 ", "+1", "1.0", "1e0", "1.", "10e-1", "0.1E+1", "01"])
def test_ways_to_write_a_number(written: str) -> None:
    cells = sheet(x=[written, "2"]).numbers("x")
    assert cells is not None
    assert cells.values.tolist() == [1.0, 2.0]


def test_nine_in_ten_make_a_column_of_numbers() -> None:
    mostly = ["1"] * 8 + ["x", ""]
    assert sheet(x=mostly).numbers("x") is None  # 8 of 9
    with pytest.raises(UsageError, match=r"line 11, column 'x': 'x' is not a number"):
        sheet(x=["1", *mostly]).numbers("x")  # 9 of 10
    with pytest.raises(UsageError, match=r"line 2, column 'x': 'old' is not a number"):
        sheet(x=["old", "1"]).numbers("x", required=True)


def test_categories_are_one_hot() -> None:
    columns, features, notes = made(sheet(colour=["red", "blue", "", "red"]))
    assert columns.categories == {"colour": ("blue", "red")}
    assert columns.features == ("colour = blue", "colour = red")
    np.testing.assert_array_equal(features > 0, [[0, 1], [1, 0], [0, 0], [0, 1]])
    assert notes == ["1 empty cell in column 'colour'."]


@pytest.mark.parametrize(("rows", "kinds", "fine"), [(60, 50, True), (60, 51, False)])
def test_how_many_categories_there_may_be(rows: int, kinds: int, fine: bool) -> None:
    table = sheet(kind=[f"k{row % kinds}" for row in range(rows)])
    if fine:
        assert len(made(table)[0].categories["kind"]) == kinds
    else:
        with pytest.raises(UsageError, match=r"more than 50 different values.*--text kind"):
            made(table)


def test_a_tenth_of_the_nodes_may_differ() -> None:
    assert len(made(sheet(kind=[f"k{row % 100}" for row in range(1000)]))[0].features) == 100


def test_text_is_tf_idf_over_all_its_columns() -> None:
    table = sheet(title=["red red apple", "pear"], body=["apple", "red"])
    columns, features, _ = made(table, text=("title", "body"))
    assert columns.words == ("apple", "pear", "red")
    # idf = 1 + log(3 / (1 + documents)); tf = 1 + log(count); rows of length 0.2 each.
    row = np.array([1 + np.log(2), 0, 1 + np.log(2)]) * [1 + np.log(1.5), 1, 1]
    np.testing.assert_allclose(features[0], 0.2 * row / np.linalg.norm(row))


def test_a_bag_of_words_is_divided_by_its_sum() -> None:
    table = words(50, 20)
    columns, features, _ = made(sheet(**table))
    counts = np.array([[float(cell) for cell in cells] for cells in table.values()]).T
    assert columns.counts == tuple(table)
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
    columns, _, _ = made(sheet(**words(50, width, density), **extra))
    assert len(columns.counts) == counts
    assert len(columns.counts) + len(columns.numbers) == width + len(extra)


def test_no_block_drowns_another() -> None:
    table = sheet(
        income=["10000", "20000", "90000", "1"],
        colour=["red", "blue", "red", "red"],
        title=["one two three four five six", "one", "two", ""],
    )
    columns, features, _ = made(table, text=("title",))
    blocks = features[:, :1], features[:, 1:3], features[:, 3:]
    for block in blocks:
        assert np.linalg.norm(block, axis=1).mean() == pytest.approx(0.2)
    assert len(columns.features) == features.shape[1]


def test_features_are_sparse_where_that_is_smaller() -> None:
    ids = [str(at) for at in range(60)]

    def kind(table: Sheet) -> type:
        how: dict[str, object] = {"id": None, "label": None, "text": (), "ignore": ()}
        return type(learn(table, ids, progress=quiet, **how)[1])  # type: ignore[arg-type]

    assert kind(sheet(kind=[f"k{at % 50}" for at in range(60)])) is sp.csr_array
    assert kind(sheet(x=[str(at) for at in range(60)])) is np.ndarray
    assert isinstance(stack_columns([np.ones((9, 6)), sp.csr_array((9, 2))]), np.ndarray)
    assert isinstance(stack_columns([np.ones((9, 2)), sp.csr_array((9, 6))]), sp.csr_array)


def test_the_recipe_survives_json() -> None:
    table = sheet(
        **words(50, 20),
        age=[str(at / 7) for at in range(50)],
        kind=["ü", "é"] * 25,
        title=["one", "two"] * 25,
    )
    ids = [str(at) for at in range(50)]
    columns, features, _ = made(table, text=("title",))
    again = Recipe.from_json(json.loads(json.dumps(columns.to_json(), allow_nan=False)))
    assert again == columns
    np.testing.assert_array_equal(dense(again.apply(table, ids, quiet)[0]), features)


def test_a_negative_count_is_refused_later() -> None:
    columns, _, _ = made(sheet(**words(50, 20)))
    other = {f"w{at}": ["0", "-2"] for at in range(20)}
    with pytest.raises(UsageError, match=r"line 3, column 'w0': -2 is negative, but"):
        columns.apply(sheet(**other), ["0", "1"], quiet)


GOOD = made(sheet(x=["1", "2"], kind=["a", "b"], title=["one", "two"]), text=("title",))[
    0
].to_json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 2),
        ("format", None),
        ("numbers", "x"),
        ("numbers", [1]),
        ("means", [float("nan")]),
        ("means", ["x"]),
        ("means", []),
        ("idf", [1.0]),
        ("factors", [1.0, 2.0]),
        ("categories", {"kind": 3}),
        ("categories", [["kind"]]),
        ("categories", [["x", ["a"]]]),
        ("label", 3),
        ("text", None),
    ],
)
def test_a_damaged_recipe_is_refused(name: str, value: object) -> None:
    Recipe.from_json(GOOD)
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json({**GOOD, name: value})
    fewer = {key: kept for key, kept in GOOD.items() if key != name}
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json(fewer)


def test_a_recipe_that_is_no_dictionary_is_refused() -> None:
    for found in (None, [], "x", 3):
        with pytest.raises(UsageError, match="not one that this version knows"):
            Recipe.from_json(found)


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(0.0)), min_size=1, max_size=30))
def test_statistics_are_numpys(cells: list[float | None]) -> None:
    values = np.array([0.0 if cell is None else cell for cell in cells])
    column = NumberColumn.from_dense(values, np.array([cell is None for cell in cells]))
    table = Sheet(Path("x"), {"x": column}, len(cells), str)
    block = read_numbers(table, ["x"], quiet)
    assert isinstance(block, NumberBlock)
    known = np.array([cell for cell in cells if cell is not None])
    if known.size:
        np.testing.assert_allclose(block.means(), known.mean(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(block.deviations(), known.std(), rtol=1e-6, atol=1e-6)
        assert block.smallest() == known.min()
        assert block.largest() == known.max()
        assert block.zeros() == (known == 0).sum() / len(cells)


def test_near_misses_of_many_columns_stay_short() -> None:
    said = near_columns("w17x", [f"w{at}" for at in range(1000)])
    assert said.startswith(": did you mean 'w17'")
    assert said.endswith("There are 1,000 columns, the first 'w0', 'w1', 'w2'.")
