from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data import find_source, load, toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN

EDGES = "source,target\na,b\nb,c\nc,d\n"
NODES = "id,age,label\na,1,x\nb,2,\nc,4,y\nd,3,x\n"


def write_npz(path: Path, labels: np.ndarray | None = None) -> Path:
    """Two cliques of four nodes as CSR pieces."""
    adjacency = toy.two_cliques(4).adjacency
    arrays = {f"adj_{part}": getattr(adjacency, part) for part in ("data", "indices", "indptr")}
    arrays["adj_shape"] = np.array(adjacency.shape)
    if labels is not None:
        arrays["labels"] = labels
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tables of four people, one of whom has no label."""
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "edges.csv").write_text(EDGES)
    (folder / "nodes.csv").write_text(NODES)
    return folder


def test_a_file_is_a_data_set(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "graph.npz", np.array([0, 0, 0, -1, 1, 1, 1, 1]))
    data = load(path)
    assert data.graph.fingerprint == toy.two_cliques(4).fingerprint
    assert data.labels.tolist() == [0, 0, 0, UNKNOWN, 1, 1, 1, 1]
    assert data.classes == ("0", "1")
    assert data.origin == str(path)
    assert load(str(path), remove_unlabelled=True).graph.n == 7


def test_a_folder_of_tables_is_a_data_set(folder: Path) -> None:
    notes: list[str] = []
    data = load(f"{folder}/", notify=notes.append)
    assert data.graph.names == ("a", "b", "c", "d")
    assert (data.classes, data.labels.tolist()) == (("x", "y"), [0, UNKNOWN, 1, 0])
    assert data.graph.features.shape == (4, 1)
    (folder / "nodes.csv").write_text(NODES.replace("d,3", "d,"))
    load(folder, notify=notes.append)
    assert notes == ["1 empty cell in column 'age' filled with its mean."]


def test_a_folder_with_one_file_is_that_file(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    write_npz(folder / "anything.npz", np.arange(8) % 2)
    (folder / ".hidden").write_text("")
    assert load(folder).graph.n == 8
    (folder / "readme.txt").write_text("what this is")
    with pytest.raises(UsageError, match=r"must hold edges\.csv .* it holds anything\.npz, readme"):
        load(folder)
    (folder / "anything.npz").rename(folder / "graph.npz")
    assert load(folder).graph.n == 8


def test_the_name_in_rows_finds_the_same_files_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    source = find_source("./people/")
    assert source.name.startswith("./people#")
    assert source.title == "people"
    assert find_source("people").name == find_source(source.name).name == source.name
    assert load(source.name).name == source.name
    assert find_source(folder).name == f"{folder}#{source.name[-8:]}"


def test_the_name_in_rows_changes_with_the_files(folder: Path) -> None:
    name = find_source(folder).name
    (folder / "nodes.csv").write_text(NODES.replace("a,1", "a,7"))
    assert find_source(folder).name != name
    with pytest.raises(UsageError, match=rf"{folder} was changed: its digest is \w+, not"):
        load(name)


def test_a_data_set_of_the_catalogue_comes_before_a_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    folder.rename("synthetic")
    assert load("synthetic").graph.n == 2708
    assert load("./synthetic").graph.n == 4


def test_a_file_without_labels_is_refused_with_advice(tmp_path: Path, folder: Path) -> None:
    path = write_npz(tmp_path / "graph.npz")
    with pytest.raises(UsageError, match=r"graph\.npz has no labels: .*'label'.*kryograph fit"):
        load(path)
    (folder / "nodes.csv").write_text("id,age,topic\na,1,x\nb,2,y\nc,3,x\nd,4,y\n")
    with pytest.raises(UsageError, match=r"people has no labels"):
        load(folder)
    (folder / "nodes.csv").write_text(NODES.replace("y", "x"))
    with pytest.raises(UsageError, match=r"All labels of .*people are 'x': two classes are needed"):
        load(folder)


def test_what_is_not_there_is_named(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no file or folder .*none\.npz"):
        load(tmp_path / "none.npz")
    (folder / "edges.tsv").write_text("")
    with pytest.raises(UsageError, match=r"people has edges\.csv and edges\.tsv: remove one"):
        load(folder)
    with pytest.raises(UsageError, match="made by a recipe: normalise must be True"):
        load(write_npz(tmp_path / "graph.npz", np.arange(8) % 2), normalise=False)


def test_masks_are_public_splits(tmp_path: Path) -> None:
    graph = toy.path(4)
    ends = np.stack(sp.triu(graph.adjacency).nonzero())
    arrays = {"edge_index": ends, "y": np.arange(4) % 2, "x": np.eye(4)}
    one = np.eye(4, dtype=bool)
    masks = dict(zip(("train_mask", "val_mask", "test_mask"), one, strict=False))
    notes: list[str] = []
    np.savez(tmp_path / "one.npz", **arrays, **masks)  # type: ignore[arg-type]
    data = load(tmp_path / "one.npz", notify=notes.append)
    split = data.split(seed=5)
    assert (split.name, split.train, split.validation, split.test) == ("public", 0, 1, 2)
    assert (notes, data.more_public) == ([], ())
    several = {name: np.stack([mask, np.roll(mask, 1)], axis=1) for name, mask in masks.items()}
    np.savez(tmp_path / "two.npz", **arrays, **several)  # type: ignore[arg-type]
    data = load(tmp_path / "two.npz", notify=notes.append)
    assert [data.split(seed=seed).train.tolist() for seed in (0, 1, 2)] == [[0], [1], [0]]
    assert len(notes) == 1
    assert notes[0].endswith("two.npz has 2 splits: seed k takes the k-th, counted from 0.")


def test_small_graphs_have_small_splits(tmp_path: Path) -> None:
    data = load(write_npz(tmp_path / "graph.npz", np.arange(8) % 2))
    split = data.split(1, seed=0)
    assert (split.train.size, split.validation.size, split.test.size) == (2, 2, 4)
    assert isinstance(data.graph.features, sp.csr_array)
