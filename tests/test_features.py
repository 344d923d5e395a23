from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.data.tables import read_tables
from kryograph.features import (
    BAG_COLUMNS,
    ROW_LENGTH,
    FeatureRule,
    is_identity,
    normalised,
)
from kryograph.graph import Features, Graph


def counts(n: int, columns: int, seed: int = 0, mean: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).poisson(mean, (n, columns)).astype(float)


def numbers(n: int, columns: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(5.0, 3.0, (n, columns))


def to_dense(x: Features) -> np.ndarray:
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x)


def test_rows_of_a_bag_are_divided_by_their_sum() -> None:
    x = counts(30, 25)
    x[3] = 0
    rule = FeatureRule.learn(x)
    assert rule.bag.all()
    result = rule.apply(x)
    assert isinstance(result, sp.csr_array)
    expected = x / np.maximum(x.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(result.toarray(), expected, atol=1e-15)


def test_other_columns_are_standardised_and_scaled_together() -> None:
    x = numbers(40, 7)
    x[:, 2] = 1.5
    result = FeatureRule.learn(x).apply(x)
    assert isinstance(result, np.ndarray)
    varying = np.delete(result, 2, axis=1)
    np.testing.assert_allclose(varying.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(varying.std(axis=0), varying.std(axis=0)[0])
    assert not result[:, 2].any()
    assert np.linalg.norm(result, axis=1).mean() == pytest.approx(ROW_LENGTH)


def test_mixed_columns_keep_their_order() -> None:
    words, rest = counts(40, 30), numbers(40, 3)
    order = np.random.default_rng(2).permutation(33)
    x = np.hstack([words, rest])[:, order]
    rule = FeatureRule.learn(x)
    np.testing.assert_array_equal(rule.bag, order < 30)
    separate = [to_dense(FeatureRule.learn(part).apply(part)) for part in (words, rest)]
    np.testing.assert_allclose(to_dense(rule.apply(x)), np.hstack(separate)[:, order], atol=1e-12)


@pytest.mark.parametrize(
    ("x", "bag"),
    [
        (counts(50, BAG_COLUMNS), BAG_COLUMNS),
        (counts(50, BAG_COLUMNS - 1), 0),  # too few columns
        (counts(50, 40, mean=0.5), 40),
        (counts(50, 40, mean=1.0), 0),  # too few zeros
        (counts(50, 40, mean=5.0), 0),
        (-counts(50, 40), 0),
        (np.hstack([counts(50, 30), -counts(50, 4)]), 30),
    ],
    ids=["words", "too few columns", "half zeros", "few zeros", "no zeros", "negative", "mixed"],
)
def test_a_bag_has_many_columns_with_many_zeros_and_nothing_negative(
    x: np.ndarray, bag: int
) -> None:
    for matrix in (x, sp.csr_array(x)):
        assert FeatureRule.learn(matrix).bag.sum() == bag


@pytest.mark.parametrize(
    "x",
    [
        counts(40, 30),
        numbers(40, 6),
        np.hstack([counts(40, 30), numbers(40, 6)]),
        np.hstack([numbers(40, 6), np.full((40, 25), 2.0)]),
        np.zeros((40, 30)),
        np.empty((40, 0)),
        numbers(1, 4),
    ],
    ids=["words", "numbers", "mixed", "constant columns", "zeros", "no columns", "one node"],
)
def test_rule_changes_nothing_in_features_that_it_made(x: np.ndarray) -> None:
    once = FeatureRule.learn(x).apply(x)
    twice = FeatureRule.learn(once).apply(once)
    assert once.shape == x.shape
    np.testing.assert_allclose(to_dense(twice), to_dense(once), atol=1e-12)


@given(st.integers(0, 1000), st.integers(0, 30), st.integers(0, 8))
def test_rule_is_the_same_for_dense_sparse_and_normalised_counts(
    seed: int, words: int, others: int
) -> None:
    bag, rest = counts(25, words, seed), numbers(25, others, seed)
    x = np.hstack([bag, rest])
    expected = to_dense(FeatureRule.learn(x).apply(x))
    stored = sp.csr_array(x)
    np.testing.assert_allclose(
        to_dense(FeatureRule.learn(stored).apply(stored)), expected, atol=1e-12
    )
    rule = FeatureRule.learn(x)
    x[:, rule.bag] /= np.maximum(x[:, rule.bag].sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(to_dense(FeatureRule.learn(x).apply(x)), expected, atol=1e-12)


def test_rule_of_one_graph_is_applied_to_another() -> None:
    x = numbers(40, 6)
    rule = FeatureRule.learn(x)
    np.testing.assert_array_equal(to_dense(rule.apply(x[:5])), to_dense(rule.apply(x))[:5])


def test_normalised_keeps_edges_names_and_the_identity() -> None:
    graph = toy.path(4)
    assert normalised(graph) == (graph, None)
    named = Graph(graph.adjacency, numbers(4, 3), tuple("abcd"))
    changed, rule = normalised(named)
    assert rule is not None
    assert (changed.adjacency != graph.adjacency).nnz == 0
    assert changed.names == named.names
    np.testing.assert_array_equal(changed.features, rule.apply(named.features))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (sp.eye_array(3, format="csr"), True),
        (2 * sp.eye_array(3, format="csr"), False),
        (sp.csr_array(np.eye(3)[[1, 0, 2]]), False),
        (sp.csr_array(np.eye(3)[:2]), False),
        (np.eye(3), True),
        (np.eye(3)[[1, 0, 2]], False),
        (np.ones((3, 3)), False),
        (np.empty((3, 0)), False),
    ],
    ids=[
        "identity",
        "twice",
        "permuted",
        "not square",
        "dense",
        "dense permuted",
        "ones",
        "no columns",
    ],
)
def test_is_identity(x: Features, expected: bool) -> None:
    assert is_identity(x) == expected


def test_dense_identity_is_as_good_as_no_features() -> None:
    """PyTorch Geometric keeps features as a dense matrix."""
    graph = Graph.from_pyg(toy.path(4).to_pyg())
    assert isinstance(graph.features, np.ndarray)
    assert normalised(graph) == (graph, None)


@pytest.mark.parametrize("kind", ["words", "numbers", "mixed"])
def test_tables_have_the_features_that_the_rule_makes(kind: str, tmp_path: Path) -> None:
    x = {"words": counts(60, 30), "numbers": numbers(60, 5)}.get(kind)
    if x is None:
        x = np.hstack([counts(60, 30), numbers(60, 5)])
    edges = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    names = [f"n{k}" for k in range(60)]
    columns = [f"x{k}" for k in range(x.shape[1])]
    tables = {
        "edges": [["source", "target"], *([names[a], names[b]] for a, b in edges.T)],
        "nodes": [
            ["id", *columns, "topic"],
            *(
                [name, *row, "ab"[k % 2]]
                for k, (name, row) in enumerate(zip(names, x, strict=True))
            ),
        ],
    }
    for name, rows in tables.items():
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    read = read_tables(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="topic").graph
    graph, _ = normalised(Graph.from_edges(edges, 60, features=x))
    np.testing.assert_allclose(to_dense(read.features), to_dense(graph.features), atol=1e-12)
    assert sp.issparse(read.features) == sp.issparse(graph.features)
    assert (read.adjacency != graph.adjacency).nnz == 0
