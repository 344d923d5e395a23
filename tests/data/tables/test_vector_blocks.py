from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kryograph.data.tables.vector_blocks import Vectors, is_vector, read_vectors
from kryograph.errors import UsageError
from kryograph.text import ignore_progress
from tests.data.tables.examples import dense, learned, node_table, sheet

SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]
TYPES = (
    pa.list_(pa.float64()),
    pa.list_(pa.float32(), 2),
    pa.large_list(pa.float32()),
    pa.list_(pa.int8()),
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_vectors_of_every_type_are_read(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array(SQUARE[:3], kind), pa.array([None, *SQUARE[3:]], kind)])
    vectors, empty = read_vectors(sheet(x=column.combine_chunks()), "x")
    np.testing.assert_array_equal(vectors, [*SQUARE[:3], [0, 0], SQUARE[3]])
    assert empty.tolist() == [3]
    assert is_vector(kind)


def test_a_vector_keeps_its_angles() -> None:
    table = node_table(sheet(x=[[a + 7, b] for a, b in SQUARE]), {"x": "vector"})
    vectors = Vectors.learn(table)
    assert vectors.features == ("x[0]", "x[1]")
    assert vectors.centres == ((7.0, 0.0),)
    assert vectors.lengths == (pytest.approx(np.sqrt(5)),)  # (1 + 1 + 9 + 9) / 4
    np.testing.assert_allclose(vectors.apply(table), np.array(SQUARE) / np.sqrt(5))


def test_two_columns_of_vectors_weigh_the_same() -> None:
    rng = np.random.default_rng(0)
    columns = {"small": rng.normal(0, 1e-3, (50, 4)), "large": rng.normal(5, 1e3, (50, 9))}
    table = node_table(
        sheet(**{name: cells.tolist() for name, cells in columns.items()}),
        dict.fromkeys(columns, "vector"),
    )
    features = dense(Vectors.learn(table).apply(table))
    for part in (features[:, :4], features[:, 4:]):
        assert (part**2).sum(axis=1).mean() == pytest.approx(1)


def test_an_empty_vector_is_the_mean_and_marked() -> None:
    table = node_table(sheet(x=[[1.0, 2.0], None, [3.0, 2.0], None]), {"x": "vector"})
    vectors = Vectors.learn(table)
    assert vectors.features == ("x[0]", "x[1]", "x is empty")
    expected = [[-1, 0, -1], [0, 0, 1], [1, 0, -1], [0, 0, 1]]
    np.testing.assert_allclose(vectors.apply(table), expected)
    assert table.notes == ["2 empty cells in column 'x' filled with its mean."]


def test_equal_vectors_are_zero() -> None:
    _, features, _ = learned(sheet(x=[[0.1, 0.3]] * 7), {"x": "vector"})
    assert not features.any()


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        (
            [[1.0, 2.0], [1.0], [3.0]],
            r"line 3, column 'x': the list has 1 number, but that of line 2",
        ),
        (
            [None, [1.0, 2.0], []],
            r"line 4, column 'x': the list has 0 numbers, but that of line 3 has 2",
        ),
        ([[1.0, 2.0], None, [1.0, None]], r"line 4, column 'x': number 1 of the list is empty"),
        (
            [[1.0], [float("nan")]],
            r"line 3, column 'x': number 0 of the list is empty or not finite",
        ),
        ([[1.0, 2.0], [float("inf"), 1.0]], r"line 3, column 'x': number 0 .*not finite"),
        (["a", "b"], r"column 'x': it holds string, not vectors"),
        ([["a"], ["b"]], r"column 'x': it holds list<.*string>, not vectors"),
    ],
)
def test_a_fault_is_named_with_its_place(cells: list[object], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        read_vectors(sheet(x=cells), "x")


def test_a_model_knows_the_length_of_its_vectors() -> None:
    columns, _, _ = learned(sheet(x=SQUARE), {"x": "vector"})
    with pytest.raises(
        UsageError,
        match=r"line 2, column 'x': the list has 3 numbers, but the model was trained on 2",
    ):
        columns.apply(sheet(x=[[1.0, 2.0, 3.0]]), ["0"], ignore_progress)


def test_text_and_numbers_are_no_vectors() -> None:
    for kind in (pa.string(), pa.float64(), pa.list_(pa.string()), pa.list_(pa.list_(pa.int8()))):
        assert not is_vector(kind)
