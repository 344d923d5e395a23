from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from kryograph.data.tables.dates import ambiguity, convert_dates, is_ambiguous, is_dates
from kryograph.errors import UsageError
from tests.data.tables.examples import sheet


def moments(cells: object, order: str | None = None) -> list[datetime | None]:
    table = sheet(x=cells)
    convert_dates(table, "x", order)
    assert table.columns["x"].type == pa.timestamp("us")
    values: list[datetime | None] = table.columns["x"].to_pylist()
    return values


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
