from __future__ import annotations

import numpy as np
import pytest

from kryograph.errors import UsageError
from kryograph.labelling.calibration import (
    Calibration,
    calibrate,
    check_labels_of_classes,
    labels_needed,
    positive_class,
    reliability,
)
from kryograph.stats import tempered


def drawn(n: int, seed: int, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and labels drawn from them; the probabilities are then made sharper."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet([0.7, 0.7, 0.7], n)
    labels = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    return tempered(true, 1 / sharpness), labels


def test_tempered_changes_nothing_at_temperature_one() -> None:
    probabilities, _ = drawn(20, 0, 1.0)
    np.testing.assert_allclose(tempered(probabilities, 1.0), probabilities, atol=1e-12)


def test_tempered_stays_finite_for_zero_and_one() -> None:
    probabilities = tempered(np.array([[1.0, 0.0]]), 0.05)
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_sets_hold_the_true_class_with_the_stated_coverage(coverage: float) -> None:
    covered = []
    for seed in range(40):
        probabilities, labels = drawn(400, seed, 3.0)
        calibration = calibrate(probabilities[:100], labels[:100], coverage)
        sets = calibration.sets(calibration.probabilities(probabilities[100:]))
        covered.append(sets[np.arange(300), labels[100:]].mean())
    assert np.mean(covered) == pytest.approx(coverage, abs=0.015)


def test_calibrate_takes_the_threshold_of_split_conformal_prediction() -> None:
    # 19 held-out nodes and 90 %: of 20, two may be left out, so the second smallest counts.
    true = np.arange(1, 20) / 20
    raw = np.stack([true, 1 - true], axis=1)
    calibration = calibrate(raw, np.zeros(19, dtype=int))
    expected = tempered(raw, calibration.temperature)[1, 0]
    assert calibration.threshold == pytest.approx(expected)


def test_calibrate_keeps_a_temperature_that_is_known() -> None:
    true = np.arange(1, 20) / 20
    raw = np.stack([true, 1 - true], axis=1)
    calibration = calibrate(raw, np.zeros(19, dtype=int), temperature=1.0)
    assert calibration.temperature == 1
    assert calibration.threshold == pytest.approx(0.1)  # the second smallest, as it was


def test_sets_hold_every_class_if_there_are_too_few_labels() -> None:
    raw = np.tile([0.9, 0.06, 0.04], (8, 1))
    calibration = calibrate(raw, np.zeros(8, dtype=int))
    assert calibration.threshold == 0
    assert calibration.sets(raw).all()


def test_temperature_of_a_node_with_weight_two_is_that_of_a_node_listed_twice() -> None:
    raw, labels = drawn(60, 0, 3.0)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    importance = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = calibrate(raw, labels, importance=importance)
    repeated = calibrate(raw[twice], labels[twice])
    assert weighted.temperature == pytest.approx(repeated.temperature, rel=1e-4)
    assert weighted.temperature != pytest.approx(calibrate(raw, labels).temperature, rel=1e-3)


def test_threshold_by_weights_leaves_out_the_stated_share_of_the_weight() -> None:
    # 19 nodes and 80 %: 4 of 20 may be outside; the three with the smallest values weigh that much.
    true = np.arange(1, 20) / 20
    raw, labels = np.stack([true, 1 - true], axis=1), np.zeros(19, dtype=int)
    importance = np.where(np.arange(19) < 3, 4 / 3, 15 / 16)
    for weights, outside in ((np.ones(19), 4), (importance, 3)):
        calibration = calibrate(raw, labels, 0.8, weights)
        expected = tempered(raw, calibration.temperature)[outside - 1, 0]
        assert calibration.threshold == pytest.approx(expected)


def test_threshold_of_nodes_with_weight_two_is_that_of_nodes_listed_twice() -> None:
    raw, labels = drawn(200, 3, 1.0)
    importance = np.where(np.arange(200) < 50, 2.0, 1.0)
    twice = np.concatenate([np.arange(200), np.arange(50)])
    weighted, repeated = (
        calibrate(raw, labels, importance=importance),
        calibrate(raw[twice], labels[twice]),
    )
    assert weighted.threshold == pytest.approx(repeated.threshold, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_sets_hold_the_true_class_in_a_graph_with_other_shares(seed: int) -> None:
    """Labels are balanced, the graph is not: weights make the coverage that of the graph."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.9, 0.1])

    def predictions(known: np.ndarray) -> np.ndarray:
        # Class 1 is hard to recognise, so its nodes would make all sets too large.
        lead = rng.normal(np.where(known == 0, 1.2, 0.6), 1.4)
        first = 1 / (1 + np.exp(-lead))
        return np.stack([first, 1 - first], axis=1)

    labels = np.repeat([0, 1], 300)
    others = rng.choice(2, 4000, p=shares)
    raw, hidden = predictions(labels), predictions(others)
    covered = []
    for importance in (None, (shares * 2)[labels]):
        calibration = calibrate(raw, labels, 0.9, importance)
        sets = calibration.sets(calibration.probabilities(hidden))
        covered.append(sets[np.arange(4000), others].mean())
    assert covered[1] == pytest.approx(0.9, abs=0.03)
    assert covered[0] > covered[1] + 0.03


def test_sets_are_never_empty() -> None:
    sets = Calibration(1.0, 0.9, threshold=0.95).sets(np.array([[0.5, 0.3, 0.2]]))
    assert sets.tolist() == [[True, False, False]]


# A threshold for each class


def test_thresholds_by_class_are_those_of_the_labels_of_each_class() -> None:
    # 19 nodes of each class and 90 %: two of 20 may be left out, so the second smallest counts.
    first = np.concatenate([np.arange(1, 20) / 20, np.arange(1, 20) / 40])
    raw = np.stack([first, 1 - first], axis=1)
    labels = np.repeat([0, 1], 19)
    calibration = calibrate(raw, labels, by_class=True)
    tempered_raw = tempered(raw, calibration.temperature)
    expected = (tempered_raw[1, 0], tempered_raw[36, 1])
    assert calibration.class_thresholds == pytest.approx(expected)
    plain = calibrate(raw, labels)
    assert (plain.threshold, plain.class_thresholds) == (calibration.threshold, None)


def test_set_by_class_has_every_class_that_reaches_its_own_threshold() -> None:
    calibration = Calibration(1.0, 0.9, 0.5, class_thresholds=(0.95, 0.05))
    raw = np.array([[0.99, 0.01], [0.9, 0.1], [0.951, 0.049], [0.2, 0.8]])
    assert calibration.sets(raw).tolist() == [
        [True, False],
        [False, True],  # the most probable class is unusually improbable
        [True, False],
        [False, True],
    ]


def test_set_by_class_that_would_be_empty_has_the_class_nearest_to_its_threshold() -> None:
    calibration = Calibration(1.0, 0.9, 0.5, class_thresholds=(0.95, 0.4))
    sets = calibration.sets(np.array([[0.9, 0.1], [0.65, 0.35]]))
    assert sets.tolist() == [[True, False], [False, True]]


def test_class_with_too_few_labels_is_in_every_set() -> None:
    raw = np.array([[0.9, 0.1]] * 9 + [[0.3, 0.7]] * 8)
    calibration = calibrate(raw, np.repeat([0, 1], [9, 8]), by_class=True)
    assert calibration.class_thresholds is not None
    assert calibration.class_thresholds[0] > 0
    assert calibration.class_thresholds[1] == 0


@pytest.mark.parametrize(("coverage", "count"), [(0.9, 9), (0.8, 4), (0.95, 19), (0.99, 99)])
def test_labels_needed_is_the_smallest_number_with_a_threshold(coverage: float, count: int) -> None:
    assert labels_needed(coverage) == count
    for n, has_threshold in ((count - 1, False), (count, True)):
        raw = np.tile([0.7, 0.3], (n, 1))
        threshold = calibrate(raw, np.zeros(n, dtype=int), coverage).threshold
        assert (threshold > 0) == has_threshold


def test_check_names_the_classes_with_too_few_labels_and_the_number_needed() -> None:
    check_labels_of_classes(np.repeat([0, 1], 9), ("no", "yes"), 0.9)
    with pytest.raises(UsageError, match=r"at least 9 labels of each class.*; 'yes' has 8\. Label"):
        check_labels_of_classes(np.repeat([0, 1], [30, 8]), ("no", "yes"), 0.9)
    many = [f"c{k}" for k in range(8)]
    with pytest.raises(UsageError, match="'c4' has 1 and 3 more classes"):
        check_labels_of_classes(np.arange(8), many, 0.9)


def test_thresholds_by_class_are_stored_and_read() -> None:
    calibration = Calibration(2.0, 0.9, 0.1, (0.3, 0.05))
    assert Calibration.from_extra({"calibration": calibration.as_extra()}) == calibration
    assert Calibration(2.0, 0.9, 0.1).as_extra().keys() == {"temperature", "coverage", "threshold"}
    entry = {**calibration.as_extra(), "class_thresholds": [0.3, 1.5]}
    with pytest.raises(UsageError, match=r"threshold of class 1 1\.5"):
        Calibration.from_extra({"calibration": entry})


def test_positive_class_is_read_from_the_extra_of_a_model() -> None:
    assert positive_class({"positive": 1}, 2) == 1
    assert positive_class({}, 2) is None
    with pytest.raises(UsageError, match="'positive' is 'yes'"):
        positive_class({"positive": "yes"}, 2)


def test_reliability_by_hand() -> None:
    probabilities = np.array([[0.95, 0.05], [0.91, 0.09], [0.45, 0.55], [1.0, 0.0]])
    bins = reliability(probabilities, np.array([0, 1, 1, 0]))
    assert [(b.count, b.accuracy) for b in bins] == [(1, 1.0), (3, pytest.approx(2 / 3))]
    assert bins[1].confidence == pytest.approx((0.95 + 0.91 + 1.0) / 3)


def test_reliability_merges_bins_with_few_labels() -> None:
    confidence = np.array([0.55, 0.65, 0.66, 0.75, 0.95, 0.96, 0.97])
    probabilities = np.stack([confidence, 1 - confidence], axis=1)
    labels = np.zeros(7, dtype=np.int64)
    assert [b.count for b in reliability(probabilities, labels)] == [1, 2, 1, 3]
    assert [b.count for b in reliability(probabilities, labels, fewest=3)] == [3, 4]
    merged = reliability(probabilities, labels, fewest=4)
    assert [b.count for b in merged] == [7]
    assert merged[0].confidence == pytest.approx(confidence.mean())
    assert reliability(probabilities, labels, fewest=8) == []


def test_calibration_is_read_from_the_extra_of_a_model() -> None:
    entry = {"temperature": 2.0, "coverage": 0.9, "threshold": 0.1}
    assert Calibration.from_extra({"calibration": entry}) == Calibration(2.0, 0.9, 0.1)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({}, "no calibration"),
        ({"calibration": None}, "no calibration"),
        ({"calibration": {"temperature": "hot", "coverage": 0.9, "threshold": 0}}, "no calib"),
        ({"calibration": {"temperature": 0, "coverage": 0.9, "threshold": 0}}, "temperature 0,"),
        ({"calibration": {"temperature": 1, "coverage": 2, "threshold": 0}}, "coverage 2,"),
    ],
)
def test_calibration_that_is_missing_or_out_of_range_is_refused(
    extra: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        Calibration.from_extra(extra)
