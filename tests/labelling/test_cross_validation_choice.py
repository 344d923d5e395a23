from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations
from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.cross_validation import (
    FOLD_EPOCHS,
    Candidate,
    LabelledNodes,
    cross_validate,
    held_out,
    smooth,
)
from kryograph.systems import System, system
from kryograph.training.folds import draw_folds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=200, classes=3, words=40, seed=2)


@pytest.fixture(scope="module")
def labels(data: Dataset) -> Indices:
    return np.where(np.arange(200) < 66, data.labels, UNKNOWN)


def divided(data: Dataset, labels: Indices) -> LabelledNodes:
    return LabelledNodes(data.graph, labels, data.classes, draw_folds(labels, 0, 5), seed=0)


def candidate(curves: list[list[float]], sizes: list[int]) -> Candidate:
    return Candidate(system("gcn"), np.array(curves), np.array(sizes))


def test_smooth_is_a_mean_over_neighbouring_epochs() -> None:
    curve = np.zeros(40)
    curve[20] = 1.0
    smoothed = smooth(curve)
    np.testing.assert_allclose(smoothed[13:28], 1 / 15)
    assert smoothed[12] == smoothed[28] == 0


def test_epochs_are_the_latest_of_equally_good_ones() -> None:
    rising = [0.0] * 30 + [1.0] * 70
    assert candidate([rising, rising], [1, 1]).epochs() == 100
    falling = [1.0] * 50 + [0.0] * 50
    assert 40 <= candidate([falling, falling], [1, 1]).epochs() <= 50


def test_epochs_ignore_a_peak_that_may_be_chance() -> None:
    peak = [0.80] * 40 + [0.84] * 30 + [0.80] * 30
    assert candidate([peak], [50]).epochs() == 100
    assert candidate([peak], [50]).accuracy == pytest.approx(0.80)
    assert 40 < candidate([peak], [5000]).epochs() <= 70
    assert candidate([peak], [5000]).accuracy == pytest.approx(0.84)


def test_epochs_without_a_fold_do_not_depend_on_it() -> None:
    early = [1.0] * 50 + [0.0] * 50
    late = early[::-1]
    both = candidate([early, late], [1, 1])
    assert both.epochs(without=[0]) == 100
    assert both.epochs(without=[1]) <= 50


def test_accuracy_weights_folds_by_their_size() -> None:
    assert candidate([[1.0], [0.0]], [3, 1]).accuracy == pytest.approx(0.75)


def test_cross_validate_gives_a_curve_for_a_network_and_a_point_for_a_closed_form(
    data: Dataset, labels: Indices
) -> None:
    parts = divided(data, labels)
    network = cross_validate(system("truncated-krylov", {"hidden": 4, "order": 2}), parts)
    closed = cross_validate(system("prototypes"), parts)
    assert network.curves.shape == (5, FOLD_EPOCHS)
    assert closed.curves.shape == (5, 1)
    assert closed.epochs() == FOLD_EPOCHS  # which a closed form does not ask for
    assert 0.5 < closed.accuracy <= 1


def test_held_out_predictions_are_not_better_than_chance_for_random_labels(
    data: Dataset, labels: Indices
) -> None:
    """With labels that mean nothing, nothing can be predicted; a leak would be seen at once."""
    nonsense = labels.copy()
    known = np.flatnonzero(labels != UNKNOWN)
    nonsense[known] = np.random.default_rng(0).permutation(np.arange(known.size) % 3)
    parts = divided(data, nonsense)
    wide = system("truncated-krylov", {"hidden": 64, "order": 2, "dropout": 0.0, "lr": 0.01})
    held = held_out(cross_validate(wide, parts), parts)
    assert held.nodes.tolist() == known.tolist()
    assert held.right.mean() < 0.55
    np.testing.assert_array_equal(held.importance, 1)


@pytest.mark.parametrize(
    "method",
    [
        system("prototypes", {"rounds": 2}),
        system("lp"),
        system("blend", {"members": "prototypes + truncated-krylov:hidden=4,order=2"}),
    ],
    ids=lambda method: method.name,
)
def test_cross_validate_predicts_held_out_nodes_without_their_labels(
    method: System, data: Dataset, labels: Indices
) -> None:
    parts = divided(data, labels)
    short = LabelledNodes(data.graph, labels, data.classes, parts.folds[:1], seed=0)
    predictions = cross_validate(method, short).held_out_probabilities
    assert len(predictions) == 1
    other = labels.copy()
    held = parts.folds[0].held_out
    other[held] = (labels[held] + 1) % 3
    with_other_labels = cross_validate(
        method, LabelledNodes(data.graph, other, data.classes, parts.folds[:1], seed=0)
    ).held_out_probabilities
    np.testing.assert_array_equal(predictions[0], with_other_labels[0])


def test_held_out_predictions_are_those_of_a_fit_without_these_labels(
    data: Dataset, labels: Indices
) -> None:
    parts = divided(data, labels)
    held = held_out(cross_validate(system("prototypes"), parts), parts)
    fold = parts.folds[2]
    alone = system("prototypes").fit(parts.task(fold, validate=False)).predict_proba()
    at = np.searchsorted(held.nodes, fold.held_out)
    np.testing.assert_allclose(held.probabilities[at], alone[fold.held_out])
