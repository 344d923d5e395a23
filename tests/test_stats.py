from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.runs.perform import Run
from kryograph.runs.runner import Result
from kryograph.stats import summarise


def test_the_interval_by_hand() -> None:
    # Two values: mean 0.62, s = 0.04 / √2, t(0.975, 1) = 12.7062, half = t · s / √2 = t · 0.02.
    summary = summarise([0.60, 0.64])
    assert summary.mean == pytest.approx(0.62)
    assert summary.std == pytest.approx(0.0282843, abs=1e-7)
    assert summary.ci95 == pytest.approx((0.62 - 0.254124, 0.62 + 0.254124), abs=1e-6)
    assert summary.n == 2


def test_the_interval_stays_among_fractions() -> None:
    assert summarise([0.80, 0.84]).ci95 == pytest.approx((0.82 - 0.254124, 1.0), abs=1e-6)
    assert summarise([0.20, 0.16]).ci95 == pytest.approx((0.0, 0.18 + 0.254124), abs=1e-6)


def test_the_interval_of_ten_by_hand() -> None:
    # 0.1, 0.2, …, 1.0: mean 0.55, s² = 0.825 / 9, t(0.975, 9) = 2.262157.
    values = [k / 10 for k in range(1, 11)]
    half = 2.262157 * math.sqrt(0.825 / 9) / math.sqrt(10)
    summary = summarise(values)
    assert summary.mean == pytest.approx(0.55)
    assert summary.std == pytest.approx(math.sqrt(0.825 / 9))
    assert summary.ci95 == pytest.approx((0.55 - half, 0.55 + half), abs=1e-6)


def test_one_value_has_no_interval() -> None:
    summary = summarise([0.7])
    assert (summary.mean, summary.std, summary.ci95, summary.n) == (0.7, None, (None, None), 1)


def test_equal_values_have_an_interval_of_no_width() -> None:
    summary = summarise([0.5, 0.5, 0.5])
    assert (summary.std, summary.ci95) == (0, (0.5, 0.5))


@given(st.lists(st.floats(0.49, 0.51), min_size=2, max_size=30))
def test_the_interval_is_centred_and_does_not_depend_on_the_order(values: list[float]) -> None:
    summary = summarise(values)
    low, high = summary.ci95
    assert low is not None
    assert high is not None
    assert low <= summary.mean <= high
    assert low + high == pytest.approx(2 * statistics.fmean(values))
    assert summarise(values[::-1]).ci95 == pytest.approx((low, high))


def test_a_result_as_a_dictionary(result: Result) -> None:
    found = result.as_dict()
    assert set(found) == {
        *(
            "system",
            "dataset",
            "split",
            "protocol",
            "stop",
            "operator",
            "settings",
            "settings_source",
        ),
        *("device", "precision", "threads", "nodes", "paper", "runs", "test_accuracy"),
    }
    assert found["runs"][1] == {
        "seed": 1,
        "split_digest": "0123456789abcdef",
        "epochs": 120,
        "seconds": 1.5,
        "validation_accuracy": 0.79,
        "test_accuracy": 0.84,
    }
    assert found["test_accuracy"].keys() == {"mean", "std", "ci95", "n"}
    assert found["test_accuracy"]["mean"] == pytest.approx(0.82)
    assert found["settings"] == {"hidden": 8}
    assert found["paper"] == 0.8351


def test_a_result_survives_json(result: Result, finished: Run) -> None:
    one = replace(result, runs=(replace(finished, validation_accuracy=None),), paper=None)
    read = json.loads(json.dumps(one.as_dict()))
    assert read["runs"][0]["validation_accuracy"] is None
    assert read["test_accuracy"] == {"mean": 0.8, "std": None, "ci95": [None, None], "n": 1}
