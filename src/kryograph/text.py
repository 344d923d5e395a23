"""Durations: how a person writes them, and how they are read to one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kryograph.errors import UsageError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds that a text such as "90s", "10m" or "1h" names.

    >>> parse_duration("10m")
    600.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"A duration is a number with s, m or h, such as 10m; it is {text!r}.")
    return float(found[1]) * UNITS[found[2]]


def duration(seconds: float | None) -> str:
    """About how long, for people.

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
    """Bytes for people.

    >>> gigabytes(3.42e9), gigabytes(57e6)
    ('3.4 GB', '57 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def percent(fraction: float | None) -> str:
    """A fraction in per cent with one decimal; a dash for none.

    >>> percent(0.8351), percent(None)
    ('83.5', '–')
    """
    return "–" if fraction is None else f"{100 * fraction:.1f}"


def plural(count: int, what: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "node"), plural(1200, "class", "classes")
    ('1 node', '1,200 classes')
    """
    return f"{count:,} {what if count == 1 else many or what + 's'}"


def quoted(text: object, most: int = 40) -> str:
    """A value in quotation marks, on one line and not too long.

    >>> quoted("one\\ntwo"), quoted("x" * 50, most=5)
    ("'one\\\\ntwo'", "'xxxxx…'")
    """
    whole = str(text)
    return repr(whole if len(whole) <= most else whole[:most] + "…")


def counted(n: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "empty cell"), counted(1200, "empty cell")
    ('1 empty cell', '1,200 empty cells')
    """
    return f"{n:,} {what}{'s' if n != 1 else ''}"


def quoted_list(names: Iterable[str]) -> str:
    """Names in quotation marks, with commas."""
    return ", ".join(quoted(name) for name in names)
