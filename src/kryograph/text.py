"""Numbers, names and durations as text for people; durations and label rates read from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from kryograph.errors import UsageError

OnProgress: TypeAlias = Callable[[str, float], None]
"""Callback of a long computation: name of the stage, and the fraction of it that is done."""

# Also the marks that reverse the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Read a duration such as "90s", "10m" or "1h", in seconds.

    >>> parse_duration("10m")
    600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"A duration is a number with s, m or h, such as 10m; it is {text!r}.")
    return float(match[1]) * SECONDS_PER_UNIT[match[2]]


def parse_rate(text: str) -> Fraction:
    """Read a label rate such as "1%" or "0.01" exactly.

    Floating point is not exact enough: 0.07 * 100 is a little more than 7, and rounds up to 8.

    >>> parse_rate("0.5 %"), parse_rate("0.07") * 100
    (Fraction(1, 200), Fraction(7, 1))
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        value = Decimal("nan")
    # An exponent in the thousands is a slip, and would be expanded digit by digit below.
    if rest or not value.is_finite() or abs(value.adjusted()) > 30:
        raise UsageError(f"The label rate {text!r} is not a number; write it like '1%' or '0.01'.")
    if value <= 0:
        raise UsageError(f"The label rate must be above 0; got {text!r}.")
    rate = Fraction(value) / (100 if percent else 1)
    if rate > 1:
        hint = "" if percent else f"; {number.strip()} percent is written '{number.strip()}%'"
        raise UsageError(f"The label rate {text!r} is more than 100%{hint}.")
    return rate


def duration(seconds: float | None) -> str:
    """Format a duration to the second or minute; None is 'unknown'.

    >>> duration(42.0), duration(300.0), duration(9000.0), duration(None)
    ('42 s', '5 min', '2 h 30 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def gigabytes(count: float) -> str:
    """Format a number of bytes in gigabytes, or in megabytes if it is less than one gigabyte.

    >>> gigabytes(3.42e9), gigabytes(57e6)
    ('3.4 GB', '57 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def percent(fraction: float | None) -> str:
    """Format a fraction in per cent with one decimal and without a sign; None is a dash.

    >>> percent(0.8351), percent(None)
    ('83.5', '–')
    """
    return "–" if fraction is None else f"{100 * fraction:.1f}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Format a count with its noun; the plural is `nouns`, or else `noun` and an s.

    >>> plural(1, "node"), plural(1200, "class", "classes")
    ('1 node', '1,200 classes')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def quoted(value: object, length: int = 40) -> str:
    r"""Put a value in quotation marks, on one line and cut after `length` characters.

    >>> quoted("one\ntwo"), quoted("x" * 50, length=5)
    ("'one\\ntwo'", "'xxxxx…'")
    """
    text = str(value)
    return repr(text if len(text) <= length else text[:length] + "…")


def printable(text: str) -> str:
    r"""Spell control characters, which could change or hide what a terminal shows.

    Tabs and ends of lines are kept.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return _CONTROL.sub(lambda character: repr(character[0])[1:-1], text)


def quoted_list(names: Iterable[str]) -> str:
    """Put names in quotation marks, with commas between them.

    >>> quoted_list(["id", "topic"])
    "'id', 'topic'"
    """
    return ", ".join(quoted(name) for name in names)


def ignore_progress(stage: str, fraction: float) -> None:
    """Default callback for `progress`; does nothing."""
