from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.graph import UNKNOWN
from kryograph.labelling.cross_validation import LabelledNodes, cross_validate
from kryograph.stats import balanced_accuracy
from kryograph.systems import system
from kryograph.training.folds import Fold, draw_folds


def test_task_shows_held_out_labels_only_for_validation() -> None:
    labels = np.array([0, 1, 0, UNKNOWN])
    fold = Fold(np.array([0, 1]), np.array([2]))
    nodes = LabelledNodes(toy.path(4), labels, ("a", "b"), [fold], seed=0)
    validated, hidden = (nodes.task(fold, validate=validate) for validate in (True, False))
    assert validated.labels.tolist() == [0, 1, 0, UNKNOWN]
    assert hidden.labels.tolist() == [0, 1, UNKNOWN, UNKNOWN]
    assert (validated.has_validation, hidden.has_validation) == (True, False)


def test_metric_is_measured_on_all_folds_of_a_draw_together() -> None:
    """In two cliques every label is found, but for one that contradicts its clique."""
    labels = np.repeat([0, 1], 6)
    labels[3] = 1
    folds = draw_folds(labels, seed=0, count=3, draws=2)
    nodes = LabelledNodes(toy.two_cliques(6), labels, ("a", "b"), folds, 0, balanced_accuracy)
    candidate = cross_validate(system("lp"), nodes)
    assert candidate.metric_score == candidate.score == pytest.approx((5 / 5 + 6 / 7) / 2)
    assert candidate.accuracy == pytest.approx(11 / 12)
    plain = LabelledNodes(toy.two_cliques(6), labels, ("a", "b"), folds, 0)
    assert cross_validate(system("lp"), plain).score == candidate.accuracy
