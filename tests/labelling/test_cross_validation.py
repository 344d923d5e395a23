from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling.cross_validation import FEW, Fold, LabelledNodes, folds


@given(st.lists(st.integers(-1, 3), min_size=3, max_size=90), st.integers(0, 5))
def test_every_label_of_a_class_with_two_is_held_out_once_in_each_draw(
    drawn: list[int], seed: int
) -> None:
    labels = np.array([0, 0, *drawn])
    known = np.flatnonzero(labels != UNKNOWN)
    sizes = np.bincount(labels[known])
    parts = folds(labels, seed)
    draws = 3 if known.size <= FEW else 1
    assert len(parts) == draws * min(5, sizes.max())
    times = np.zeros(labels.size, dtype=int)
    for part in parts:
        assert np.intersect1d(part.train, part.held).size == 0
        np.testing.assert_array_equal(np.union1d(part.train, part.held), known)
        times[part.held] += 1
    expected = np.where((labels != UNKNOWN) & (sizes[labels] > 1), draws, 0)
    np.testing.assert_array_equal(times, expected)


def test_classes_are_spread_evenly() -> None:
    labels = np.repeat([0, 1, 2], [50, 25, 10])
    for part in folds(labels, seed=3):
        assert np.bincount(labels[part.held]).tolist() == [10, 5, 2]


def test_the_seed_decides_and_nothing_else() -> None:
    labels = np.repeat([0, 1], 40)
    first, again, other = (folds(labels, seed)[0].held.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_one_label_of_each_class_cannot_be_held_out() -> None:
    with pytest.raises(UsageError, match="No class has two labelled nodes"):
        folds(np.array([0, 1, 2, UNKNOWN]), seed=0)


def test_a_task_shows_held_labels_only_if_it_is_asked_to() -> None:
    labels = np.array([0, 1, 0, UNKNOWN])
    fold = Fold(np.array([0, 1]), np.array([2]))
    given = LabelledNodes(toy.path(4), labels, ("a", "b"), [fold], seed=0)
    seen, hidden = (given.task(fold, seen=seen) for seen in (True, False))
    assert seen.labels.tolist() == [0, 1, 0, UNKNOWN]
    assert hidden.labels.tolist() == [0, 1, UNKNOWN, UNKNOWN]
    assert given.whole().split.train.tolist() == [0, 1, 2]
    assert (seen.has_validation, hidden.has_validation) == (True, False)
