from __future__ import annotations

import numpy as np
import pytest

from kryograph.training.class_shares import (
    SharePrior,
    accuracy_variance,
    class_shares,
    fitted_power,
    look_balanced,
    share_covariance,
)


def predictions(labels: np.ndarray, classes: int, seed: int, clear: float = 1.5) -> np.ndarray:
    """Probabilities that are right on average: posteriors of noisy points, for even classes."""
    rng = np.random.default_rng(seed)
    logits = clear * (clear * np.eye(classes)[labels] + rng.normal(size=(labels.size, classes)))
    odds = np.exp(logits)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def balanced(labels: np.ndarray, classes: int) -> SharePrior:
    return SharePrior.of_labels(np.bincount(labels, minlength=classes), "balanced")


def graph_with(shares: list[float], n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(shares), n, p=shares)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.1], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
def test_planted_shares_are_recovered_from_many_balanced_labels(shares: list[float]) -> None:
    classes = len(shares)
    labels = np.repeat(np.arange(classes), 200)
    held_out = predictions(labels, classes, 0)
    others = predictions(graph_with(shares, 20_000, 1), classes, 2)
    estimate = class_shares(held_out, labels, others, balanced(labels, classes))
    assert estimate.sum() == pytest.approx(1)
    np.testing.assert_allclose(estimate, shares, atol=0.07)


def test_estimate_is_better_than_the_mean_prediction() -> None:
    shares = np.array([0.85, 0.15])
    labels = np.repeat([0, 1], 100)
    held_out = predictions(labels, 2, 0, clear=1.0)
    others = predictions(graph_with(shares.tolist(), 20_000, 1), 2, 2, clear=1.0)
    naive = others.mean(axis=0)
    estimate = class_shares(held_out, labels, others, balanced(labels, 2))
    assert abs(estimate - shares).max() < 0.5 * abs(naive - shares).max()


def test_few_labels_keep_the_estimate_near_even_shares() -> None:
    others = predictions(graph_with([0.9, 0.1], 20_000, 1), 2, 2)
    estimates = []
    for count in (2, 200):
        labels = np.repeat([0, 1], count)
        held_out, prior = predictions(labels, 2, 0), balanced(labels, 2)
        estimates.append(class_shares(held_out, labels, others, prior)[0])
    assert 0.5 <= estimates[0] < 0.75 < estimates[1]


def test_predictions_without_information_give_even_shares() -> None:
    labels = np.repeat([0, 1, 2], 10)
    nothing = np.full((30, 3), 1 / 3)
    estimate = class_shares(nothing, labels, nothing, balanced(labels, 3))
    np.testing.assert_allclose(estimate, 1 / 3, atol=1e-3)


def test_predictions_without_information_give_the_shares_of_the_labels() -> None:
    labels = np.repeat([0, 1, 2], [20, 20, 10])
    nothing = np.tile([0.4, 0.4, 0.2], (50, 1))
    for design in ("balanced", "guess", "as drawn"):
        prior = SharePrior.of_labels(np.array([20, 20, 10]), design)
        estimate = class_shares(nothing, labels, nothing, prior)
        np.testing.assert_allclose(estimate, [0.4, 0.4, 0.2], atol=1e-3)


def test_labels_of_unknown_origin_hold_the_estimate_back_more_than_a_design() -> None:
    """Half of the labels are of class 1, but only a tenth of the nodes."""
    others = predictions(graph_with([0.9, 0.1], 20_000, 1), 2, 2)
    labels = np.repeat([0, 1], 30)
    held_out = predictions(labels, 2, 0)
    estimates = [
        class_shares(held_out, labels, others, SharePrior(np.array([0.5, 0.5]), observed))[0]
        for observed in (0, 18, np.inf)
    ]
    assert estimates[0] > estimates[1] + 0.03
    assert estimates[1] > 0.6
    assert estimates[2] == 0.5


