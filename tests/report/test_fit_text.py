from __future__ import annotations

from dataclasses import replace

import numpy as np

from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.cross_validation import HeldOut
from kryograph.labelling.labelled_graph import LabelledGraph
from kryograph.report.fit_text import summary_lines
from tests.report.labelled_graphs import fitted, renamed


def twenty() -> LabelledGraph:
    """Twenty labels, three of them 'yes', of which one is found; twenty nodes to predict."""
    labels = np.array([0] * 17 + [1] * 3 + [UNKNOWN] * 20)
    answers = np.array([0] * 17 + [1, 0, 0])
    held = np.where(answers[:, None] == np.arange(2), 0.9, 0.1)
    free = np.tile([0.8, 0.2], (20, 1))
    return replace(
        fitted(),
        graph=Graph.from_edges([[0], [1]], 40, features=np.arange(40.0)[:, None]),
        given_labels=labels,
        classes=("no", "yes"),
        held_out=HeldOut(np.arange(20), labels[:20], held, np.ones(20)),
        probabilities=np.concatenate([held, free]),
        calibration=Calibration(1.0, 0.9, 0.1),
        positive=1,
        suggestions=(),
    )


def test_summary_of_twenty_labels() -> None:
    lines = summary_lines(twenty(), 20)
    assert lines[:11] == [
        "Read 40 nodes, 1 edge, 1 feature, 20 labels of 2 classes.",
        "",
        "Held-out accuracy   90.0 %  (95 % interval 69.9 to 97.2, 20 labels, by prototypes)",
        "Always 'no'         85.0 %  (the most frequent class for every node)",
        "Balanced accuracy   66.7 %  (mean recall of the classes)",
        "Average precision   43.3 %  (of 'yes'; 15.0 % in a random order)",
        "",
        "  class  labels  precision             recall            predicted",
        "  no         17     89.5 %  (69–97)   100.0 %  (82–100)         20",
        "  yes         3    100.0 %  (21–100)   33.3 %  (6–79)            0",
        "",
    ]
    assert lines[11].startswith("20 top-ranked of 20 unlabelled nodes: about ")
    assert lines[12:] == [""]


def test_summary_of_several_classes_has_no_ranking() -> None:
    lines = summary_lines(fitted(), 20)
    assert not [line for line in lines if line.startswith("Average") or "top-ranked" in line]
    assert len([line for line in lines if line.startswith("  topic")]) == 4


def test_summary_cuts_long_names_and_leaves_classes_with_few_labels_out() -> None:
    labelled = renamed(fitted(), classes=["x" * 50])
    rows = [line for line in summary_lines(labelled, 2) if line.startswith("  ")]
    assert rows[-1] == "  … and 2 classes with fewer labels"
    assert len(rows) == 4
    [row] = [line for line in summary_lines(labelled, 20) if line.startswith("  xx")]
    assert row.split()[0] == "x" * 29 + "…"


def test_class_without_predictions_has_a_dash() -> None:
    labelled = twenty()
    sure = np.tile([0.9, 0.1], (20, 1))
    never = replace(labelled, held_out=replace(labelled.held_out, probabilities=sure))
    [row] = [line for line in summary_lines(never, 20) if line.startswith("  yes")]
    assert row.split()[:4] == ["yes", "3", "–", "0.0"]
