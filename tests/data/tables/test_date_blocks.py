from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.tables.date_blocks import MOST_SPREADS, Dates, read_days
from tests.data.tables.examples import dense, node_table, sheet


def test_dates_are_days_since_1970() -> None:
    days = read_days(sheet(day=["1970-01-02", "", "1969-12-31T18:00"]), "day")
    np.testing.assert_array_equal(days, [1, np.nan, -0.25])


def test_a_date_has_five_features() -> None:
    """Around New Year of 1970, a Thursday, and thus Mondays four days apart from Fridays."""
    cells = ["1969-12-29", "1970-01-01", "1970-01-04"]
    table = node_table(sheet(opened=cells), {"opened": "date"})
    dates = Dates.learn(table)
    assert dates.features == (
        "opened (days)",
        "opened (month, sin)",
        "opened (month, cos)",
        "opened (weekday, sin)",
        "opened (weekday, cos)",
    )
    assert dates.medians == (0.0,)
    assert dates.spreads == (pytest.approx(3 / 1.349),)  # the quartiles are -1.5 and 1.5
    months, weekdays = np.array([11, 0, 0]) / 12, np.array([0, 3, 6]) / 7
    circles = [part(2 * np.pi * some) for some in (months, weekdays) for part in (np.sin, np.cos)]
    expected = np.stack(circles, axis=1)
    features = dense(dates.apply(table))
    np.testing.assert_allclose(features[:, 0], [-1.349, 0, 1.349])
    np.testing.assert_allclose(features[:, 1:], expected - expected.mean(axis=0), atol=1e-12)
    assert table.notes == []


def test_an_empty_date_is_average_and_marked() -> None:
    table = node_table(sheet(opened=["2024-03-01", "", "2024-03-04", ""]), {"opened": "date"})
    dates = Dates.learn(table)
    assert dates.features[-1] == "opened is empty"
    features = dense(dates.apply(table))
    assert not features[[1, 3], :5].any()
    assert features[:, 5].tolist() == [-1, 1, -1, 1]
    assert not features[:, 1:3].any()  # all in March
    assert table.notes == ["2 empty cells in column 'opened' filled with its average."]


def test_a_column_with_one_date_is_zero() -> None:
    table = node_table(sheet(opened=["2024-03-01"] * 3), {"opened": "date"})
    assert not dense(Dates.learn(table).apply(table)).any()


def test_a_far_date_does_not_outweigh_the_others() -> None:
    cells = [f"2024-03-{day:02d}" for day in range(1, 31)] + ["9999-12-31"]
    table = node_table(sheet(opened=cells), {"opened": "date"})
    features = dense(Dates.learn(table).apply(table))
    assert features[-1, 0] == MOST_SPREADS
    assert np.abs(features[:-1, 0]).max() < 2


def test_a_damaged_block_of_dates_is_refused() -> None:
    table = node_table(sheet(opened=["2024-03-01", "2024-04-02"]), {"opened": "date"})
    values = Dates.learn(table).to_json()
    assert Dates.from_json(values) == Dates.learn(table)
    for name, value in (("centres", [[0.0] * 3]), ("medians", []), ("empty_shares", [1.0])):
        with pytest.raises(ValueError, match=r"match|share"):
            Dates.from_json({**values, name: value})
