from __future__ import annotations

import numpy as np
import pytest

from kryograph.experiments.standings import selection_bias
from kryograph.stats import expected_maximum


def test_the_maximum_of_few_normals_is_known() -> None:
    known = {1: 0.0, 2: 1 / np.sqrt(np.pi), 3: 1.5 / np.sqrt(np.pi)}
    assert {n: expected_maximum(n) for n in known} == pytest.approx(known, abs=1e-9)


def test_luck_is_what_a_search_among_equals_prints() -> None:
    rng = np.random.default_rng(0)
    searches = rng.normal(0.7, 0.05, (4000, 20, 10))
    printed = searches.mean(axis=2).max(axis=1)
    assert printed.mean() - 0.7 == pytest.approx(selection_bias(0.05), rel=0.03)


def test_one_trial_or_no_spread_has_no_luck() -> None:
    assert selection_bias(0.05, trials=1) == 0
    assert selection_bias(0.0) == 0
