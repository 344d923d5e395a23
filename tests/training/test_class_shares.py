from __future__ import annotations

import numpy as np
import pytest

from kryograph.training.class_shares import class_shares, look_balanced, share_covariance


def predictions(labels: np.ndarray, classes: int, seed: int, clear: float = 1.5) -> np.ndarray:
    """Probabilities that are right on average: posteriors of noisy points, for even classes."""
    rng = np.random.default_rng(seed)
    logits = clear * (clear * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes)))
    odds = np.exp(logits)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def graph_with(shares: list[float], n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(shares), n, p=shares)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
def test_planted_shares_are_recovered_from_many_balanced_labels(shares: list[float]) -> None:
    classes = len(shares)
    labels = np.repeat(np.arange(classes), 200)
    held_out = predictions(labels, classes, 0)
    others = predictions(graph_with(shares, 20_000, 1), classes, 2)
    estimate = class_shares(held_out, labels, others)
    assert estimate.sum() == pytest.approx(1)
    np.testing.assert_allclose(estimate, shares, atol=0.07)


def test_estimate_is_better_than_the_mean_prediction() -> None:
    shares = np.array([0.85, 0.15])
    labels = np.repeat([0, 1], 100)
    held_out = predictions(labels, 2, 0, clear=1.0)
    others = predictions(graph_with(shares.tolist(), 20_000, 1), 2, 2, clear=1.0)
    naive = others.mean(axis=0)
    estimate = class_shares(held_out, labels, others)
    assert abs(estimate - shares).max() < 0.5 * abs(naive - shares).max()


def test_few_labels_keep_the_estimate_near_even_shares() -> None:
    others = predictions(graph_with([0.9, 0.1], 20_000, 1), 2, 2)
    estimates = []
    for count in (2, 200):
        labels = np.repeat([0, 1], count)
        estimates.append(class_shares(predictions(labels, 2, 0), labels, others)[0])
    assert 0.5 <= estimates[0] < 0.75 < estimates[1]


def test_predictions_without_information_give_even_shares() -> None:
    labels = np.repeat([0, 1, 2], 10)
    nothing = np.full((30, 3), 1 / 3)
    np.testing.assert_allclose(class_shares(nothing, labels, nothing), 1 / 3, atol=1e-3)


def test_a_class_without_labels_has_no_share() -> None:
    labels = np.repeat([0, 2], 50)
    held_out, others = (
        predictions(known, 3, seed) for seed, known in enumerate((labels, np.repeat([0, 2], 500)))
    )
    estimate = class_shares(held_out, labels, others)
    assert estimate[1] < 1e-6
    assert estimate.sum() == pytest.approx(1)


def test_permuted_classes_have_permuted_shares() -> None:
    labels = np.repeat([0, 1, 2], 40)
    held_out = predictions(labels, 3, 0)
    others = predictions(graph_with([0.6, 0.3, 0.1], 3000, 1), 3, 2)
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    back = np.argsort(order)
    moved = class_shares(held_out[:, back], order[labels], others[:, back])
    np.testing.assert_allclose(moved[order], class_shares(held_out, labels, others), atol=1e-3)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([10, 10, 10], True),
        ([20, 20, 11], True),  # a small class has fewer nodes than were asked for
        ([20, 20, 0], True),
        ([20, 20, 11, 9], False),
        ([20, 11, 14], False),
        ([12, 11], False),
        ([1, 1, 1], False),  # a single label for each class says nothing
        ([5, 0], True),
        ([0, 0], False),
    ],
)
def test_look_balanced(counts: list[int], expected: bool) -> None:
    assert look_balanced(np.array(counts)) == expected


def test_share_covariance_is_the_spread_of_estimates() -> None:
    """Two classes, predictions 0.7 and 0.3 on average: estimates of many draws vary as stated."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20)

    def predict(known: np.ndarray) -> np.ndarray:
        first = np.clip(np.where(known == 0, 0.7, 0.3) + 0.2 * rng.normal(size=known.size), 0, 1)
        return np.stack([first, 1 - first], axis=1)

    others = predict((np.arange(4000) % 10 < 3).astype(int))
    estimates, variances = [], []
    for _ in range(60):
        held_out = predict(labels)
        shares = class_shares(held_out, labels, others)
        covariance = share_covariance(held_out, labels, shares)
        np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-12)
        estimates.append(shares[0])
        variances.append(covariance[0, 0])
    assert 0.5 * np.std(estimates) < np.sqrt(np.mean(variances)) < 3 * np.std(estimates)
