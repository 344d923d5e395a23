from __future__ import annotations

import re

import numpy as np

from kryograph.report.class_tables import confusion_matrix, label_counts
from tests.report.labelled_graphs import fitted, large, page_of


def test_the_confusion_matrix_counts_held_out_answers() -> None:
    labelled = fitted()
    cells = re.findall('<td class="heat heat-([0-9]+)( right)?">(.*?)</td>', page_of(labelled))
    counts = np.array([0 if text == "·" else int(text) for _, _, text in cells]).reshape(4, 4)
    answers = labelled.held_out.probabilities.argmax(axis=1)
    for given in range(4):
        for answer in range(4):
            both = (labelled.given_labels[labelled.held_out.nodes] == given) & (answers == answer)
            assert counts[given, answer] == both.sum()
    assert [bool(right) for _, right, _ in cells] == np.eye(4, dtype=bool).ravel().tolist()


def test_the_confusion_matrix_sums_the_rare_ones_of_many_classes() -> None:
    labelled = large(2000, classes=60)
    classes, counts = confusion_matrix(labelled)
    assert counts.shape == (25, 25)
    assert counts.sum() == len(labelled.held_out.nodes)
    assert [label.name for label in classes[-1:]] == ["36 other classes"]
    assert page_of(labelled).count('<td class="heat') == 25 * 25


def test_label_counts_sum_the_rarest_of_many_classes() -> None:
    labelled = large(2000, classes=60)
    rows = label_counts(labelled)
    assert [label.name for label, _, _ in rows[-1:]] == ["36 other classes"]
    assert sum(count for _, count, _ in rows) == 100
    few = label_counts(fitted())
    given = fitted().given_labels
    assert [count for _, count, _ in few] == [int((given == c).sum()) for c in range(4)]
