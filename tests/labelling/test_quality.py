"""Quality of predictions that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.graph import UNKNOWN
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.quality import Quality, measure_quality
from kryograph.stats import wilson_interval

CLASSES = ("no", "yes")
LABELS = np.array([0] * 8 + [1] * 2 + [UNKNOWN] * 10)


def measured(
    answers: list[int], importance: list[float] | None = None, positive: int | None = 1
) -> Quality:
    """Quality if the ten labelled nodes get these answers; of the others, three are 'yes'."""
    held_out = np.where(np.array(answers)[:, None] == np.arange(2), 0.9, 0.1)
    weights = np.ones(10) if importance is None else np.array(importance)
    held = HeldOut(np.arange(10), LABELS[:10], held_out, weights)
    free = np.where(np.arange(10) < 3, 0.8, 0.2)
    everything = np.concatenate([held_out, np.stack([1 - free, free], axis=1)])
    return measure_quality(held, LABELS, held_out, everything, positive)


def test_baseline_and_classes_of_ten_labels() -> None:
    quality = measured([0] * 7 + [1] + [1, 0])  # one false alarm, one of two found
    assert (quality.baseline.label, quality.baseline.accuracy) == (0, 0.8)
    assert quality.accuracy.value == pytest.approx(0.8)
    assert quality.balanced_accuracy == pytest.approx((7 / 8 + 1 / 2) / 2)
    no, yes = quality.per_class
    assert (no.labels, no.held_out, no.predicted) == (8, 8, 7)
    assert (yes.labels, yes.held_out, yes.predicted) == (2, 2, 3)
    assert no.precision is not None
    assert yes.recall is not None
    assert yes.precision is not None
    assert no.precision.value == pytest.approx(7 / 8)
    assert (yes.precision.value, yes.recall.value, yes.f1) == (0.5, 0.5, 0.5)
    expected = wilson_interval(1, 2)
    assert (yes.recall.low, yes.recall.high) == pytest.approx(expected[1:])


def test_class_that_is_never_predicted_has_no_precision() -> None:
    _, yes = measured([0] * 10).per_class
    assert yes.precision is None
    assert yes.f1 is None
    assert yes.recall is not None
    assert (yes.recall.value, yes.predicted) == (0.0, 3)


def test_baseline_counts_labels_by_their_weights() -> None:
    """Labels that are balanced by design stand for a graph with other shares."""
    weights = [0.5] * 8 + [3.0] * 2
    quality = measured([0] * 8 + [1, 0], weights)
    assert (quality.baseline.label, quality.baseline.accuracy) == (1, pytest.approx(0.6))
    assert quality.accuracy.value == pytest.approx(0.7)
    no, yes = quality.per_class
    assert no.precision is not None
    assert no.precision.value == pytest.approx(4 / 7)
    assert yes.recall is not None
    assert yes.recall.value == 0.5
    assert quality.ranking is not None
    assert quality.ranking.share == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("answers", "warned"),
    [([0] * 10, True), ([0] * 7 + [1] + [1, 0], True), ([0] * 8 + [1, 0], False)],
)
def test_warning_if_accuracy_is_not_better_than_the_baseline(
    answers: list[int], warned: bool
) -> None:
    warning = measured(answers).warning(CLASSES, "accuracy")
    assert (warning is not None) == warned
    if warning is not None:
        assert "no better than always answering 'no', which is right for 80.0 %" in warning
        assert "a fit for the metric 'f1'" in warning
        for_f1 = measured(answers).warning(CLASSES, "f1")
        assert for_f1 is not None
        assert for_f1.endswith("Look at precision and recall of the classes.")


def test_ranking_needs_a_positive_class_with_and_without_labels() -> None:
    assert measured([0] * 10, positive=None).ranking is None
    ranking = measured([0] * 8 + [1, 1]).ranking
    assert ranking is not None
    assert (ranking.positive, ranking.average_precision) == (1, 1.0)


def test_values_for_json() -> None:
    values = measured([0] * 10).as_dict(CLASSES)
    assert values["baseline"] == {"class": "no", "accuracy": 0.8}
    no, yes = values["per_class"]
    assert (no["class"], no["support"], no["recall"]["mean"]) == ("no", 8, 1.0)
    assert yes["precision"] is None
    assert values["ranking"]["positive"] == "yes"
