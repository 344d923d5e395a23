from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data.tables.node_table import column_statistics
from kryograph.data.tables.sheet import NumberColumn, Sheet
from tests.data.tables.examples import node_table, sheet


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(0.0)), min_size=1, max_size=30))
def test_statistics_are_numpys(cells: list[float | None]) -> None:
    values = np.array([np.nan if cell is None else cell for cell in cells])
    table = Sheet(Path("x"), {"x": NumberColumn.from_dense(values)}, len(cells), str)
    column = node_table(table, {}).numbers(["x"])
    np.testing.assert_array_equal(column.toarray()[:, 0], values)
    means, deviations = column_statistics(column)
    known = values[~np.isnan(values)]
    if known.size:
        np.testing.assert_allclose(means, known.mean(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(deviations, known.std(), rtol=1e-6, atol=1e-6)
        assert deviations == 0 or known.min() < known.max()


def test_columns_are_listed_by_kind() -> None:
    kinds = {"a": "number", "b": "text", "c": "number"}
    table = node_table(sheet(a=["1"], b=["x"], c=["2"]), kinds)
    assert table.of_kind("number") == ("a", "c")
    assert table.of_kind("date") == ()
    assert table.bag_of_words.tolist() == [False, False]
