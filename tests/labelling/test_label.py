from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Indices
from kryograph.labelling import label_nodes
from kryograph.labelling.candidates import choose_candidate, default_candidates
from kryograph.labelling.cross_validation import Candidate
from kryograph.stats import wilson_interval
from kryograph.systems import system

FAST = [system("prototypes"), system("lp")]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(n=240, classes=3, words=40, signal=0.7, homophily=0.85, seed=5)


def given(data: Dataset, nodes: object) -> Indices:
    labels = np.full(data.graph.n, UNKNOWN)
    labels[nodes] = data.labels[nodes]
    return labels


def scored(name: str, accuracy: float) -> Candidate:
    return Candidate(system(name), np.array([[accuracy]]), np.array([1]))


def test_every_node_gets_a_label_and_most_are_right(data: Dataset) -> None:
    told: list[tuple[str, int, int]] = []
    labels = given(data, slice(0, 60))
    found = label_nodes(
        data.graph,
        labels,
        data.classes,
        systems=FAST,
        progress=lambda *stage: told.append(stage),
    )
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    assert np.mean(found.probabilities.argmax(axis=1)[60:] == data.labels[60:]) > 0.7
    share, low, high = found.accuracy
    assert low < share < high
    assert {stage for stage, _, _ in told} == {"choosing", "checking", "training"}
    assert ("choosing", 30, 30) in told  # two systems, five folds, three draws
    assert all(labels[s.node] == UNKNOWN for s in found.suggestions)


def test_the_same_seed_gives_the_same_answers(data: Dataset) -> None:
    labels = given(data, slice(0, 40))
    first, again = (
        label_nodes(data.graph, labels, data.classes, systems=FAST, seed=3) for _ in range(2)
    )
    np.testing.assert_array_equal(first.probabilities, again.probabilities)
    assert first.calibration == again.calibration


def test_a_class_with_a_single_label(data: Dataset) -> None:
    labels = given(data, slice(0, 40))
    rare = np.flatnonzero(labels == 2)
    labels[rare[1:]] = UNKNOWN
    found = label_nodes(data.graph, labels, data.classes, systems=FAST)
    assert rare[0] not in found.held_out.nodes
    assert found.probabilities.shape == (240, 3)


def test_the_first_stays_unless_another_is_clearly_better() -> None:
    first, other = scored("blend", 0.80), scored("prototypes", 0.82)
    assert choose_candidate([first, other], labels=100) is first
    assert choose_candidate([first, other], labels=10_000) is other
    assert choose_candidate([first, scored("lp", 0.9)], labels=100).system.name == "lp"


def test_networks_alone_come_first_with_labels_enough() -> None:
    few, enough = default_candidates(70, 7), default_candidates(140, 7)
    assert [s.name for s in few] == ["blend", "prototypes"]
    assert enough[1:] == few
    members = [s.name for s in enough[0].settings.systems("sym")]
    assert members == ["truncated-krylov"] * 3


def test_a_search_starts_from_a_network_whose_settings_it_can_change() -> None:
    assert default_candidates(140, 7, search=True)[0] == system("truncated-krylov")


def test_in_a_large_graph_one_part_is_held_out(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.labelling.label.MAX_NODES_FOR_ALL_FOLDS", 100)
    found = label_nodes(data.graph, given(data, slice(0, 60)), data.classes, systems=FAST)
    assert len(found.held_out.nodes) == 12
    assert found.probabilities.shape == (240, 3)


def test_one_class_is_refused(data: Dataset) -> None:
    labels = np.where(data.labels == 0, 0, UNKNOWN)
    with pytest.raises(UsageError, match="at least two classes"):
        label_nodes(data.graph, labels, data.classes)


def test_a_share_of_all_or_nothing_has_an_interval() -> None:
    assert wilson_interval(0, 5)[1] == pytest.approx(0)
    assert wilson_interval(5, 5)[2] == pytest.approx(1)
    assert wilson_interval(5, 5)[1] > 0.5
