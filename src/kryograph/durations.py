"""Durations: how a person writes them, and how they are read to one."""

from __future__ import annotations

import re

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
