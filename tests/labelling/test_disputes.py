from __future__ import annotations

import numpy as np

from kryograph.labelling.disputes import Dispute, find_disputes

# Usual confidence: class 0 (0.9 + 0.8 + 0.3) / 3 = 0.667, class 1 (0.7 + 0.9) / 2 = 0.8.
P_FIRST = np.array([0.9, 0.8, 0.3, 0.3, 0.1])
LABELS = np.array([0, 0, 0, 1, 1])


def test_label_is_disputed_only_if_the_other_class_reaches_its_usual_confidence() -> None:
    nodes = np.array([10, 11, 12, 13, 14])
    p = np.stack([P_FIRST, 1 - P_FIRST], axis=1)
    assert find_disputes(nodes, LABELS, p) == ()  # 0.7 is below the usual 0.8 of class 1
    p[2] = [0.15, 0.85]
    assert find_disputes(nodes, LABELS, p) == (Dispute(12, 0, 1, 0.85),)


def test_label_is_not_disputed_while_its_class_is_the_most_probable_one() -> None:
    # A rare class with a usual confidence of 0.2: 0.4 exceeds it, and is not the best answer.
    first = np.array([0.95, 0.95, 0.6, 0.8])
    p = np.stack([first, 1 - first], axis=1)
    assert find_disputes(np.arange(4), np.array([0, 0, 0, 1]), p) == ()


def test_most_doubtful_label_comes_first() -> None:
    p = np.array([[0.9, 0.1]] * 8 + [[0.2, 0.8], [0.05, 0.95]] + [[0.25, 0.75]] * 9)
    labels = np.array([0] * 10 + [1] * 9)
    disputes = find_disputes(np.arange(19), labels, p)
    assert [(one.node, one.predicted) for one in disputes] == [(9, 1), (8, 1)]


def test_class_that_was_never_held_out_is_never_predicted_against_a_label() -> None:
    p = np.array([[0.1, 0.0, 0.9], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    assert find_disputes(np.arange(3), np.array([0, 0, 1]), p) == ()
