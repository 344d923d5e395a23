from __future__ import annotations

import numpy as np
import pytest

from kryograph.labelling.calibration import Calibration, best_temperature, calibrate, reliability
from kryograph.stats import tempered


def drawn(n: int, seed: int, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and labels drawn from them; the probabilities are then made sharper."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet([0.7, 0.7, 0.7], n)
    labels = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    return tempered(true, 1 / sharpness), labels


def test_a_temperature_of_one_changes_nothing() -> None:
    probabilities, _ = drawn(20, 0, 1.0)
    np.testing.assert_allclose(tempered(probabilities, 1.0), probabilities, atol=1e-12)


def test_probabilities_of_zero_and_one_stay_finite() -> None:
    found = tempered(np.array([[1.0, 0.0]]), 0.05)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_what_made_predictions_too_sure(sharpness: float) -> None:
    probabilities, labels = drawn(4000, 1, sharpness)
    assert best_temperature(probabilities, labels) == pytest.approx(sharpness, rel=0.1)


def test_a_few_right_predictions_do_not_make_it_sure_of_everything() -> None:
    probabilities = np.tile([0.6, 0.4], (5, 1))
    assert 0.2 < best_temperature(probabilities, np.zeros(5, dtype=int)) < 1


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_sets_have_the_true_class_as_often_as_they_say(coverage: float) -> None:
    covered = []
    for seed in range(40):
        probabilities, labels = drawn(400, seed, 3.0)
        found = calibrate(probabilities[:100], labels[:100], coverage)
        sets = found.sets(found.probabilities(probabilities[100:]))
        covered.append(sets[np.arange(300), labels[100:]].mean())
    assert np.mean(covered) == pytest.approx(coverage, abs=0.015)


def test_the_threshold_by_hand() -> None:
    # 19 held-out nodes and 90 %: of 20, two may be left out, so the second smallest counts.
    true = np.arange(1, 20) / 20
    raw = np.stack([true, 1 - true], axis=1)
    found = calibrate(raw, np.zeros(19, dtype=int))
    expected = tempered(raw, found.temperature)[1, 0]
    assert found.threshold == pytest.approx(expected)


def test_with_too_few_labels_to_promise_anything_a_set_has_every_class() -> None:
    raw = np.tile([0.9, 0.06, 0.04], (8, 1))
    found = calibrate(raw, np.zeros(8, dtype=int))
    assert found.threshold == 0
    assert found.sets(raw).all()


def test_a_set_is_never_empty() -> None:
    sets = Calibration(1.0, 0.9, threshold=0.95).sets(np.array([[0.5, 0.3, 0.2]]))
    assert sets.tolist() == [[True, False, False]]


def test_the_reliability_curve_by_hand() -> None:
    probabilities = np.array([[0.95, 0.05], [0.91, 0.09], [0.45, 0.55], [1.0, 0.0]])
    bins = reliability(probabilities, np.array([0, 1, 1, 0]))
    assert [(b.count, b.accuracy) for b in bins] == [(1, 1.0), (3, pytest.approx(2 / 3))]
    assert bins[1].confidence == pytest.approx((0.95 + 0.91 + 1.0) / 3)
