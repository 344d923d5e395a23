from __future__ import annotations

from fractions import Fraction

import pytest

from kryograph.errors import UsageError
from kryograph.text import (
    duration,
    gigabytes,
    parse_duration,
    parse_rate,
    percent,
    plural,
    quoted,
    quoted_list,
)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), (" 2h ", 7200)])
def test_parse_duration_reads_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "-1m", "0s", "10 minutes"])
def test_parse_duration_refuses_anything_else(text: str) -> None:
    with pytest.raises(UsageError, match="such as 10m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1%", Fraction(1, 100)),
        ("0.5 %", Fraction(1, 200)),
        (" 0.03% ", Fraction(3, 10_000)),
        ("0.01", Fraction(1, 100)),
        ("100%", Fraction(1)),
        ("1", Fraction(1)),
        ("1e-3", Fraction(1, 1000)),
    ],
)
def test_rates_are_exact(text: str, rate: Fraction) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "%", "one", "nan", "inf", "1%%", "1% of", "1e999999999"])
def test_what_is_not_a_number_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="is not a number; write it like '1%'"):
        parse_rate(text)


@pytest.mark.parametrize("text", ["0", "0%", "-1%"])
def test_a_rate_is_above_zero(text: str) -> None:
    with pytest.raises(UsageError, match="must be above 0"):
        parse_rate(text)


def test_a_rate_is_at_most_all() -> None:
    with pytest.raises(UsageError, match="more than 100%"):
        parse_rate("100.1%")
    with pytest.raises(UsageError, match="5 percent is written '5%'"):
        parse_rate("5")


def test_duration_changes_units_at_a_minute_and_a_half_and_at_90_minutes() -> None:
    texts = [duration(seconds) for seconds in (0.4, 89.0, 91.0, 5399.0, 7260.0)]
    assert texts == ["0 s", "89 s", "2 min", "1 h 30 min", "2 h 1 min"]


def test_gigabytes_changes_units_at_one_gigabyte() -> None:
    assert [gigabytes(count) for count in (0, 999e6, 1e9)] == ["0 MB", "999 MB", "1.0 GB"]


def test_percent_has_one_decimal_and_a_dash_for_none() -> None:
    assert [percent(value) for value in (0.0, 0.12345, 1.0, None)] == ["0.0", "12.3", "100.0", "–"]


def test_plural_has_an_s_unless_told_otherwise() -> None:
    assert [plural(n, "run") for n in (0, 1, 2, 1234)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "1,234 runs",
    ]
    assert plural(2, "class", "classes") == "2 classes"


def test_quoted_keeps_a_value_on_one_line_and_cuts_it() -> None:
    assert quoted("a\nb\x1b") == r"'a\nb\x1b'"
    assert quoted("x" * 41) == repr("x" * 40 + "…")
    assert quoted_list(["a", "b c"]) == "'a', 'b c'"
    assert quoted_list([]) == ""