def test_prior_of_labels_by_hand() -> None:
    even, uneven = np.array([5, 5, 5]), np.array([6, 3, 1])
    assert SharePrior.of_labels(even, "guess").observed == 0
    assert SharePrior.of_labels(uneven, "guess").observed == pytest.approx(3)
    assert SharePrior.of_labels(uneven, "balanced").observed == 0
    assert SharePrior.of_labels(even, "as drawn").observed == np.inf
    np.testing.assert_allclose(SharePrior.of_labels(uneven, "guess").centre, [0.6, 0.3, 0.1])
    assert SharePrior.of_labels(np.array([2, 0]), "guess").centre[1] < 1e-6


def test_single_label_that_is_never_held_out_keeps_its_share() -> None:
    labels = np.repeat([0, 1], [10, 9])
    rng = np.random.default_rng(0)
    held_out = np.hstack([predictions(labels, 2, 0), np.full((19, 1), 0.05)])
    others = rng.dirichlet([4, 4, 0.4], 500)
    prior = SharePrior.of_labels(np.array([10, 9, 1]), "guess")
    estimate = class_shares(held_out / held_out.sum(axis=1, keepdims=True), labels, others, prior)
    assert 0.01 < estimate[2] < 0.15


def test_a_class_without_labels_has_no_share() -> None:
    labels = np.repeat([0, 2], 50)
    held_out, others = (
        predictions(known, 3, seed) for seed, known in enumerate((labels, np.repeat([0, 2], 500)))
    )
    estimate = class_shares(held_out, labels, others, balanced(labels, 3))
    assert estimate[1] < 1e-6
    assert estimate.sum() == pytest.approx(1)


def test_permuted_classes_have_permuted_shares() -> None:
    labels = np.repeat([0, 1, 2], 40)
    held_out = predictions(labels, 3, 0)
    others = predictions(graph_with([0.6, 0.3, 0.1], 3000, 1), 3, 2)
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    back = np.argsort(order)
    prior = balanced(labels, 3)
    moved = class_shares(held_out[:, back], order[labels], others[:, back], prior)
    plain = class_shares(held_out, labels, others, prior)
    np.testing.assert_allclose(moved[order], plain, atol=1e-3)


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
        shares = class_shares(held_out, labels, others, balanced(labels, 2))
        covariance = share_covariance(held_out, labels, shares, balanced(labels, 2))
        np.testing.assert_allclose(covariance.sum(axis=0), 0, atol=1e-12)
        estimates.append(shares[0])
        variances.append(covariance[0, 0])
    assert 0.5 * np.std(estimates) < np.sqrt(np.mean(variances)) < 3 * np.std(estimates)


def test_shares_that_are_known_have_no_variance() -> None:
    labels = np.repeat([0, 1], 20)
    held_out = predictions(labels, 2, 0)
    drawn = SharePrior.of_labels(np.array([20, 20]), "as drawn")
    shares = np.array([0.5, 0.5])
    assert not share_covariance(held_out, labels, shares, drawn).any()
    assert accuracy_variance(held_out, held_out, labels, shares, drawn) == 0
    nothing = np.zeros((0, 2))
    assert accuracy_variance(nothing, nothing, labels[:0], shares, balanced(labels, 2)) == 0


# Power of the shares of the labels


def even_minded(n: int, shares: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Labels with these shares, and predictions as if classes were even."""
    labels = np.repeat(np.arange(len(shares)), (np.array(shares) * n).astype(int))
    return predictions(labels, len(shares), 0, clear=1.0), labels


@pytest.mark.parametrize(("n", "low", "high"), [(20, 0.0, 0.5), (2000, 0.85, 1.0)])
def test_power_grows_with_the_evidence(n: int, low: float, high: float) -> None:
    held_out, labels = even_minded(n, [0.8, 0.2])
    ratio = np.array([1.6, 0.4])
    factors = fitted_power(held_out, labels, np.ones(labels.size), ratio)
    powers = np.log(factors) / np.log(ratio)
    assert powers[0] == pytest.approx(powers[1])
    assert low <= powers[0] <= high


def test_power_is_nothing_without_labels() -> None:
    factors = fitted_power(np.zeros((0, 2)), np.zeros(0, int), np.zeros(0), np.array([1.5, 0.5]))
    assert factors.tolist() == [1, 1]
