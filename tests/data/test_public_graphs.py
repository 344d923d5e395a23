"""Tiny files in the real layout of every public set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import DATASETS, load
from kryograph.data.public_graphs import read_npz_graph, read_wiki_cs
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN

SHCHUR = ["amazon-computers", "amazon-photo", "coauthor-cs", "coauthor-physics"]
PLATONOV = [
    *("chameleon-filtered", "squirrel-filtered", "roman-empire", "amazon-ratings"),
    *("minesweeper", "tolokers", "questions"),
]
EDGES = "node_id\tnode_id\n2\t0\n0\t2\n1\t2\n"
NODES = "node_id\tfeature(feature_amount:931)\tlabel\n2\t0,3,3\t1\n0\t1\t0\n1\t3\t2\n"


def file_name(name: str) -> str:
    return DATASETS[name].forms[0].files[0].base_name


def wiki_cs(**changed: Any) -> dict[str, Any]:
    """Four articles, two splits with the same test node."""
    return {
        "features": [[0.5, -1.0], [1.0, 2.0], [0.0, 0.5], [1.5, 1.0]],
        "labels": [0, 1, 0, 1],
        "links": [[1, 0], [2], [], [2, 1]],
        "train_masks": [[True, False, False, False], [False, True, False, False]],
        "val_masks": [[False, True, False, False], [True, False, False, False]],
        "stopping_masks": [[False, False, True, False]] * 2,
        "test_mask": [False, False, False, True],
        **changed,
    }


@pytest.mark.parametrize("name", SHCHUR)
def test_shchurs_sets_are_read_and_divided_by_row_sums(name: str, tmp_path: Path) -> None:
    adjacency = sp.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 1, 1]], dtype=np.float32))
    words = sp.csr_array(np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=np.float32))
    arrays: dict[str, Any] = {"labels": np.array([0, 1, 1]), "metadata": np.array({}, dtype=object)}
    for prefix, matrix in (("adj", adjacency), ("attr", words)):
        arrays |= {f"{prefix}_{part}": getattr(matrix, part) for part in ("data", "indices")}
        arrays |= {f"{prefix}_indptr": matrix.indptr, f"{prefix}_shape": matrix.shape}
    np.savez(tmp_path / file_name(name), **arrays)
    data = load(name, data_dir=tmp_path)
    assert data.graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert sp.csr_array(data.graph.features).toarray()[0].tolist() == [0.5, 0, 0.5, 0]
    assert (data.labels.tolist(), data.classes) == ([0, 1, 1], ("class 0", "class 1"))
    assert data.public is None
    with pytest.raises(UsageError, match=f"The data set '{name}' has no public split"):
        data.split()


@pytest.mark.parametrize("name", PLATONOV)
def test_platonovs_sets_have_a_split_for_each_seed(name: str, tmp_path: Path) -> None:
    masks = {
        f"{part}_masks": np.roll(np.eye(10, dtype=bool), shift, axis=1)
        for shift, part in enumerate(("train", "val", "test"))
    }
    features = np.ones((10, 2), dtype=np.float32)
    np.savez(
        tmp_path / file_name(name),
        edges=np.array([[0, 1], [2, 3], [3, 4]]),
        node_features=features,
        node_labels=np.arange(10) % 2,
        **masks,
    )
    data = load(name, data_dir=tmp_path)
    assert data.graph.edges == 3
    counted = name.endswith("filtered")
    assert sp.csr_array(data.graph.features).toarray()[0].tolist() == [0.5 if counted else 1] * 2
    for seed in (0, 3, 9, 13):
        split = data.split(seed=seed)
        assert (split.train, split.validation) == (seed % 10, (seed + 1) % 10)
        assert split.test == (seed + 2) % 10
    assert "; 10 splits" in DATASETS[name].summary


def test_npz_archives_name_their_classes_or_not(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    arrays = {"edge_index": np.array([[0], [1]]), "x": np.ones((2, 1)), "y": np.array([1, 0])}
    np.savez(path, **arrays, label_names=np.array(["cats", "dogs"]))  # type: ignore[arg-type]
    assert read_npz_graph(path).classes == ("cats", "dogs")
    for missing, word in (("x", "features"), ("y", "labels")):
        np.savez(path, **{name: arrays[name] for name in arrays if name != missing})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=rf"graph\.npz has no {word}"):
            read_npz_graph(path)


def test_wiki_cs_has_one_test_set_and_many_splits(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(wiki_cs()))
    data = load("wiki-cs", data_dir=tmp_path)
    assert data.graph.edges == 4  # a link of an article to itself is dropped
    assert data.graph.adjacency[2].toarray().tolist() == [0, 1, 0, 1]
    assert np.asarray(data.graph.features)[0].tolist() == [0.5, -1.0]
    assert [data.split(seed=seed).train.tolist() for seed in (0, 1, 2)] == [[0], [1], [0]]
    assert [data.split(seed=seed).test.tolist() for seed in (0, 1)] == [[3], [3]]


@pytest.mark.parametrize(
    "content",
    [
        "<html>",
        "[]",
        "{}",
        json.dumps(wiki_cs(links=[])),
        json.dumps(wiki_cs(features=[[1], [1, 2]])),
        json.dumps(wiki_cs(test_mask=[True, False])),
        json.dumps(wiki_cs(train_masks=[[True, False]])),
    ],
)
def test_another_json_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"data\.json is damaged or not WikiCS's data\.json"):
        read_wiki_cs(path)


def film(folder: Path, edges: str = EDGES, nodes: str = NODES) -> Path:
    (folder / "out1_graph_edges.txt").write_text(edges)
    (folder / "out1_node_feature_label.txt").write_text(nodes)
    return folder


def test_actor_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    data = load("actor", data_dir=film(tmp_path), normalise=False)
    expected = [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 1]]
    assert sp.csr_array(data.graph.features).toarray().tolist() == expected
    assert data.labels.tolist() == [0, 2, 1]
    assert data.graph.adjacency.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    ("edges", "nodes", "expected"),
    [
        (EDGES, NODES + "4\t1\t0\n", "must number the nodes from 0 to 3"),
        (EDGES, NODES + "3\t1\n", "every line must have a node, its words and a class"),
        (EDGES, "node_id\tfeature\tlabel\n", "every line must have a node"),
        (EDGES, NODES.replace("0,3,3", "0,x"), "feature_label.txt is damaged: invalid literal"),
        (EDGES, NODES.replace("0,3,3", "-7"), "feature_label.txt is damaged: it must hold numbers"),
        ("node_id\tnode_id\n", NODES, "edges.txt is damaged: it must hold numbers from 0 on"),
        (EDGES + "1\n", NODES, "edges.txt is damaged: the last line has one node"),
        (EDGES + "1\t3\n", NODES, "Edge 3 joins 1 and 3, but nodes are 0 to 2"),
    ],
)
def test_damaged_files_of_actor_are_refused(
    tmp_path: Path, edges: str, nodes: str, expected: str
) -> None:
    with pytest.raises(UsageError, match=expected):
        load("actor", data_dir=film(tmp_path, edges, nodes))


def test_every_public_set_has_an_address_for_each_file() -> None:
    names = [*SHCHUR, *PLATONOV, "wiki-cs", "actor"]
    assert set(names) <= set(DATASETS)
    files = [file for name in names for form in DATASETS[name].forms for file in form.files]
    assert all(file.url.startswith("https://raw.githubusercontent.com/") for file in files)
    assert len({file.name for file in files}) == len(files) == 14


def test_unlabelled_nodes_are_in_no_split(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(wiki_cs(labels=[0, UNKNOWN, 0, 1])))
    with pytest.raises(UsageError, match="Split 'public 1' has no training node"):
        load("wiki-cs", data_dir=tmp_path)
    masks = [[True, True, False, False]] * 2
    validation = [[False, False, True, False]] * 2
    changed = wiki_cs(labels=[0, UNKNOWN, 0, 1], train_masks=masks, val_masks=validation)
    (tmp_path / "data.json").write_text(json.dumps(changed))
    assert load("wiki-cs", data_dir=tmp_path).split().train.tolist() == [0]
