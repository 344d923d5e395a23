from __future__ import annotations

import pytest

from kryograph.session.check_score import FEWEST, WINDOW, score_checks
from kryograph.stats import wilson_interval


def test_nothing_is_said_of_too_few() -> None:
    score = score_checks([True] * (FEWEST - 1))
    assert (score.n, score.right, score.share, score.low, score.curve) == (9, 9, None, None, ())
    assert not score.enough


def test_only_the_last_fifty_count() -> None:
    score = score_checks([False] * 30 + [True] * WINDOW)
    assert (score.n, score.total, score.right, score.share) == (50, 80, 50, 1.0)
    assert len(score.curve) == 80 - FEWEST + 1
    assert score.curve[0] == wilson_interval(0, 10)
    assert score.curve[-1] == (score.share, score.low, score.high)


@pytest.mark.parametrize(("wrong", "enough"), [(0, True), (5, False)])
def test_more_labels_hardly_help_if_the_interval_is_narrow(wrong: int, enough: bool) -> None:
    score = score_checks([False] * wrong + [True] * (WINDOW - wrong))
    assert score.enough is enough
    assert set(score.as_dict()) >= {"n", "share", "low", "high", "curve", "enough"}
