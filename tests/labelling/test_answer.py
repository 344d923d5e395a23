from __future__ import annotations

import numpy as np
import pytest

from kryograph.features import normalised
from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling.answer import Answer, answer_by_choice, metric_for_choice
from kryograph.systems import system
from kryograph.text import ignore_progress
from kryograph.training.purpose import PURPOSES, Purpose
from tests.fraud_graph import FRAUD_CLASSES, draw_fraud_graph

SYSTEMS = [system("prototypes"), system("trees", {"trees": 60, "fold_trees": 20})]


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    graph, _, labels = draw_fraud_graph(400, labelled=0.5, signal=2.0, seed=1)
    scaled, _ = normalised(graph)
    return {
        metric: answer_by_choice(
            SYSTEMS,
            scaled,
            labels,
            FRAUD_CLASSES,
            Purpose(metric, "none", -1),
            0,
            None,
            ignore_progress,
        )
        for metric in PURPOSES
    }


def test_metric_chooses_among_candidates(answers: dict[str, Answer]) -> None:
    """Class means take many nodes for frauds: good for recall, bad for accuracy."""
    assert answers["accuracy"].system.name == "trees"
    assert answers["balanced-accuracy"].system.name == "prototypes"


def test_candidates_keep_their_accuracy_whatever_the_metric(answers: dict[str, Answer]) -> None:
    for answer in answers.values():
        scores = {tried.system.name: tried.accuracy for tried in answer.tried}
        assert scores["trees"] > 0.9
        assert sum(tried.weight for tried in answer.tried) == 1


def test_metric_of_a_rare_class_needs_more_evidence() -> None:
    labels: Indices = np.array([0] * 50 + [1] * 4 + [UNKNOWN])
    behind = {
        metric: metric_for_choice(Purpose(metric, "none", -1), labels)[1] for metric in PURPOSES
    }
    assert behind == {"accuracy": 54, "balanced-accuracy": 4, "f1": 4, "average-precision": 4}
    assert metric_for_choice(Purpose("f1", "none", 0), labels)[1] == 50
