from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from kryograph.data import Dataset, PublishedGraph, load
from kryograph.data.planetoid import PLANETOID_PARTS, read_pickles
from kryograph.data.sources import RawFiles
from kryograph.graph import UNKNOWN, Graph, digest

UNLABELLED = [
    *(2407, 2489, 2553, 2682, 2781, 2953, 3042, 3063),
    *(3212, 3214, 3250, 3292, 3305, 3306, 3309),
]


@pytest.fixture(params=["cora", "citeseer", "pubmed"])
def data(request: pytest.FixtureRequest) -> Dataset:
    found: Dataset = request.getfixturevalue(request.param)
    return found


COUNTS = {
    # nodes, words, non-zeros, edges, components, isolated nodes, class sizes, public train
    "cora": (2708, 1433, 49216, 5278, 78, 0, [351, 217, 418, 818, 426, 298, 180], 140),
    "citeseer": (3327, 3703, 105165, 4552, 438, 48, [249, 590, 668, 701, 596, 508], 120),
    "pubmed": (19717, 500, 988031, 44324, 1, 0, [4103, 7739, 7875], 60),
}


def test_known_counts(data: Dataset) -> None:
    graph = data.graph
    features = graph.features
    assert isinstance(features, sp.csr_array)
    assert data.public is not None
    found = (
        graph.n,
        features.shape[1],
        features.nnz,
        graph.edges,
        connected_components(graph.adjacency)[0],
        int((graph.adjacency.sum(axis=1) == 0).sum()),
        np.bincount(data.labels[data.labels != UNKNOWN]).tolist(),
        data.public.train.size,
    )
    assert found == COUNTS[data.name]
    assert len(data.classes) == len(COUNTS[data.name][6])


def test_the_public_split(data: Dataset) -> None:
    public = data.public
    assert public is not None
    first = public.train.size
    assert np.bincount(data.labels[public.train]).tolist() == [20] * len(data.classes)
    np.testing.assert_array_equal(public.train, np.arange(first))
    np.testing.assert_array_equal(public.validation, np.arange(first, first + 500))
    assert public.test.size == 1000
    known = np.flatnonzero(data.labels != UNKNOWN)
    np.testing.assert_array_equal(public.test, known[-1000:])


def test_rows_sum_to_one_or_are_empty(data: Dataset) -> None:
    sums = np.asarray(data.graph.features.sum(axis=1)).ravel()
    empty = np.flatnonzero(sums == 0)
    assert empty.tolist() == (UNLABELLED if data.name == "citeseer" else [])
    np.testing.assert_allclose(np.delete(sums, empty), 1.0)


def test_citeseer_keeps_papers_without_label_out_of_splits(citeseer: Dataset) -> None:
    assert np.flatnonzero(citeseer.labels == UNKNOWN).tolist() == UNLABELLED
    split = citeseer.split("5%", seed=0)
    parts = np.concatenate([split.train, split.validation, split.test])
    assert np.intersect1d(parts, UNLABELLED).size == 0
    assert citeseer.graph.adjacency[UNLABELLED].nnz == 16


def test_citeseer_without_papers_that_have_no_label(citeseer: Dataset) -> None:
    fewer = load("citeseer", remove_unlabelled=True)
    keep = np.delete(np.arange(3327), UNLABELLED)
    assert (fewer.graph.n, fewer.graph.edges) == (3312, 4552 - 16)
    adjacency = citeseer.graph.adjacency[keep][:, keep]
    assert abs(fewer.graph.adjacency - adjacency).max() == 0
    words = sp.csr_array(citeseer.graph.features)[keep]
    assert abs(sp.csr_array(fewer.graph.features) - words).max() == 0
    np.testing.assert_array_equal(fewer.labels, citeseer.labels[keep])
    assert fewer.public is not None
    np.testing.assert_array_equal(fewer.public.test, np.arange(2312, 3312))


def test_cora_is_planetoids_cora(real_files: dict[str, RawFiles]) -> None:
    """Whatever form the files came in, the digests are those of Planetoid's own.

    They were computed once from the files ind.cora.* (SHA-256 as in `CHECKSUMS`), with plain
    `pickle`, the test rows put at `test.index`, and nothing of this package but `Graph.from_edges`,
    `Split` and `digest`.
    """
    data = load("cora", normalise=False)
    assert data.public is not None
    assert data.graph.fingerprint == "2727a5f7b52ec23d"
    assert digest(data.labels) == "0f1eb1a35c060025"
    assert data.public.digest == "85ffd58ce46f3416"


def read_folder(folder: Path, name: str) -> PublishedGraph:
    return read_pickles(*(folder / f"ind.{name}.{part}" for part in PLANETOID_PARTS))


def write_pickles(papers: PublishedGraph, folder: Path, shuffle: np.random.Generator) -> None:
    """Write papers as ind.cora.* files, with the test nodes in random order."""
    [public] = papers.splits
    test = shuffle.permutation(public.test)
    others = np.setdiff1d(np.arange(papers.labels.size), public.test)
    marks = np.eye(papers.labels.max() + 1, dtype=np.int32)[papers.labels]
    graph: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in papers.edges.T.tolist():
        graph[source].append(target)
    parts = {
        "x": sp.csr_matrix(papers.features[public.train]),
        "y": marks[public.train],
        "allx": sp.csr_matrix(papers.features[others]),
        "ally": marks[others],
        "tx": sp.csr_matrix(papers.features[test]),
        "ty": marks[test],
        "graph": graph,
    }
    for part, content in parts.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(content, protocol=3))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, test)) + "\n")


def test_cora_survives_being_written_as_pickles(
    real_files: dict[str, RawFiles], tmp_path: Path
) -> None:
    files = real_files["cora"]
    papers = files.form.read(*files.paths)
    write_pickles(papers, tmp_path, np.random.default_rng(0))
    again = read_folder(tmp_path, "cora")

    def fingerprint(some: PublishedGraph) -> str:
        return Graph.from_edges(some.edges, some.labels.size, features=some.features).fingerprint

    assert fingerprint(again) == fingerprint(papers)
    np.testing.assert_array_equal(again.labels, papers.labels)
    assert again.splits[0].digest == papers.splits[0].digest


def test_a_hole_in_the_test_index_is_a_node_without_words_or_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.data.planetoid.VALIDATION", 1)
    parts = {
        "x": sp.csr_matrix([[1.0, 0.0]]),
        "y": np.array([[1, 0]]),
        "allx": sp.csr_matrix([[1.0, 0.0], [0.0, 2.0]]),
        "ally": np.array([[1, 0], [0, 1]]),
        "tx": sp.csr_matrix([[5.0, 5.0], [0.0, 3.0]]),
        "ty": np.array([[0, 1], [1, 0]]),
        "graph": defaultdict(list, {0: [1, 3], 1: [0], 3: [3], 4: []}),
    }
    for part, content in parts.items():
        (tmp_path / f"ind.toy.{part}").write_bytes(pickle.dumps(content, protocol=3))
    (tmp_path / "ind.toy.test.index").write_text("4\n2\n")
    papers = read_folder(tmp_path, "toy")
    expected = [[1, 0], [0, 2], [0, 3], [0, 0], [5, 5]]
    np.testing.assert_array_equal(papers.features.toarray(), expected)
    assert papers.labels.tolist() == [0, 1, 0, UNKNOWN, 1]
    assert papers.edges.T.tolist() == [[0, 1], [0, 3], [1, 0], [3, 3]]
    assert papers.splits[0].test.tolist() == [2, 4]
