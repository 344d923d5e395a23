from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from kryograph.stats import tempered
from kryograph.training.pooling import (
    LARGEST_WEIGHT,
    Pool,
    best_temperature,
    learn_pool,
    logarithms,
    starting_weights,
)


def labels_of(n: int, classes: int = 3) -> np.ndarray:
    return np.arange(n) % classes


def member(labels: np.ndarray, signal: float, seed: int, repeats: int = 2) -> np.ndarray:
    """Calibrated log-probabilities of one member, r × i × c; `signal` 0 is a random member."""
    rng = np.random.default_rng(seed)
    classes = labels.max() + 1
    points = signal * np.eye(classes)[labels] + rng.normal(size=(repeats, labels.size, classes))
    logits = signal * points if signal else points
    return logarithms(np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))


def test_pool_recovers_a_planted_best_member_and_leaves_a_random_one_out() -> None:
    labels = labels_of(90)
    best, random = member(labels, 3.0, 0), member(labels, 0.0, 1)
    pool = learn_pool(np.stack([random, best, random[:, ::-1]]), labels, np.ones(3))
    assert pool.weights.argmax() == 1
    assert pool.weights[1] > 0.8
    assert pool.weights[[0, 2]].max() < 0.05
    assert pool.losses.argmin() == 1
    pooled = pool.logits(np.stack([random, best, random[:, ::-1]])[:, 0])
    right = (pooled.argmax(axis=-1) == labels).mean()
    assert right >= (best[0].argmax(axis=-1) == labels).mean() - 0.02


def test_pool_uses_two_members_that_know_different_things() -> None:
    labels = labels_of(300)
    logs = np.stack([member(labels, 1.5, seed) for seed in (0, 1)])
    pool = learn_pool(logs, labels, np.ones(2))
    np.testing.assert_allclose(pool.weights[0], pool.weights[1], rtol=0.3)
    assert pool.weights.sum() > 1.3  # independent evidence adds up

    def loss(log_probabilities: np.ndarray) -> float:
        return float(-log_probabilities[:, np.arange(300), labels].mean())

    assert loss(pool.logits(logs)) < min(loss(logs[0]), loss(logs[1])) - 0.1


def test_pool_of_one_decides_as_its_member_up_to_temperature() -> None:
    labels = labels_of(60)
    logs = member(labels, 2.0, 0)[None]
    pool = learn_pool(logs, labels, [1.0])
    pooled = np.exp(pool.logits(logs))
    total = pool.temperatures[0] / pool.weights[0]
    np.testing.assert_allclose(pooled[0], tempered(np.exp(logs[0, 0]), total), atol=1e-9)


def test_few_labels_leave_the_weights_near_the_starting_weights() -> None:
    distances = []
    for n in (6, 600):
        labels = labels_of(n)
        logs = np.stack([member(labels, signal, k) for k, signal in enumerate((1.5, 1.2, 0.7))])
        pool = learn_pool(logs, labels, np.ones(3))
        sharp = log_softmax(logs / pool.temperatures[:, None, None, None], axis=-1)
        losses = -sharp[:, :, np.arange(n), labels].mean(axis=1)
        distances.append(np.abs(pool.weights - starting_weights(losses, np.ones(3))).max())
    assert distances[0] < 0.2
    assert distances[1] > 0.4


def test_weights_are_never_negative_nor_too_large() -> None:
    labels = labels_of(300)
    wrong = member((labels + 1) % 3, 3.0, 0)
    weak = np.stack([member(labels, 2.0, seed) / 50 for seed in (1, 2)])
    pool = learn_pool(np.stack([wrong, *weak]), labels, np.ones(3))
    assert pool.weights.min() >= 0
    assert pool.weights.max() <= LARGEST_WEIGHT


def test_permuted_classes_members_and_nodes_give_the_same_pool() -> None:
    labels = labels_of(30)
    logs = np.stack([member(labels, signal, k) for k, signal in enumerate((1.5, 1.0, 0.0))])
    plain = learn_pool(logs, labels, np.ones(3))
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    classes = learn_pool(logs[..., np.argsort(order)], order[labels], np.ones(3))
    members = learn_pool(logs[order], labels, np.ones(3))
    nodes = np.random.default_rng(0).permutation(30)
    moved = learn_pool(logs[:, :, nodes], labels[nodes], np.ones(3))
    for other, expected in (
        (classes.weights, plain.weights),
        (members.weights, plain.weights[order]),
        (moved.weights, plain.weights),
        (classes.temperatures, plain.temperatures),
    ):
        np.testing.assert_allclose(other, expected, atol=1e-4)


