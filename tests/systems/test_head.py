"""What holds for every head: folds, order of nodes and classes, other graphs, missing rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.basis import REPRESENTATIONS, Basis
from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import KryographError
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.systems import system
from kryograph.systems.base import member_systems
from kryograph.systems.head import STATE, HeadSystem
from kryograph.systems.pool import HEADS

EVERY = [
    *(text for text in HEADS if "rounds=4" not in text and text != "trees"),
    "trees:trees=20,fold_trees=20",
    "diffused-logistic:representation=sum,penalty=0.2",
    "diffused-logistic:representation=sum,rounds=2,align=true",
    "diffused-logistic:representation=hops,rounds=2",
    "prototypes:rounds=2",
]
"""The heads of the default pool, and some others."""

every_head = pytest.mark.parametrize("text", EVERY)
LABELLED = 30


def head(text: str) -> HeadSystem:
    [method] = member_systems(text, "sym")
    assert isinstance(method, HeadSystem)
    return method


def draw() -> Dataset:
    return synthetic_citations(
        n=150, classes=3, words=80, signal=0.7, homophily=0.8, mean_degree=6, seed=4
    )


@pytest.fixture(scope="module")
def data() -> Dataset:
    return draw()


BASIS = Basis(draw().graph)
LABELS = draw().labels[:LABELLED]
NODES = np.arange(LABELLED)
FOLDS = [(np.setdiff1d(NODES, NODES[k::3]), NODES[k::3]) for k in range(3)]
"""Folds that do not depend on labels, unlike those of a fit."""


def task_of(graph: Graph, labels: Indices, classes: int = 3) -> Task:
    return Task.labelled(graph, labels, tuple("abc"[:classes]))


def first_labels(data: Dataset) -> Indices:
    return np.where(np.arange(data.graph.n) < LABELLED, data.labels, UNKNOWN)


# Folds


@every_head
@settings(max_examples=5)
@given(node=st.integers(0, LABELLED - 1), shift=st.integers(1, 2))
def test_no_label_reaches_its_own_prediction(text: str, node: int, shift: int) -> None:
    other = LABELS.copy()
    other[node] = (other[node] + shift) % 3
    plain, changed = (
        head(text).learn_folds(BASIS, NODES, labels, 3, FOLDS, 0) for labels in (LABELS, other)
    )
    number = node % 3  # of the fold that holds the node out
    np.testing.assert_array_equal(plain[number], changed[number])
    elsewhere = (number + 1) % 3
    assert np.abs(plain[elsewhere] - changed[elsewhere]).max() > 0


@every_head
def test_predictions_of_folds_are_those_of_separate_fits(text: str) -> None:
    together = head(text).learn_folds(BASIS, NODES, LABELS, 3, FOLDS, 0)
    separate = HeadSystem.learn_folds(head(text), BASIS, NODES, LABELS, 3, FOLDS, 0)
    for one, other in zip(together, separate, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


@every_head
def test_a_class_that_a_fold_does_not_know_is_not_predicted_there(text: str) -> None:
    labels = np.where(NODES < 3, 2, NODES % 2)
    folds = [(NODES[3:], NODES[:3]), (NODES[:-3], NODES[-3:])]
    without, with_it = head(text).learn_folds(BASIS, NODES, labels, 3, folds, 0)
    assert without[:, 2].max() < 0.01
    assert with_it[:, 2].max() > without[:, 2].max()
    np.testing.assert_allclose(without.sum(axis=1), 1)


# Order of nodes and classes


@every_head
def test_permuted_nodes_have_permuted_predictions(text: str, data: Dataset) -> None:
    labels = first_labels(data)
    old = np.random.default_rng(0).permutation(data.graph.n)
    graph = Graph(
        sp.csr_array(data.graph.adjacency[old][:, old]), sp.csr_array(data.graph.features[old])
    )
    plain = head(text).fit(task_of(data.graph, labels)).predict_proba()
    moved = head(text).fit(task_of(graph, labels[old])).predict_proba()
    assert np.abs(moved - plain[old]).max() < (0.1 if text.startswith("trees") else 2e-3)


@every_head
def test_permuted_classes_have_permuted_predictions(text: str, data: Dataset) -> None:
    labels = first_labels(data)
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    renamed = np.where(labels == UNKNOWN, UNKNOWN, order[labels])
    plain, moved = (
        head(text).fit(task_of(data.graph, known)).predict_proba() for known in (labels, renamed)
    )
    np.testing.assert_allclose(moved[:, order], plain, atol=2e-4)


# Weights


@every_head
def test_weights_predict_the_graph_of_the_fit(text: str, data: Dataset) -> None:
    fit = head(text).fit(task_of(data.graph, first_labels(data)))
    again = head(text).apply(fit.weights, data.graph, 3)
    np.testing.assert_allclose(again, fit.predict_proba(), atol=1e-6)


@pytest.mark.parametrize("text", [text for text in EVERY if head(text).inductive])
@pytest.mark.parametrize("few", [False, True], ids=["many", "few"])
def test_nodes_keep_their_predictions_in_a_larger_graph(
    text: str, few: bool, data: Dataset
) -> None:
    x = data.graph.features.toarray()[:, : 20 if few else None]
    graph = Graph(data.graph.adjacency, x)
    if not head(text).exists(Basis(graph)):
        pytest.skip("few features do not have the representation")
    fit = head(text).fit(task_of(graph, first_labels(data)))
    other = toy.disjoint(graph, toy.cycle(5))
    larger = Graph(other.adjacency, np.vstack([x, x[:5]]))
    again = head(text).apply(fit.weights, larger, 3)
    np.testing.assert_allclose(again[: graph.n], fit.predict_proba(), atol=1e-4)


def test_state_of_the_basis_belongs_to_the_weights(data: Dataset) -> None:
    fit = head("diffused-logistic").fit(task_of(data.graph, first_labels(data)))
    assert {name for name in fit.weights if name.startswith(STATE)} == {
        STATE + "idf",
        STATE + "projection",
    }


# Representations


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_head_learns_from_each_representation(name: str, data: Dataset) -> None:
    method = system("diffused-logistic", {"representation": name})
    right = method.fit(task_of(data.graph, first_labels(data))).predict_proba().argmax(axis=1)
    assert (right == data.labels)[LABELLED:].mean() > (0.45 if name == "neighbours" else 0.6)


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("diffused-logistic:representation=features", toy.path(4)),
        ("prototypes:representation=centred", toy.path(4)),
        ("diffused-logistic:representation=neighbours", toy.isolated(4)),
        (
            "diffused-logistic:representation=weighted",
            Graph(toy.path(4).adjacency, np.arange(8.0).reshape(4, 2)),
        ),
    ],
    ids=["no features", "nothing to centre", "no edges", "few features"],
)
def test_head_without_its_representation_is_refused(text: str, graph: Graph) -> None:
    assert not head(text).exists(Basis(graph))
    with pytest.raises(KryographError, match="does not exist for this graph"):
        head(text).fit(task_of(graph, np.array([0, 1, UNKNOWN, UNKNOWN]), classes=2))


def test_a_head_is_inductive_if_its_representation_is(data: Dataset) -> None:
    inductive = {text: head(text).inductive for text in EVERY}
    assert {text for text, value in inductive.items() if not value} == {
        "diffused-logistic:representation=neighbours,penalty=1",
        "trees:trees=20,fold_trees=20",
    }
    assert replace(head(EVERY[0]), operator="rw").inductive
