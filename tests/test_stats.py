from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve

from kryograph.experiments.standings import selection_bias
from kryograph.stats import (
    METRICS,
    accuracy,
    balanced_accuracy,
    calibration_error,
    expected_maximum,
    f1_score,
    precision_recall,
    summarise,
    wilson_interval,
)


def test_precision_and_recall_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 20, 200) / 20  # with ties
    positive, weights = rng.random(200) < 0.2 + 0.5 * scores, rng.random(200) + 0.5
    curve = precision_recall(scores, positive, weights)
    expected = average_precision_score(positive, scores, sample_weight=weights)
    assert curve.average_precision == pytest.approx(expected)
    precision, recall, thresholds = precision_recall_curve(positive, scores, sample_weight=weights)
    np.testing.assert_allclose(curve.thresholds, thresholds[::-1])
    np.testing.assert_allclose(curve.precision, precision[-2::-1])
    np.testing.assert_allclose(curve.recall, recall[-2::-1])


def test_precision_of_a_random_order_is_the_share_of_the_positive() -> None:
    curve = precision_recall(np.full(10, 0.3), np.arange(10) < 4)
    assert (curve.thresholds.tolist(), curve.recall.tolist()) == ([0.3], [1.0])
    assert curve.average_precision == pytest.approx(0.4)


def test_f1_of_a_class_that_is_never_predicted_is_zero() -> None:
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
    assert f1_score(probabilities, np.array([0, 1]), 1) == 0
    assert f1_score(probabilities, np.array([0, 1]), 0) == pytest.approx(2 / 3)


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


def test_accuracy_is_the_share_of_right_nodes_and_of_equal_probabilities_the_first_counts() -> None:
    probabilities = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5], [0.1, 0.9]])
    assert accuracy(probabilities, np.array([1, 1, 0, 1])) == 0.75
    assert METRICS["accuracy"] is accuracy


def test_wilson_interval_has_a_width_for_all_and_for_none() -> None:
    assert wilson_interval(0, 5)[1] == pytest.approx(0)
    assert wilson_interval(5, 5)[2] == pytest.approx(1)
    assert wilson_interval(5, 5)[1] > 0.5


def test_wilson_interval_contains_the_share_whatever_is_rounded() -> None:
    for n in np.linspace(0.3, 40, 4001):  # effective numbers of labels are no whole numbers
        for right in (0.0, n / 3, n):
            share, low, high = wilson_interval(right, n)
            assert 0 <= low <= share <= high <= 1


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


def test_the_calibration_error_by_hand() -> None:
    probabilities = np.array([[0.95, 0.05], [0.05, 0.95], [0.65, 0.35], [0.4, 0.6]])
    labels = np.array([0, 0, 0, 1])
    # A bin from 0.9 with one right of two, and a bin from 0.6 with two right ones of 0.65 and 0.6.
    expected = (2 * (0.95 - 0.5) + (0.35 + 0.4)) / 4
    assert calibration_error(probabilities, labels) == pytest.approx(expected)
    assert calibration_error(np.array([[1.0, 0.0]]), np.array([0])) == 0


def test_balanced_accuracy_counts_classes_alike() -> None:
    labels = np.array([0] * 8 + [1] * 2)
    majority = np.tile([0.9, 0.1], (10, 1))
    assert accuracy(majority, labels) == 0.8
    assert balanced_accuracy(majority, labels) == 0.5
    perfect = np.eye(2)[labels]
    assert balanced_accuracy(perfect, labels) == 1.0


def test_balanced_accuracy_leaves_classes_without_nodes_out() -> None:
    labels = np.array([0, 2, 2])
    assert balanced_accuracy(np.eye(3)[[0, 2, 0]], labels) == 0.75


def test_balanced_accuracy_is_accuracy_if_classes_are_equally_large() -> None:
    labels = np.arange(30) % 3
    probabilities = np.random.default_rng(0).dirichlet([1, 1, 1], 30)
    assert balanced_accuracy(probabilities, labels) == pytest.approx(
        accuracy(probabilities, labels)
    )
