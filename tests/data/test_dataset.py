from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.data import Dataset, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Split

SPLITS = tuple(Split("public", train=[first], validation=[1], test=[3]) for first in (0, 4))


@pytest.fixture
def data() -> Dataset:
    """A path of five nodes, of which the third has no label."""
    labels = np.array([0, 1, UNKNOWN, 1, 0])
    return Dataset("path", toy.path(5), labels, ("a", "b"), "drawn", SPLITS[0], SPLITS[1:])


def test_task_shows_the_labels_of_training_and_validation_nodes_only(data: Dataset) -> None:
    assert data.task().labels.tolist() == [0, 1, UNKNOWN, UNKNOWN, UNKNOWN]
    assert data.task(validation=False).labels.tolist() == [0] + [UNKNOWN] * 4
    assert data.task(SPLITS[1]).labels.tolist() == [UNKNOWN, 1, UNKNOWN, UNKNOWN, 0]


def test_split_takes_the_published_splits_in_turn(data: Dataset) -> None:
    trains = [data.split("public", seed=seed).train.tolist() for seed in range(4)]
    assert trains == [[0], [4], [0], [4]]
    one = replace(data, more_public=())
    assert [one.split(seed=seed) for seed in range(3)] == [SPLITS[0]] * 3


def test_split_without_a_public_one_names_the_options(data: Dataset) -> None:
    with pytest.raises(UsageError, match="no public split: draw random ones with --label-rate or"):
        replace(data, public=None).split()


def test_labelled_only_removes_nodes_and_numbers_the_others_anew(data: Dataset) -> None:
    fewer = data.labelled_only()
    assert fewer.labels.tolist() == [0, 1, 1, 0]
    assert fewer.graph.adjacency.toarray().tolist() == [
        [0, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 1, 0],
    ]
    assert fewer.graph.features.nonzero()[1].tolist() == [0, 1, 3, 4]
    assert fewer.public is not None
    assert (fewer.public.test.tolist(), fewer.more_public[0].train.tolist()) == ([2], [3])
    assert fewer.labelled_only() is fewer


def test_labels_outside_the_classes_are_refused(data: Dataset) -> None:
    with pytest.raises(UsageError, match=r"Labels must lie between -1 \(unknown\) and 0"):
        replace(data, classes=("a",))
