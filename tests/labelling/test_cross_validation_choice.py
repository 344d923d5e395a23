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
    folds,
    held_out,
    smoothed,
)
from kryograph.systems import System, system

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=200, classes=3, words=40, seed=2)


@pytest.fixture(scope="module")
def given(data: Dataset) -> Indices:
    labels = np.full(200, UNKNOWN)
    labels[:66] = data.labels[:66]
    return labels


def divided(data: Dataset, labels: Indices) -> LabelledNodes:
    return LabelledNodes(data.graph, labels, data.classes, folds(labels, 0), seed=0)


def candidate(curves: list[list[float]], sizes: list[int]) -> Candidate:
    return Candidate(system("gcn"), np.array(curves), np.array(sizes))


def test_a_smoothed_curve_is_a_mean_over_neighbours() -> None:
    curve = np.zeros(40)
    curve[20] = 1.0
    found = smoothed(curve)
    np.testing.assert_allclose(found[13:28], 1 / 15)
    assert found[12] == found[28] == 0


def test_the_best_epoch_is_the_latest_of_equals() -> None:
    rising = [0.0] * 30 + [1.0] * 70
    assert candidate([rising, rising], [1, 1]).epochs() == 100
    falling = [1.0] * 50 + [0.0] * 50
    assert 40 <= candidate([falling, falling], [1, 1]).epochs() <= 50


def test_a_peak_that_may_be_chance_is_no_reason_to_stop_early() -> None:
    peak = [0.80] * 40 + [0.84] * 30 + [0.80] * 30
    assert candidate([peak], [50]).epochs() == 100
    assert candidate([peak], [50]).accuracy == pytest.approx(0.80)
    assert 40 < candidate([peak], [5000]).epochs() <= 70
    assert candidate([peak], [5000]).accuracy == pytest.approx(0.84)


def test_a_fold_has_no_say_in_its_own_number_of_epochs() -> None:
    early = [1.0] * 50 + [0.0] * 50
    late = early[::-1]
    both = candidate([early, late], [1, 1])
    assert both.epochs(without=[0]) == 100
    assert both.epochs(without=[1]) <= 50


def test_large_folds_count_more() -> None:
    assert candidate([[1.0], [0.0]], [3, 1]).accuracy == pytest.approx(0.75)


def test_a_network_has_a_curve_and_a_closed_form_a_point(data: Dataset, given: Indices) -> None:
    parts = divided(data, given)
    network = cross_validate(system("truncated-krylov", {"hidden": 4, "order": 2}), parts)
    closed = cross_validate(system("prototypes"), parts)
    assert network.curves.shape == (5, FOLD_EPOCHS)
    assert closed.curves.shape == (5, 1)
    assert closed.epochs() == FOLD_EPOCHS  # which a closed form does not ask for
    assert 0.5 < closed.accuracy <= 1


def test_held_out_predictions_do_not_know_the_labels_they_are_about(
    data: Dataset, given: Indices
) -> None:
    """With labels that mean nothing, nothing can be predicted; a leak would be seen at once."""
    nonsense = given.copy()
    known = np.flatnonzero(given != UNKNOWN)
    nonsense[known] = np.random.default_rng(0).permutation(np.arange(known.size) % 3)
    parts = divided(data, nonsense)
    wide = system("truncated-krylov", {"hidden": 64, "order": 2, "dropout": 0.0, "lr": 0.01})
    held = held_out(cross_validate(wide, parts), parts)
    assert held.nodes.tolist() == known.tolist()
    assert held.right.mean() < 0.55


@pytest.mark.parametrize(
    "made",
    [
        system("prototypes", {"rounds": 2}),
        system("lp"),
        system("blend", {"members": "prototypes + truncated-krylov:hidden=4,order=2"}),
    ],
    ids=lambda made: made.name,
)
def test_a_system_without_epochs_is_asked_once_and_does_not_see_what_it_is_asked(
    made: System, data: Dataset, given: Indices
) -> None:
    parts = divided(data, given)
    short = LabelledNodes(data.graph, given, data.classes, parts.folds[:1], seed=0)
    said = cross_validate(made, short).said
    assert len(said) == 1
    other = given.copy()
    held = parts.folds[0].held
    other[held] = (given[held] + 1) % 3
    lied_to = cross_validate(
        made, LabelledNodes(data.graph, other, data.classes, parts.folds[:1], seed=0)
    ).said
    np.testing.assert_array_equal(said[0], lied_to[0])


def test_held_out_predictions_are_those_of_a_fit_without_these_labels(
    data: Dataset, given: Indices
) -> None:
    parts = divided(data, given)
    held = held_out(cross_validate(system("prototypes"), parts), parts)
    fold = parts.folds[2]
    alone = system("prototypes").fit(parts.task(fold, seen=False)).predict_proba()
    at = np.searchsorted(held.nodes, fold.held)
    np.testing.assert_allclose(held.probabilities[at], alone[fold.held])
