from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data.tables.date_blocks import MOST_SPREADS, Dates, read_days
from kryograph.errors import UsageError
from tests.data.tables.examples import dense, node_table, sheet

NAN = np.nan
OSLO = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1970-01-02", "", "1969-12-31"], [1, NAN, -1]),
        (["19700102", "0001-01-01", "9999-12-31"], [1, -719162, 2932896]),
        (["1970", "1971", ""], [0, 365, NAN]),
        (["1970-02", "197003"], [31, 59]),
        (["1970-01-01T12:00", "1969-12-31 18:00:00", "1970-01-01T06"], [0.5, -0.25, 0.25]),
        (["1970-01-01T12:00:00.123456789", "1970-01-01 12:00:00,5"], [0.5, 0.5]),
        (["1970-01-01T12:00Z", "1970-01-01T12:00:00+06:00", "1970-01-01"], [0.5, 0.25, 0]),
        (["1970-01-01 00:00:00 -0600", "1970-01-01T00+06"], [0.25, -0.25]),
        ([date(1970, 1, 2), None, date(1969, 12, 31)], [1, NAN, -1]),
        ([datetime(1970, 1, 1, 12), None], [0.5, NAN]),
        (
            [datetime(1970, 1, 1, 1, tzinfo=OSLO), datetime(1969, 12, 31, 13, tzinfo=OSLO)],
            [0, -0.5],
        ),
        (pa.array([1, None], pa.timestamp("ns")), [1 / 86400e9, NAN]),
        (pa.array([-86400], pa.timestamp("s")), [-1]),
        (pa.array([86400_000, None], pa.date64()), [1, NAN]),
        ([1970, 1971, None], [0, 365, NAN]),  # a column of years
    ],
)
def test_dates_are_days_since_1970(cells: object, days: list[float]) -> None:
    np.testing.assert_allclose(read_days(sheet(day=cells), "day"), days, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "cell",
    [
        *("31/12/2024", "12.31.2024", "2024-13-01", "2023-02-29", "2024-1-1", "2024-0131", "soon"),
        *("2024-01-01T25:00", "1700000000", "2024-01-01+01:00"),
    ],
)
def test_another_spelling_is_refused_at_its_place(cell: str) -> None:
    cells = ["2024-12-31", "", "2024", *["2024-01-01"] * 9, cell, "2024-02-02", cell]
    with pytest.raises(UsageError) as raised:
        read_days(sheet(day=cells), "day")
    assert str(raised.value) == (
        f"nodes.csv, line 14, column 'day': '{cell}' is not a date such as 2024-12-31 (ISO 8601); "
        "leave the cell empty if it is unknown."
    )


def test_a_column_of_lists_holds_no_dates() -> None:
    with pytest.raises(UsageError, match=r"column 'day': it holds list<.*>, not dates"):
        read_days(sheet(day=[[1], [2]]), "day")


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), min_size=1, max_size=20))
def test_text_and_timestamps_are_the_same_dates(moments: list[datetime]) -> None:
    moments = [moment.replace(microsecond=0) for moment in moments]
    as_text = read_days(sheet(day=[moment.isoformat() for moment in moments]), "day")
    as_time = read_days(sheet(day=pa.array(moments, pa.timestamp("s"))), "day")
    np.testing.assert_array_equal(as_text, as_time)
    expected = [(moment - datetime(1970, 1, 1)) / timedelta(days=1) for moment in moments]
    np.testing.assert_allclose(as_time, expected, rtol=1e-15)


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
