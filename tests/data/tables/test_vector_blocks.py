from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.tables.vector_blocks import Vectors
from kryograph.errors import UsageError
from kryograph.text import ignore_progress
from tests.data.tables.examples import dense, learned, node_table, sheet

SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]


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


def test_a_model_knows_the_length_of_its_vectors() -> None:
    columns, _, _ = learned(sheet(x=SQUARE), {"x": "vector"})
    with pytest.raises(
        UsageError,
        match=r"line 2, column 'x': the vector has 3 numbers, but the model was trained on 2",
    ):
        columns.apply(sheet(x=[[1.0, 2.0, 3.0]]), ["0"], ignore_progress)
