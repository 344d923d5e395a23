from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError


def edge_homophily(data: Dataset) -> float:
    edges = sp.coo_array(data.graph.adjacency)
    return float(np.mean(data.labels[edges.row] == data.labels[edges.col]))


@settings(max_examples=25)
@given(
    n=st.integers(200, 1000),
    classes=st.integers(2, 6),
    homophily=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    mean_degree=st.sampled_from([0.0, 2.0, 5.0]),
    seed=st.integers(0, 1000),
)
def test_counts_are_as_asked(
    n: int, classes: int, homophily: float, mean_degree: float, seed: int
) -> None:
    data = synthetic_citations(
        n, classes, words=50, homophily=homophily, mean_degree=mean_degree, seed=seed
    )
    assert data.graph.n == n
    assert data.graph.edges == round(n * mean_degree / 2)
    sizes = np.bincount(data.labels, minlength=classes)
    assert sizes.max() - sizes.min() <= 1
    if mean_degree:
        assert edge_homophily(data) == pytest.approx(homophily, abs=0.51 / data.graph.edges)


def test_the_seed_is_all_the_randomness() -> None:
    first, again, other = (synthetic_citations(600, 3, seed=s) for s in (5, 5, 6))
    assert first.graph.fingerprint == again.graph.fingerprint
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.graph.fingerprint != other.graph.fingerprint


def test_features_are_sparse_and_sum_to_one() -> None:
    data = synthetic_citations(seed=2)
    features = data.graph.features
    assert isinstance(features, sp.csr_array)
    assert features.shape == (2708, 1433)
    np.testing.assert_allclose(features.sum(axis=1), 1.0)
    raw = synthetic_citations(seed=2, normalise=False).graph.features
    assert isinstance(raw, sp.csr_array)
    assert set(raw.data) == {1.0}
    assert 14 < raw.nnz / 2708 <= 18


def test_degrees_have_a_heavy_tail() -> None:
    degrees = synthetic_citations(seed=0).graph.adjacency.sum(axis=1)
    # A graph whose edges are drawn evenly has Poisson degrees: none of 2,708 would reach 20.
    assert degrees.max() > 30
    assert np.median(degrees) <= 4


def test_words_tell_classes_and_neighbours_help() -> None:
    """A nearest-centroid classifier, from the labels of the public training nodes."""
    data = synthetic_citations(seed=0)
    assert data.public is not None
    features = sp.csr_array(data.graph.features)
    spread = sp.csr_array(data.graph.adjacency + sp.eye_array(data.graph.n))
    scores = {}
    for name, matrix in {"words": features, "spread": spread @ (spread @ features)}.items():
        rows = np.asarray(matrix.todense())
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        train, test = data.public.train, data.public.test
        centroids = np.stack([rows[train][data.labels[train] == c].mean(axis=0) for c in range(7)])
        guess = (rows[test] @ centroids.T).argmax(axis=1)
        scores[name] = float(np.mean(guess == data.labels[test]))
    assert 0.4 < scores["words"] < 0.7
    assert 0.7 < scores["spread"] < 0.9


def test_without_signal_words_say_nothing() -> None:
    data = synthetic_citations(20_000, 2, words=30, signal=0.0, seed=0, normalise=False)
    features = sp.csr_array(data.graph.features)
    share = [
        np.asarray(features[np.flatnonzero(data.labels == c)].mean(axis=0)).ravel() for c in (0, 1)
    ]
    # Five standard deviations of the difference of two shares of 10,000 nodes.
    assert np.abs(share[0] - share[1]).max() < 5 * np.sqrt(2 * 0.25 / 10_000)


def test_the_public_split_is_like_planetoids() -> None:
    public = synthetic_citations(seed=4).public
    assert public is not None
    assert public.name == "public"
    assert (public.train.size, public.validation.size, public.test.size) == (140, 500, 1000)
    assert synthetic_citations(n=1639, seed=4).public is None
    assert synthetic_citations(n=1640, seed=4).public is not None


def test_it_scales() -> None:
    data = synthetic_citations(200_000, words=64, words_per_node=8)
    assert data.graph.edges == 400_000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 5}, "5 nodes cannot have 7 classes"),
        ({"classes": 0}, "classes must be 1 or more; got 0"),
        ({"words": 0}, "words must be 1 or more"),
        ({"words_per_node": -1}, "words_per_node must be 1 or more"),
        ({"homophily": 1.5}, "homophily must lie between 0 and 1; got 1.5"),
        ({"signal": float("nan")}, "signal must lie between 0 and 1; got nan"),
        ({"mean_degree": -1.0}, "mean_degree must be 0 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"n": 20, "mean_degree": 19.0}, "no room for"),
        ({"classes": 1, "homophily": 0.5}, "no room for"),
    ],
)
def test_impossible_arguments(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        synthetic_citations(**wrong)


def test_one_class_is_possible() -> None:
    assert synthetic_citations(50, 1, homophily=1.0).graph.edges == 100
