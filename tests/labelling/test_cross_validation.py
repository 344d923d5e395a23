from __future__ import annotations

import numpy as np

from kryograph.data import toy
from kryograph.graph import UNKNOWN
from kryograph.labelling.cross_validation import LabelledNodes
from kryograph.training.folds import Fold


def test_task_shows_held_out_labels_only_for_validation() -> None:
    labels = np.array([0, 1, 0, UNKNOWN])
    fold = Fold(np.array([0, 1]), np.array([2]))
    nodes = LabelledNodes(toy.path(4), labels, ("a", "b"), [fold], seed=0)
    validated, hidden = (nodes.task(fold, validate=validate) for validate in (True, False))
    assert validated.labels.tolist() == [0, 1, 0, UNKNOWN]
    assert hidden.labels.tolist() == [0, 1, UNKNOWN, UNKNOWN]
    assert (validated.has_validation, hidden.has_validation) == (True, False)
