from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Task
from kryograph.training.class_shares import reweighted
from kryograph.training.purpose import (
    PURPOSES,
    WEIGHTINGS,
    Purpose,
    drawn_shares,
    f1_factor,
    rarer_class,
)

LABELS = np.array([0, 0, 0, 1])
DRAWN = np.array([0.75, 0.25])


def purpose(
    metric: str = "accuracy", class_weight: str = "by metric", positive: int = -1
) -> Purpose:
    return Purpose(metric, class_weight, positive)


def test_rarer_class_is_the_last_of_equally_rare_ones() -> None:
    assert rarer_class(np.array([3, 1, 2])) == 1
    assert rarer_class(np.array([0.5, 0.5])) == 1
    assert rarer_class(np.array([0.1 + 0.2, 0.3, 0.4])) == 1


def test_drawn_shares_count_a_class_without_labels_as_half_a_label() -> None:
    labels = np.array([0, 0, 1, UNKNOWN])
    task = Task.labelled(toy.path(4), labels, ("a", "b", "c"))
    np.testing.assert_allclose(drawn_shares(task), np.array([2, 1, 0.5]) / 3.5)


@pytest.mark.parametrize("metric", PURPOSES)
@pytest.mark.parametrize("class_weight", WEIGHTINGS)
def test_classes_count_alike_for_balanced_accuracy_or_if_told_so(
    metric: str, class_weight: str
) -> None:
    importance = purpose(metric, class_weight).importance(LABELS, DRAWN)
    by_metric = class_weight == "by metric" and metric == "balanced-accuracy"
    alike = class_weight == "balanced" or by_metric
    expected = [2 / 3, 2 / 3, 2 / 3, 2] if alike else [1, 1, 1, 1]
    np.testing.assert_allclose(importance, expected)


def test_check_refuses_metrics_of_one_class_among_three() -> None:
    purpose("f1").check(2)
    purpose("balanced-accuracy").check(3)
    with pytest.raises(UsageError, match=r"'average-precision' is one of two classes.*there are 3"):
        purpose("average-precision").check(3)
    with pytest.raises(UsageError, match="has the number 2, and there are 2"):
        purpose("f1", positive=2).check(2)


def test_f1_factor_puts_the_threshold_at_half_of_the_largest_expected_f1() -> None:
    # Taking two nodes: 2 · 1.0 / (2 + 1.2) = 0.625, better than one (0.545) and three (0.571).
    chances = np.array([0.2, 0.6, 0.4])
    assert f1_factor(chances, np.ones(3)) == pytest.approx((1 - 0.3125) / 0.3125)
    # A node of weight two is a node listed twice.
    twice = f1_factor(np.array([0.2, 0.2, 0.6, 0.4]), np.ones(4))
    assert f1_factor(chances, np.array([2.0, 1, 1])) == pytest.approx(twice)
    assert f1_factor(np.zeros(3), np.ones(3)) == pytest.approx(1e6, rel=1e-5)


def test_decision_factors_for_f1_move_the_decision_and_nothing_else() -> None:
    """Chances of 0.4 are taken for the positive class if half of the best F1 is lower."""
    positive = np.array([0.4] * 10 + [0.01] * 90)
    held_out = np.stack([1 - positive, positive], axis=1)
    labels = np.zeros(100, dtype=np.int64)
    labels[[0, 1, 2, 3]] = 1
    drawn, same = np.array([0.96, 0.04]), np.ones(2)
    usual, moved = (
        purpose(metric).decision_factors(held_out, labels, drawn, same)
        for metric in ("accuracy", "f1")
    )
    np.testing.assert_array_equal(usual, same)
    assert reweighted(held_out, usual)[0].argmax() == 0
    assert reweighted(held_out, moved)[0].argmax() == 1
    assert reweighted(held_out, moved)[50].argmax() == 0
    assert moved[0] == 1
    other = purpose("f1", positive=0).decision_factors(held_out, labels, drawn, same)
    assert other[1] == 1
    ranking = purpose("average-precision").decision_factors(held_out, labels, drawn, same)
    np.testing.assert_array_equal(ranking, same)


def test_decision_factors_are_the_growth_of_shares_except_for_balanced_accuracy() -> None:
    shares, growth = np.array([0.9, 0.1]), np.array([1.8, 0.2])
    held_out, labels = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0, 1])
    factors = purpose().decision_factors(held_out, labels, shares, growth)
    np.testing.assert_allclose(factors, growth)
    alike = purpose("balanced-accuracy").decision_factors(held_out, labels, shares, growth)
    np.testing.assert_array_equal(alike, np.ones(2))


def test_label_factors_are_ones_if_the_labels_are_even() -> None:
    held_out, even = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0.5, 0.5])
    for metric in ("accuracy", "balanced-accuracy"):
        factors = purpose(metric).label_factors(held_out, np.array([0, 1]), even)
        np.testing.assert_allclose(factors, np.ones(2))
