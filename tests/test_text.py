from __future__ import annotations

import pytest

from kryograph.errors import UsageError
from kryograph.text import duration, parse_duration


def test_durations() -> None:
    assert [parse_duration(text) for text in ("90s", "1.5m", " 2h ")] == [90, 90, 7200]
    for text in ("", "10", "m", "-1m", "0s", "10 minutes"):
        with pytest.raises(UsageError, match="such as 10m"):
            parse_duration(text)


def test_for_people() -> None:
    said = [duration(seconds) for seconds in (0.4, 89.0, 91.0, 5399.0, 7260.0)]
    assert said == ["0 s", "89 s", "2 min", "1 h 30 min", "2 h 1 min"]