def test_importance_changes_which_member_is_trusted() -> None:
    """One member knows class 0 only, the other the two other classes."""
    labels = labels_of(90)
    know, guess = member(labels, 3.0, 0), member(labels, 0.0, 1)
    first = np.where((labels == 0)[:, None], know, guess)
    second = np.where((labels == 0)[:, None], guess, know)
    importance = np.where(labels == 0, 2.8, 0.1)
    logs = np.stack([first, second])
    plain = learn_pool(logs, labels, np.ones(2))
    weighted = learn_pool(logs, labels, np.ones(2), importance)
    assert plain.weights.argmax() == 1
    assert weighted.weights.argmax() == 0


# Starting weights


def test_starting_weights_by_hand() -> None:
    # Ten labels, a difference of 0.7 everywhere: se² = (0 + 10 · 0.49) / (20 · 10), z = 0.7 / se.
    losses = np.stack([np.zeros(10), np.full(10, 0.7)])
    z = 0.7 / np.sqrt(4.9 / 200)
    expected = np.array([1.0, np.exp(-2 * z)])
    np.testing.assert_allclose(starting_weights(losses, np.ones(2)), expected / expected.sum())


def test_starting_weights_are_the_prior_without_evidence() -> None:
    losses = np.zeros((3, 5))
    np.testing.assert_allclose(starting_weights(losses, np.array([1.0, 1, 2])), [0.25, 0.25, 0.5])


# Temperature


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_best_temperature_undoes_predictions_that_are_too_extreme(sharpness: float) -> None:
    rng = np.random.default_rng(1)
    true = rng.dirichlet([0.7, 0.7, 0.7], 4000)
    labels = (true.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).clip(max=2)
    logs = logarithms(tempered(true, 1 / sharpness))[None]
    assert best_temperature(logs, labels, np.ones(4000)) == pytest.approx(sharpness, rel=0.1)


def test_best_temperature_stays_moderate_for_a_few_correct_predictions() -> None:
    logs = np.log(np.tile([0.6, 0.4], (1, 5, 1)))
    assert 0.2 < best_temperature(logs, np.zeros(5, dtype=int), np.ones(5)) < 1


def test_best_temperature_without_labels_is_the_usual_one_and_strength_keeps_it_near() -> None:
    nothing = np.zeros((1, 0, 2))
    none = np.zeros(0, dtype=int)
    assert best_temperature(nothing, none, np.ones(0), 1.2, 15) == pytest.approx(1.2, abs=1e-4)
    logs = np.log(np.tile([0.6, 0.4], (1, 5, 1)))
    few = [
        best_temperature(logs, np.zeros(5, dtype=int), np.ones(5), 1.2, strength)
        for strength in (1, 15, 1000)
    ]
    assert few[0] < few[1] < few[2]
    assert few[2] == pytest.approx(1.2, abs=0.01)


def test_best_temperature_of_a_node_that_counts_twice_is_that_of_two_nodes() -> None:
    labels = labels_of(12)
    logs = member(labels, 1.0, 0)
    importance = np.ones(12)
    importance[3] = 2
    twice = [*range(12), 3]
    expected = best_temperature(logs[:, twice], labels[twice], np.ones(13))
    assert best_temperature(logs, labels, importance) == pytest.approx(expected, rel=1e-4)


def test_logarithms_are_bounded_and_keep_nan() -> None:
    result = logarithms([[1.0, 0.0, np.nan]])
    np.testing.assert_allclose(result, [[0.0, np.log(1e-6), np.nan]])


def test_logits_of_a_pool_by_hand() -> None:
    pool = Pool(np.array([1.0, 2.0]), np.array([1.0, 0.5]), np.zeros(2))
    p, q = np.array([0.8, 0.2]), np.array([0.5, 0.5])
    np.testing.assert_allclose(np.exp(pool.logits(np.log([p, q]))), p, atol=1e-12)
    p2 = p * np.sqrt(np.sqrt(p))
    np.testing.assert_allclose(np.exp(pool.logits(np.log([p, p]))), p2 / p2.sum(), atol=1e-12)
