"""Every representation: rows in float64 are those of the basis, and four sums are the log-odds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kryograph.basis import FEW_FEATURES, Basis, to_dense
from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.explain.rows import FORMS, row_form
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.systems import system
from kryograph.systems.head import HeadSystem

KINDS = ("words", "numbers", "embeddings", "none")
HEADS = [
    *(("diffused-logistic", {"representation": name}) for name in FORMS),
    ("diffused-logistic", {"representation": "sum", "rounds": 2}),
    ("prototypes", {"hops": 5}),
    *(("prototypes", {"representation": name}) for name in ("sum", "centred", "hops")),
]


def graph_of(kind: str, n: int, edges: int, seed: int) -> Graph:
    """A random weighted graph with bags of words, few numbers, many numbers or no features."""
    rng = np.random.default_rng(seed)
    features: np.ndarray | sp.csr_array | None = None
    if kind == "words":
        words = rng.poisson(0.3, (n, FEW_FEATURES + 6)).astype(float)
        features = sp.csr_array(words / np.maximum(words.sum(axis=1, keepdims=True), 1))
    elif kind == "numbers":
        features = rng.normal(size=(n, 4))
    elif kind == "embeddings":
        features = rng.normal(size=(n, FEW_FEATURES + 6)) + 0.2
    pairs = rng.integers(0, n, (2, edges))
    return Graph.from_edges(pairs, n, weights=rng.uniform(0.5, 2, edges), features=features)


def fitted(graph: Graph, name: str, changes: dict[str, object]) -> tuple[HeadSystem, Task]:
    method = system(name, changes)
    assert isinstance(method, HeadSystem)
    labels = np.full(graph.n, UNKNOWN)
    labels[:9] = np.arange(9) % 3
    return method, Task.labelled(graph, labels, ("a", "b", "c"))


@settings(max_examples=80)
@given(
    st.sampled_from(KINDS),
    st.integers(10, 30),
    st.integers(0, 60),
    st.integers(0, 99),
    st.sampled_from(HEADS),
)
def test_the_four_sums_are_the_log_odds(
    kind: str, n: int, edges: int, seed: int, head: tuple[str, dict[str, object]]
) -> None:
    graph = graph_of(kind, n, edges, seed)
    method, task = fitted(graph, *head)
    assume(method.exists(Basis(graph)))
    fit = method.fit(task)
    node = seed % n
    form = method.additive(fit.weights, graph, 3)
    parts = form.contributions(node, 0, 1)
    logs = form.log_probabilities(node)
    divided = (
        parts.hops.sum(),
        parts.nodes.sum(),
        parts.neighbours.sum(),
        parts.features.sum() + parts.structure,
    )
    size = max(1.0, abs(parts.intercept), abs(logs[0] - logs[1]))
    totals = [parts.intercept + float(value) for value in divided]
    np.testing.assert_allclose(totals, logs[0] - logs[1], atol=1e-10 * size)
    np.testing.assert_allclose(logs, np.log(fit.probabilities[node]), atol=1e-4 * size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMS)
def test_rows_are_those_of_the_basis(kind: str, name: str) -> None:
    basis = Basis(graph_of(kind, 25, 50, seed=3))
    if not basis.usable(name):
        pytest.skip("this graph does not have the representation")
    rows = to_dense(basis.rows(name))
    form = row_form(basis, name)
    assert form is not None
    for node in (0, 7, 24):
        np.testing.assert_allclose(form.at(node).row, rows[node], atol=2e-5)


def test_a_basis_with_a_state_learns_nothing_anew() -> None:
    graph = graph_of("words", 25, 50, seed=3)
    first = Basis(graph)
    for name in FORMS:
        first.rows(name)
    again = Basis(graph, dict(first.state))
    for name in FORMS:
        form, other = row_form(again, name), row_form(first, name)
        assert form is not None
        assert other is not None
        np.testing.assert_array_equal(form.at(3).row, other.at(3).row)
    assert not again._rows


def test_a_representation_that_is_not_linear_has_no_form() -> None:
    graph = graph_of("numbers", 25, 50, seed=3)
    assert row_form(Basis(graph), "tree") is None
    method, task = fitted(graph, "trees", {"trees": 5})
    fit = method.fit(task)
    with pytest.raises(UsageError, match="no exact explanation for trees; --system truncated"):
        method.additive(fit.weights, graph, 3)


def test_a_block_of_rounding_errors_belongs_to_the_intercept() -> None:
    features = np.tile(np.random.default_rng(0).random(70) + 0.1, (6, 1))
    features[5] *= 3
    features[5, 0] += 1
    graph = Graph(toy.disjoint(toy.complete(5), toy.isolated(1)).adjacency, features)
    basis = Basis(graph)  # nodes of the clique are equal: Z - P Z is nothing but rounding
    form = row_form(basis, "contrast")
    assert form is not None
    np.testing.assert_allclose(form.at(0).row, to_dense(basis.rows("contrast"))[0], atol=1e-4)


def test_a_feature_that_is_zero_everywhere_gives_nothing() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 4))
    features[:, 2] = 0.0
    graph = Graph(toy.cycle(12).adjacency, features)
    method, task = fitted(graph, "diffused-logistic", {"representation": "hops"})
    parts = method.additive(method.fit(task).weights, graph, 3).contributions(11, 0, 1)
    assert parts.features[2] == 0
    assert parts.features[[0, 1, 3]].all()


def test_equal_nodes_have_equal_shares() -> None:
    features = np.random.default_rng(0).normal(size=(10, 4))
    features[9] = features[8]
    graph = Graph(toy.star(10).adjacency, features)  # leaves 8 and 9 are alike
    method, task = fitted(graph, "diffused-logistic", {})
    parts = method.additive(method.fit(task).weights, graph, 3).contributions(0, 0, 1)
    assert parts.nodes[8] == pytest.approx(parts.nodes[9], abs=1e-12)


def test_columns_that_stand_for_nodes_are_no_features() -> None:
    graph = graph_of("words", 25, 60, seed=1)
    method, task = fitted(graph, "diffused-logistic", {"representation": "neighbours"})
    parts = method.additive(method.fit(task).weights, graph, 3).contributions(4, 0, 1)
    assert parts.features.shape == (graph.features.shape[1],)
    assert not parts.features.any()
    assert parts.structure == pytest.approx(parts.nodes.sum())
    assert parts.hops[:2].tolist() == [0.0, 0.0]  # all of it comes over two edges


def test_a_class_without_labels_has_infinite_log_odds_and_no_contributions() -> None:
    graph = graph_of("numbers", 20, 40, seed=0)
    labels = np.full(20, UNKNOWN)
    labels[:6] = [0, 1] * 3
    method = system("diffused-logistic")
    fit = method.fit(Task.labelled(graph, labels, ("a", "b", "c")))
    form = method.additive(fit.weights, graph, 3)
    assert form.contributions(7, 0, 2).intercept == np.inf
    assert form.log_probabilities(7)[2] == -np.inf


def test_similarity_is_the_cosine_of_rows() -> None:
    graph = graph_of("words", 25, 60, seed=1)
    method, task = fitted(graph, "prototypes", {"representation": "sum"})
    form = method.additive(method.fit(task).weights, graph, 3)
    rows = to_dense(Basis(graph).rows("sum")).astype(float)
    expected = rows[[1, 2]] @ rows[0]
    np.testing.assert_allclose(form.similarity(0, np.array([1, 2])), expected, atol=1e-6)


def test_in_a_dense_graph_neighbours_count_over_one_edge() -> None:
    graph = toy.star(6000)  # the rows of P A would have 36 million entries
    basis = Basis(graph)
    form = row_form(basis, "neighbours")
    assert form is not None
    assert len(form.steps) == 1
    leaf = form.at(5).row
    assert leaf[0] == 1.0
    assert np.count_nonzero(leaf) == 1
