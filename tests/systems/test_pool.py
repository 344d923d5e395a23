from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kryograph.data import Dataset, synthetic_citations, toy
from kryograph.errors import KryographError, UsageError
from kryograph.graph import UNKNOWN, Graph, Indices, Task
from kryograph.model import Model
from kryograph.stats import accuracy, balanced_accuracy, tempered
from kryograph.systems import system
from kryograph.systems.base import member_systems
from kryograph.systems.pool import HEADS, PoolFit
from kryograph.training.folds import draw_folds
from kryograph.training.pooling import CROSS_PARTS, cross_fitted, logarithms
from tests.fraud_graph import draw_fraud_graph

LABELLED = 30
FAST = (
    "diffused-logistic + diffused-logistic:representation=features,penalty=1 "
    "+ diffused-logistic:representation=neighbours + prototypes:representation=sum"
)


SMALL = " + ".join([*HEADS[:-1], "trees:trees=20,fold_trees=5"])
"""The default pool with fewer trees."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic_citations(
        n=150, classes=3, words=80, signal=0.7, homophily=0.8, mean_degree=6, seed=4
    )


@pytest.fixture(scope="module")
def labels(data: Dataset) -> Indices:
    return np.where(np.arange(150) < LABELLED, data.labels, UNKNOWN)


def task_of(graph: Graph, labels: Indices, classes: int = 3) -> Task:
    return Task.labelled(graph, labels, tuple("abcd"[:classes]))


def fit(
    graph: Graph,
    labels: Indices,
    members: str = FAST,
    /,
    *,
    classes: int = 3,
    operator: str = "sym",
    seed: int = 0,
    **changes: Any,
) -> PoolFit:
    """Fit a pool; `changes` are other settings of it."""
    method = system("pool", {"members": members} | changes, operator=operator)
    return method.fit_pool(task_of(graph, labels, classes), seed=seed)


def check(result: PoolFit) -> None:
    probabilities = result.predict_proba()
    assert probabilities.shape == (result.task.graph.n, len(result.task.classes))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(result.held_out.sum(axis=1), 1, atol=1e-9)
    assert result.importance.mean() == pytest.approx(1)
    assert sum(member.weight for member in result.members) == pytest.approx(1)
    weights = [member.weight for member in result.members]
    assert weights == sorted(weights, reverse=True)


# What the pool is made for


def test_purpose_of_a_pool_changes_its_weights_or_its_decision() -> None:
    """Classes of 9 to 1: the purpose moves the share of nodes that are taken for the rare one."""
    graph, truth, labels = draw_fraud_graph(400, share=0.1, labelled=0.4, signal=1.2, seed=1)
    pools = {
        name: fit(graph, labels, FAST, classes=2, labels="as drawn", **changes)
        for name, changes in {
            "accuracy": {},
            "average-precision": {"metric": "average-precision"},
            "f1": {"metric": "f1"},
            "not f1": {"metric": "f1", "positive": 0},
            "balanced": {"weighting": "balanced"},
            "balanced-accuracy": {"metric": "balanced-accuracy"},
        }.items()
    }
    for pool in pools.values():
        check(pool)
    weights = {name: pool.weights["pool.weights"].numpy() for name, pool in pools.items()}
    for name in ("average-precision", "f1", "not f1"):
        np.testing.assert_array_equal(weights[name], weights["accuracy"])
    np.testing.assert_array_equal(weights["balanced"], weights["balanced-accuracy"])
    assert np.abs(weights["balanced"] - weights["accuracy"]).max() > 0.01
    taken = {name: pool.predict_proba().argmax(axis=1).mean() for name, pool in pools.items()}
    assert taken["accuracy"] == taken["average-precision"]
    assert taken["accuracy"] < taken["f1"] < taken["balanced-accuracy"]
    assert balanced_accuracy(pools["balanced-accuracy"].predict_proba(), truth) > 0.7


def test_pool_for_f1_refuses_three_classes(data: Dataset, labels: Indices) -> None:
    with pytest.raises(UsageError, match="'f1' is one of two classes, and there are 3"):
        fit(data.graph, labels, metric="f1")


# The whole pool


def test_default_pool_is_better_than_most_of_its_heads(data: Dataset, labels: Indices) -> None:
    result = system("pool").fit_pool(task_of(data.graph, labels))
    check(result)
    assert len(result.members) == len(HEADS)
    assert result.notes == ()
    assert result.nodes.tolist() == list(range(LABELLED))
    other = np.arange(LABELLED, 150)
    task = task_of(data.graph, labels)
    alone = [
        accuracy(method.fit(task).predict_proba()[other], data.labels[other])
        for method in member_systems(" + ".join(HEADS), "sym")
    ]
    pooled = accuracy(result.predict_proba()[other], data.labels[other])
    assert pooled > np.median(alone)
    assert pooled > max(alone) - 0.04


def test_pool_is_the_same_for_the_same_seed(data: Dataset, labels: Indices) -> None:
    first, again, other = (fit(data.graph, labels, SMALL, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predict_proba(), again.predict_proba())
    assert np.abs(first.predict_proba() - other.predict_proba()).max() > 1e-6


@pytest.mark.parametrize("member", ["diffused-logistic", "prototypes:rounds=2"])
def test_pool_of_one_head_is_the_head_up_to_temperature(
    member: str, data: Dataset, labels: Indices
) -> None:
    result = fit(data.graph, labels, member, labels="as drawn")
    [head] = member_systems(member, "sym")
    alone = np.exp(logarithms(head.fit(task_of(data.graph, labels)).predict_proba()))
    node = alone.max(axis=1).argmin()  # the least certain one fixes the temperature

    def odds(probabilities: np.ndarray) -> float:
        first, second = np.sort(np.log(probabilities[node]))[:-3:-1]
        return float(first - second)

    pooled = result.predict_proba() / np.exp(result.weights["pool.ratio"].numpy())
    pooled /= pooled.sum(axis=1, keepdims=True)
    temperature = odds(alone) / odds(pooled)
    np.testing.assert_allclose(pooled, tempered(alone, temperature), atol=1e-6)
    assert result.transductive_gain is None


def test_pool_gives_a_planted_best_head_most_of_the_weight() -> None:
    """Features tell the class, edges join nodes at random."""
    rng = np.random.default_rng(0)
    known = np.arange(200) % 2
    x = rng.normal(size=(200, 4)) + 4 * np.eye(4)[known]
    graph = Graph.from_edges(rng.integers(0, 200, (2, 600)), 200, features=x)
    labels = np.where(np.arange(200) < 60, known, UNKNOWN)
    members = "diffused-logistic:representation=features + lp + prototypes:representation=sum"
    result = fit(graph, labels, members, classes=2)
    best = result.members[0]
    assert best.system.settings.representation == "features"
    assert best.accuracy > 0.9
    assert best.weight > 0.8
    [propagation] = [member for member in result.members if member.system.name == "lp"]
    assert propagation.weight < 0.1
    assert propagation.accuracy < 0.7


# Labels that must not be seen


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_cross_fitted_pool_does_not_see_the_label_that_it_predicts(seed: int) -> None:
    """Two neighbours in the list of labels that are held out together swap their labels.

    The folds are drawn by class and by position in the list, so the swap leaves them as they are.
    The predictions of the members stay as they are, too: `test_head.py` is about them.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 30)
    logs = np.log(rng.dirichlet(np.ones(3), (3, 2, 30)))
    parts = [fold.held_out.tolist() for fold in draw_folds(labels, seed, CROSS_PARTS)]
    pairs = [
        (first, part)
        for part in parts
        for first in part
        if first + 1 in part and labels[first] != labels[first + 1]
    ]
    assume(pairs)
    first, part = pairs[0]
    swapped = labels.copy()
    swapped[[first, first + 1]] = labels[[first + 1, first]]
    assert [fold.held_out.tolist() for fold in draw_folds(swapped, seed, CROSS_PARTS)] == parts
    plain, changed = (
        cross_fitted(logs, known, np.ones(len(logs)), np.ones(30), seed)
        for known in (labels, swapped)
    )
    np.testing.assert_array_equal(plain[part], changed[part])
    rest = np.setdiff1d(np.arange(30), part)
    assert np.abs(plain[rest] - changed[rest]).max() > 0


