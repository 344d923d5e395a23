"""`label_nodes` with two classes, one of them rare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.calibration import Calibration
from kryograph.labelling.node_ranking import node_ranks
from kryograph.model import Model
from kryograph.stats import f1_score
from kryograph.systems import system
from tests.fraud_graph import FRAUD_CLASSES, draw_fraud_graph


@pytest.fixture(scope="module")
def fraud() -> LabelledGraph:
    graph, _, labels = draw_fraud_graph(900, labelled=0.4, signal=1.5, seed=2)
    return label_nodes(graph, labels, FRAUD_CLASSES, coverage_by="class", label_design="as drawn")


def test_honest_figures_of_a_rare_class(fraud: LabelledGraph) -> None:
    known = fraud.given_labels[fraud.given_labels != UNKNOWN]
    assert (fraud.baseline.label, fraud.baseline.accuracy) == (0, 1 - known.mean())
    assert fraud.accuracy[0] > fraud.baseline.accuracy
    assert fraud.per_class["yes"].held_out == known.sum()
    recalls = [one.recall.value for one in fraud.per_class.values() if one.recall]
    assert fraud.balanced_accuracy == pytest.approx(np.mean(recalls))
    ranking = fraud.quality.ranking
    assert ranking is not None
    assert fraud.positive == ranking.positive == 1
    assert ranking.average_precision > 0.6
    summary = fraud.as_dict()
    assert summary["baseline"]["class"] == "no"
    assert summary["ranking"]["positive"] == "yes"
    assert summary["coverage_by"] == "class"
    assert {one["node"] for one in summary["disputed"]} <= {str(i) for i in range(900)}


def test_disputed_labels_are_those_that_were_changed() -> None:
    graph, _, labels = draw_fraud_graph(900, labelled=0.4, signal=4.0, seed=2)
    wrong = np.flatnonzero(labels == 0)[[3, 50, 100]]
    labels[wrong] = 1
    labelled = label_nodes(graph, labels, FRAUD_CLASSES)
    disputed = {one.node for one in labelled.disputed}
    assert len(disputed & set(wrong.tolist())) >= 2
    assert len(disputed) <= 4


def test_model_holds_thresholds_by_class_and_the_positive_class(
    fraud: LabelledGraph, tmp_path: Path
) -> None:
    fraud.model.save(tmp_path / "model")
    extra = Model.load(tmp_path / "model").extra
    assert Calibration.from_extra(extra) == fraud.calibration
    assert fraud.calibration.class_thresholds is not None
    assert extra["positive"] == 1


def test_positive_class_is_named_or_the_rarer_one() -> None:
    graph, _, labels = draw_fraud_graph(300, labelled=0.5, signal=2.0, seed=2)
    lp = [system("lp")]
    named = label_nodes(graph, labels, FRAUD_CLASSES, systems=lp, positive="no")
    assert named.positive == 0
    turned = label_nodes(graph, np.where(labels < 0, labels, 1 - labels), ("yes", "no"), systems=lp)
    assert turned.positive == 0
    with pytest.raises(UsageError, match=r"Unknown class 'maybe'.*There are: no, yes"):
        label_nodes(graph, labels, FRAUD_CLASSES, systems=lp, positive="maybe")


def test_sets_by_class_are_refused_with_too_few_labels_before_the_work() -> None:
    graph, _, labels = draw_fraud_graph(200, labelled=0.3, seed=2)
    count = int((labels == 1).sum())
    assert 1 < count < 9
    failing = system("lnet", operator="walk-laplacian")
    with pytest.raises(UsageError, match=f"at least 9 labels of each class.*'yes' has {count}"):
        label_nodes(graph, labels, FRAUD_CLASSES, systems=[failing], coverage_by="class")


def test_fit_for_f1_takes_more_nodes_for_the_rare_class_and_ranks_them_alike() -> None:
    graph, truth, labels = draw_fraud_graph(900, labelled=0.3, signal=0.8, seed=5)
    usual, for_f1 = (
        label_nodes(graph, labels, FRAUD_CLASSES, metric=metric, label_design="as drawn")
        for metric in ("accuracy", "f1")
    )
    free = labels == UNKNOWN

    def f1(labelled: LabelledGraph) -> float:
        return f1_score(labelled.probabilities[free], truth[free], 1)

    assert f1(for_f1) > f1(usual) + 0.1
    # The decision moves, the order and the expected numbers do not.
    ranks = [node_ranks(one.probabilities[:, 1]) for one in (usual, for_f1)]
    assert np.corrcoef(*ranks)[0, 1] > 0.9999
    rankings = [one.quality.ranking for one in (usual, for_f1)]
    assert rankings[0] is not None
    assert rankings[1] is not None
    assert rankings[1].expected == pytest.approx(rankings[0].expected, rel=0.05)
    assert any("made for f1" in note for note in for_f1.notes)


def test_pool_of_ones_own_gets_the_purpose_and_keeps_its_members() -> None:
    graph, _, labels = draw_fraud_graph(300, labelled=0.5, signal=2.0, seed=2)
    members = "prototypes + diffused-logistic"
    own = system("pool", {"members": members, "metric": "f1"})
    for changes, expected in (
        ({}, ("f1", -1, "by metric")),
        ({"positive": "no"}, ("f1", 0, "by metric")),
        (
            {"metric": "average-precision", "class_weight": "none"},
            ("average-precision", -1, "none"),
        ),
    ):
        labelled = label_nodes(graph, labels, FRAUD_CLASSES, systems=[own], **changes)
        settings = labelled.model.system.settings.as_dict()
        assert settings["members"] == members
        assert (settings["metric"], settings["positive"], settings["weighting"]) == expected


@pytest.mark.slow
def test_sets_by_class_hold_the_rare_class_of_a_fraud_graph() -> None:
    """Six draws; over the first 20, both coverages are 91.8 %."""
    rare, everywhere = [], []
    for seed in range(6):
        graph, truth, labels = draw_fraud_graph(seed=seed)
        labelled = label_nodes(
            graph, labels, FRAUD_CLASSES, seed=seed, label_design="as drawn", coverage_by="class"
        )
        free = labels == UNKNOWN
        covered = labelled.sets[np.arange(graph.n), truth]
        rare.append(covered[free & (truth == 1)].mean())
        everywhere.append(covered[free].mean())
    assert np.mean(rare) >= 0.85
    assert 0.87 <= np.mean(everywhere) <= 0.93
