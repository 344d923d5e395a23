from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data.tables.dates import (
    ambiguity,
    convert_dates,
    is_ambiguous,
    is_dates,
    parse_dates,
)
from kryograph.errors import UsageError
from tests.data.tables.examples import sheet

NAN = np.nan
OSLO = timezone(timedelta(hours=1))


def moments(cells: object, order: str | None = None) -> list[datetime | None]:
    table = sheet(x=cells)
    convert_dates(table, "x", order)
    assert table.columns["x"].type == pa.timestamp("us")
    values: list[datetime | None] = table.columns["x"].to_pylist()
    return values


def days_of(cells: object) -> npt.NDArray[np.float64]:
    """Days since 1970-01-01 of the dates of a column."""
    ticks = parse_dates(sheet(day=cells), "day").cast(pa.int64()).to_numpy()
    return np.asarray(ticks, dtype=np.float64) / 86400e6


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1970-01-02", "", "1969-12-31"], [1, NAN, -1]),
        (["19700102", "0001-01-01", "9999-12-31"], [1, -719162, 2932896]),
        (["1970", "1971", ""], [0, 365, NAN]),
        (["1970-02", "197003"], [31, 59]),
        (["1970-01-01T12:00", "1969-12-31 18:00:00", "1970-01-01T06"], [0.5, -0.25, 0.25]),
        (["1970-01-01T00:00:00.123456789", "1970-01-01 00:00:08,64"], [0.123456 / 86400, 1e-4]),
        (["1970-01-01T12:00Z", "1970-01-01T12:00:00+06:00", "1970-01-01"], [0.5, 0.25, 0]),
        (["1970-01-01 00:00:00 -0600", "1970-01-01T00+06"], [0.25, -0.25]),
        ([date(1970, 1, 2), None, date(1969, 12, 31)], [1, NAN, -1]),
        ([datetime(1970, 1, 1, 12), None], [0.5, NAN]),
        (
            [datetime(1970, 1, 1, 1, tzinfo=OSLO), datetime(1969, 12, 31, 13, tzinfo=OSLO)],
            [0, -0.5],
        ),
        (pa.array([86400 * 10**9 + 1, None], pa.timestamp("ns")), [1, NAN]),
        (pa.array([-86400], pa.timestamp("s")), [-1]),
        (pa.array([86400_000, None], pa.date64()), [1, NAN]),
        ([1970, 1971, None], [0, 365, NAN]),  # a column of years
    ],
)
def test_dates_are_days_since_1970(cells: object, days: list[float]) -> None:
    np.testing.assert_allclose(days_of(cells), days, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "cell",
    [
        *("2024-13-01", "2023-02-29", "2023-04-31", "20230229", "2024-1-1", "2024-0131", "soon"),
        *("2024-01-01T25:00", "2024-01-01T09:60", "1700000000", "2024-01-01+01:00", "0000-01-01"),
    ],
)
def test_another_spelling_is_refused_at_its_place(cell: str) -> None:
    cells = ["2024-12-31", "", "2024", *["2024-01-01"] * 9, cell, "2024-02-02", cell]
    with pytest.raises(UsageError) as raised:
        days_of(cells)
    assert str(raised.value) == (
        f"nodes.csv, line 14, column 'day': '{cell}' is not a date such as 2024-12-31; leave the "
        "cell empty if it is unknown, or read the column as --category day (1 more cell like this)."
    )


def test_a_column_of_lists_holds_no_dates() -> None:
    with pytest.raises(UsageError, match=r"column 'day': it holds list<.*>, not dates"):
        days_of([[1], [2]])


@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), min_size=1, max_size=20))
def test_text_and_timestamps_are_the_same_dates(moments: list[datetime]) -> None:
    moments = [moment.replace(microsecond=0) for moment in moments]
    as_text = days_of([moment.isoformat() for moment in moments])
    as_time = days_of(pa.array(moments, pa.timestamp("s")))
    np.testing.assert_array_equal(as_text, as_time)
    expected = [(moment - datetime(1970, 1, 1)) / timedelta(days=1) for moment in moments]
    np.testing.assert_allclose(as_time, expected, rtol=1e-15)


def test_ways_to_write_a_date() -> None:
    cells = [
        *("2024-12-31", "2024-12-31T09:30:00", "2024-12-31 09:30", "", "2024-12-31T09:30:00Z"),
        *("2024-12-31T09:30:00.250", "2024-12-31 11:30:00+02:00", "2024-12-31T09:30:00-0100"),
    ]
    assert is_dates(sheet(x=cells), "x")
    morning = datetime(2024, 12, 31, 9, 30)
    assert moments(cells) == [
        *(datetime(2024, 12, 31), morning, morning, None, morning),
        *(morning.replace(microsecond=250_000), morning, morning + timedelta(hours=1)),
    ]


def test_types_of_arrow() -> None:
    zone = timezone(timedelta(hours=2))
    noon = datetime(2024, 6, 1, 12, tzinfo=zone)
    assert moments(pa.array([noon], pa.timestamp("ns", "+02:00"))) == [datetime(2024, 6, 1, 10)]
    assert moments(pa.array([datetime(2024, 6, 1).date()])) == [datetime(2024, 6, 1)]
    assert is_dates(sheet(x=pa.array([1, 2], pa.date32())), "x")


@pytest.mark.parametrize("cells", [["2024"], ["a"], [""], ["20240101"], ["2024-13-01"], [1, 2]])
def test_what_is_no_date(cells: list[object]) -> None:
    assert not is_dates(sheet(x=cells), "x")


def test_a_day_that_its_month_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match=r"line 3, column 'x': '2024-02-30' is not a date"):
        moments(["2024-02-01", "2024-02-30"])
    cells = ["2024-01-01"] * 60 + ["soon", "later"]
    assert is_dates(sheet(x=cells), "x")
    with pytest.raises(UsageError, match=r"line 62, .*'soon' is not a date.*\(1 more cell like"):
        moments(cells)


def test_the_order_of_day_and_month_is_never_guessed() -> None:
    table = sheet(x=["31/12/2024", "3.4.2024", ""])
    assert is_ambiguous(table, "x")
    assert not is_dates(table, "x")
    error = str(ambiguity(table, "x"))
    assert "line 2, column 'x': '31/12/2024' may be day-first or month-first" in error
    assert "--date x=day-first" in error
    assert moments(["31/12/2024", "3.4.2024", ""], "day-first") == [
        datetime(2024, 12, 31),
        datetime(2024, 4, 3),
        None,
    ]
    assert moments(["12/31/2024 09:30"], "month-first") == [datetime(2024, 12, 31, 9, 30)]
    with pytest.raises(UsageError, match="'31/12/2024' is not a date"):
        moments(["31/12/2024"], "month-first")
    with pytest.raises(UsageError, match=r"line 3, .*'31/12/2024' may be day-first or month-first"):
        moments(["2024-12-31", "31/12/2024"])