@pytest.mark.parametrize(
    "members",
    [
        pytest.param(SMALL, id="heads"),
        pytest.param("truncated-krylov:hidden=16,order=2 + lp", id="networks"),
    ],
)
def test_held_out_predictions_are_not_better_than_chance_for_random_labels(
    members: str, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels that mean nothing, nothing can be predicted; a leak would be seen at once."""
    monkeypatch.setattr("kryograph.systems.pool_members.NETWORK_EPOCHS", 30)
    nonsense = np.full(150, UNKNOWN)
    nonsense[:90] = np.random.default_rng(1).permutation(np.arange(90) % 3)
    result = fit(data.graph, nonsense, members)
    assert accuracy(result.held_out, nonsense[result.nodes]) < 0.5
    assert accuracy(result.predict_proba()[:90], nonsense[:90]) > 0.5 or members != SMALL


# Order of nodes and classes


def test_permuted_nodes_have_permuted_predictions(data: Dataset, labels: Indices) -> None:
    """Labelled nodes keep their order among themselves, so the folds hold out the same nodes."""
    rng = np.random.default_rng(0)
    old = rng.permutation(150)  # new node i was node old[i]
    places = np.flatnonzero(old < LABELLED)
    old[places] = np.sort(old[places])
    graph = Graph(
        sp.csr_array(data.graph.adjacency[old][:, old]), sp.csr_array(data.graph.features[old])
    )
    plain, moved = fit(data.graph, labels), fit(graph, labels[old])
    np.testing.assert_array_equal(old[moved.nodes], plain.nodes)
    np.testing.assert_allclose(moved.held_out, plain.held_out, atol=5e-3)
    np.testing.assert_allclose(moved.predict_proba(), plain.predict_proba()[old], atol=5e-3)


def test_permuted_classes_have_nearly_permuted_predictions(data: Dataset, labels: Indices) -> None:
    """Other classes are dealt to other folds, so weights and temperatures differ a little."""
    order = np.array([2, 0, 1])  # class c gets the number order[c]
    renamed = np.where(labels == UNKNOWN, UNKNOWN, order[labels])
    plain, moved = (fit(data.graph, known).predict_proba() for known in (labels, renamed))
    assert (moved[:, order].argmax(axis=1) == plain.argmax(axis=1)).mean() > 0.95
    assert np.abs(moved[:, order] - plain).mean() < 0.02


# Graphs at the edge


def graphs() -> dict[str, Graph]:
    rng = np.random.default_rng(0)
    adjacency = toy.disjoint(toy.two_cliques(10), toy.star(8), toy.isolated(2)).adjacency
    n = adjacency.shape[0]
    words = sp.csr_array(rng.poisson(0.2, (n, 80)).astype(float))
    return {
        "identity": Graph(adjacency, sp.eye_array(n, format="csr")),
        "no columns": Graph(adjacency, np.empty((n, 0))),
        "constant": Graph(adjacency, np.ones((n, 3))),
        "few": Graph(adjacency, rng.normal(size=(n, 5))),
        "signed": Graph(adjacency, rng.normal(size=(n, 80))),
        "words": Graph(adjacency, words),
        "no edges": Graph(toy.isolated(n).adjacency, words),
        "neither": toy.isolated(n),
    }


@pytest.mark.parametrize("kind", graphs())
def test_default_pool_on_graphs_at_the_edge(kind: str) -> None:
    graph = graphs()[kind]
    labels = np.full(graph.n, UNKNOWN)
    labels[:8], labels[12:18] = 0, 1
    labels[20], labels[29] = 2, 0  # one label of a class; a node without neighbours
    result = fit(graph, labels, SMALL, classes=4)
    check(result)
    assert 20 not in result.nodes
    assert result.predict_proba()[:, 3].max() < 0.1  # the missing class
    if "edges" not in kind and kind != "neither":
        assert (result.predict_proba().argmax(axis=1)[:20] == [0] * 10 + [1] * 10).mean() > 0.8


@pytest.mark.parametrize("columns", [None, 2, 80])
def test_default_pool_on_three_nodes(columns: int | None) -> None:
    graph = toy.path(3)
    if columns is not None:
        graph = Graph(graph.adjacency, np.random.default_rng(0).normal(size=(3, columns)))
    check(fit(graph, np.array([0, 0, 1]), SMALL, classes=2))  # every node has a label
    check(fit(graph, np.array([0, UNKNOWN, 0]), SMALL, classes=2))  # one class only


def test_trees_and_centred_prototypes_count_more_beforehand() -> None:
    heads = member_systems(" + ".join(HEADS), "sym")
    priors = {name: getattr(head, "prior", 1.0) for name, head in zip(HEADS, heads, strict=True)}
    more = {name: prior for name, prior in priors.items() if prior != 1}
    assert more == {"trees": 6, "prototypes:representation=centred,rounds=5": 3}


def test_pool_without_held_out_labels_is_the_mean_of_its_members() -> None:
    labels = np.array([0, UNKNOWN, UNKNOWN, 1])
    result = fit(toy.path(4), labels, SMALL, classes=2)
    assert result.nodes.size == 0
    priors = [getattr(member.system, "prior", 1.0) for member in result.members]
    weights = [member.weight for member in result.members]
    assert weights == pytest.approx([prior / sum(priors) for prior in priors])
    assert result.probabilities.argmax(axis=1).tolist() == [0, 0, 1, 1]


# Members that are left out


def test_failing_member_is_left_out_with_a_note(data: Dataset, labels: Indices) -> None:
    """Lanczos needs a matrix that is similar to a symmetric one; this operator is not."""
    alone = fit(data.graph, labels, FAST, operator="walk-laplacian")
    result = fit(data.graph, labels, f"lnet + {FAST}", operator="walk-laplacian")
    [note] = result.notes
    assert note.startswith("lnet could not be trained (Lanczos needs a graph")
    assert note.endswith("It was left out.")
    np.testing.assert_array_equal(result.predict_proba(), alone.predict_proba())
    method = system("pool", {"members": f"lnet + {FAST}"}, operator="walk-laplacian")
    np.testing.assert_allclose(
        method.apply(result.weights, data.graph, 3), result.predict_proba(), atol=1e-6
    )


def test_heads_whose_representation_is_missing_are_left_out_in_silence() -> None:
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    result = fit(toy.two_cliques(4), labels, SMALL, classes=2)
    assert result.notes == ()
    assert 0 < len(result.members) < len(HEADS)


def test_pool_without_a_member_that_can_be_trained_is_refused(
    data: Dataset, labels: Indices
) -> None:
    with pytest.raises(KryographError, match=r"No member .* could be trained\. lnet could not"):
        fit(data.graph, labels, "lnet", operator="walk-laplacian")
    with pytest.raises(KryographError, match="No member of the pool could be trained"):
        fit(toy.cycle(9), np.arange(9) % 3, "diffused-logistic:representation=features")


# Other graphs


def test_model_predicts_its_own_graph_by_all_members_and_another_by_inductive_ones(
    data: Dataset, labels: Indices, tmp_path: Path
) -> None:
    method = system("pool", {"members": FAST})
    result = method.fit_pool(task_of(data.graph, labels))
    assert result.transductive_gain is not None
    Model.of(method, result).save(tmp_path / "model")
    model = Model.load(tmp_path / "model")
    own = model.predict_proba(data.graph)
    np.testing.assert_allclose(own, result.predict_proba(), atol=1e-6)
    union = toy.disjoint(data.graph, toy.cycle(5))
    x = sp.vstack([data.graph.features, data.graph.features[:5]], format="csr")
    other = model.predict_proba(Graph(union.adjacency, x))
    assert other.shape == (155, 3)
    inductive = FAST.replace(" + diffused-logistic:representation=neighbours", "")
    alone = fit(data.graph, labels, inductive)
    np.testing.assert_allclose(other[:150], alone.predict_proba(), atol=1e-3)
    assert np.abs(other[:150] - own).max() > 1e-3
    assert accuracy(other[LABELLED:150], data.labels[LABELLED:]) > 0.6


@pytest.mark.parametrize("columns", [0, 3])
def test_pool_of_a_graph_without_features_predicts_this_graph_only(columns: int) -> None:
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    graph = Graph(toy.two_cliques(4).adjacency, np.ones((8, columns)))
    result = fit(graph, labels, SMALL, classes=2)
    method = system("pool", {"members": SMALL})
    assert method.apply(result.weights, graph, 2).shape == (8, 2)
    other = Graph(toy.cycle(9).adjacency, np.ones((9, columns)))
    with pytest.raises(UsageError, match="fit again with this graph"):
        method.apply(result.weights, other, 2)


def test_pool_of_inductive_members_predicts_another_graph(data: Dataset, labels: Indices) -> None:
    members = "diffused-logistic + prototypes:rounds=2"
    result = fit(data.graph, labels, members)
    assert result.transductive_gain is None
    union = toy.disjoint(data.graph, toy.cycle(5))
    x = sp.vstack([data.graph.features, data.graph.features[:5]], format="csr")
    method = system("pool", {"members": members})
    other = method.apply(result.weights, Graph(union.adjacency, x), 3)
    np.testing.assert_allclose(other[:150], result.predict_proba(), atol=1e-4)


# Shares of the classes


@pytest.fixture(scope="module")
def lopsided() -> tuple[Graph, Indices, Indices]:
    """Four hundred nodes, 85 % of them of class 0, with 15 labels for each class."""
    rng = np.random.default_rng(0)
    known = (rng.random(400) < 0.15).astype(int)
    x = rng.normal(size=(400, 5)) + 1.2 * known[:, None]
    graph = Graph.from_edges(rng.integers(0, 400, (2, 800)), 400, features=x)
    labels = np.full(400, UNKNOWN)
    for c in (0, 1):
        labels[np.flatnonzero(known == c)[:15]] = c
    return graph, labels, known


def test_balanced_labels_are_corrected_towards_the_shares_of_the_graph(
    lopsided: tuple[Graph, Indices, Indices],
) -> None:
    graph, labels, known = lopsided
    drawn, balanced, guessed = (
        fit(graph, labels, classes=2, labels=kind) for kind in ("as drawn", "balanced", "guess")
    )
    assert (drawn.balanced, balanced.balanced, guessed.balanced) == (False, True, True)
    np.testing.assert_array_equal(balanced.predict_proba(), guessed.predict_proba())
    np.testing.assert_array_equal(drawn.importance, 1)
    assert drawn.variance == 0 < balanced.variance
    assert balanced.importance[labels[balanced.nodes] == 0].min() > 1
    shares = [result.predict_proba()[:, 0].mean() for result in (drawn, balanced)]
    assert 0.85 >= shares[1] > shares[0] + 0.03 or abs(shares[1] - 0.85) < 0.08
    hidden = labels == UNKNOWN
    right = [accuracy(f.predict_proba()[hidden], known[hidden]) for f in (drawn, balanced)]
    assert right[1] > right[0]


def test_uneven_labels_of_unknown_origin_are_corrected_less_than_balanced_ones(
    lopsided: tuple[Graph, Indices, Indices],
) -> None:
    """Fifteen labels of class 0 and twelve of class 1 look neither balanced nor random."""
    graph, labels, known = lopsided
    labels = labels.copy()
    labels[np.flatnonzero(labels == 1)[12:]] = UNKNOWN
    drawn, guessed, balanced = (
        fit(graph, labels, classes=2, labels=kind) for kind in ("as drawn", "guess", "balanced")
    )
    assert not guessed.balanced
    hidden = labels == UNKNOWN
    shares = [f.predict_proba()[hidden, 0].mean() for f in (drawn, guessed, balanced)]
    assert shares == sorted(shares)
    assert shares[0] + 0.03 < shares[1] < (known[hidden] == 0).mean() + 0.05
    assert guessed.variance > 0


def test_metric_balanced_accuracy_predicts_rare_classes_more_often() -> None:
    drawn = synthetic_citations(n=420, classes=7, words=120, signal=0.5, seed=1)
    known = (drawn.labels == 0).astype(int)
    labels = np.where(np.arange(420) < 105, known, UNKNOWN)
    plain, balanced = (
        fit(drawn.graph, labels, classes=2, metric=metric, labels="as drawn")
        for metric in ("accuracy", "balanced-accuracy")
    )
    rare = [result.predict_proba()[105:, 1].mean() for result in (plain, balanced)]
    assert rare[1] > rare[0] + 0.05
    scores = [balanced_accuracy(f.predict_proba()[105:], known[105:]) for f in (plain, balanced)]
    assert scores[1] > scores[0]


def test_metric_balanced_accuracy_does_not_lower_it_where_heads_even_out_the_classes_themselves(
    lopsided: tuple[Graph, Indices, Indices],
) -> None:
    """Heads on few features have no intercept, so they predict as if classes were even."""
    graph, _, known = lopsided
    labels = np.where(np.arange(400) < 120, known, UNKNOWN)
    plain, balanced = (
        fit(graph, labels, classes=2, metric=metric, labels="as drawn")
        for metric in ("accuracy", "balanced-accuracy")
    )
    scores = [balanced_accuracy(f.predict_proba()[120:], known[120:]) for f in (plain, balanced)]
    assert scores[1] > scores[0] - 0.02


def test_inductive_members_have_factors_of_the_classes_of_their_own() -> None:
    """The features say little, so the frequent class is the best answer for other graphs too."""
    rng = np.random.default_rng(1)
    known = (rng.random(300) < 0.08).astype(int)
    x = rng.normal(size=(300, 2))
    graph = Graph.from_edges(rng.integers(0, 300, (2, 1200)), 300, features=x)
    labels = np.where(np.arange(300) < 60, known, UNKNOWN)
    result = fit(graph, labels, SMALL, classes=2, labels="as drawn")
    assert result.transductive_gain is not None
    assert result.transductive_gain < 0.02


# Settings


@pytest.mark.parametrize(
    "changes",
    [
        {"members": "crystal-ball"},
        {"members": "prototypes:hopes=3"},
        {"members": ""},
        {"metric": "beauty"},
        {"labels": "random"},
    ],
)
def test_settings_that_are_not_allowed(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        system("pool", changes)
