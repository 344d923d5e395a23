from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.training.folds import draw_folds


@given(
    st.lists(st.integers(-1, 3), min_size=3, max_size=90),
    st.integers(0, 5),
    st.integers(2, 6),
    st.integers(1, 4),
)
def test_draw_folds_holds_out_every_label_once_per_draw_if_its_class_has_two(
    drawn: list[int], seed: int, count: int, draws: int
) -> None:
    labels = np.array([0, 0, *drawn])
    known = np.flatnonzero(labels != UNKNOWN)
    sizes = np.bincount(labels[known])
    parts = draw_folds(labels, seed, count, draws)
    assert len(parts) == draws * min(count, sizes.max())
    times = np.zeros((draws, labels.size), dtype=int)
    assert [part.draw for part in parts] == sorted(list(range(draws)) * (len(parts) // draws))
    for part in parts:
        assert np.intersect1d(part.train, part.held_out).size == 0
        np.testing.assert_array_equal(np.union1d(part.train, part.held_out), known)
        times[part.draw, part.held_out] += 1
    expected = np.where((labels != UNKNOWN) & (sizes[labels] > 1), 1, 0)
    np.testing.assert_array_equal(times, np.tile(expected, (draws, 1)))


def test_draw_folds_spreads_classes_evenly() -> None:
    labels = np.repeat([0, 1, 2], [50, 25, 10])
    for part in draw_folds(labels, seed=3, count=5):
        assert np.bincount(labels[part.held_out]).tolist() == [10, 5, 2]


def test_draw_folds_depends_on_the_seed_only() -> None:
    labels = np.repeat([0, 1], 40)
    first, again, other = (draw_folds(labels, seed, 5)[0].held_out.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_draws_of_folds_differ_from_each_other() -> None:
    parts = draw_folds(np.repeat([0, 1], 40), 0, 2, draws=2)
    with_node_0 = [part.held_out.tolist() for part in parts if 0 in part.held_out]
    assert len(with_node_0) == 2
    assert with_node_0[0] != with_node_0[1]


def test_first_draw_does_not_depend_on_the_number_of_draws() -> None:
    labels = np.repeat([0, 1], 20)
    once, often = (draw_folds(labels, 0, 5, draws) for draws in (1, 3))
    for one, same in zip(once, often, strict=False):
        np.testing.assert_array_equal(one.held_out, same.held_out)


def test_draw_folds_refuses_one_label_per_class() -> None:
    with pytest.raises(UsageError, match="No class has two labelled nodes"):
        draw_folds(np.array([0, 1, 2, UNKNOWN]), 0, 5)
