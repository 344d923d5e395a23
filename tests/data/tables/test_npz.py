from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data.tables import npz, read_tables
from kryograph.data.tables.sheet import RawGraph
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import block

ADJACENCY = sp.csr_array(np.array([[0, 2.0, 0], [2.0, 0, 1], [0, 0, 0]]))
ATTRIBUTES = sp.csr_array(np.array([[1.0, 0], [0, 3], [0, 0]]))


def pieces(**changed: Any) -> dict[str, Any]:
    """A graph of three nodes; what is changed to None is left out."""
    arrays: dict[str, Any] = {"labels": np.array([1, 0, -1])}
    for name, matrix in (("adj", ADJACENCY), ("attr", ATTRIBUTES)):
        arrays |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices")}
        arrays |= {f"{name}_indptr": matrix.indptr, f"{name}_shape": np.array(matrix.shape)}
    return {name: array for name, array in (arrays | changed).items() if array is not None}


def listed(**changed: Any) -> dict[str, Any]:
    arrays = {
        "edges": np.array([[0, 1], [1, 2]]),
        "node_features": np.array([[1, -2.0], [3, 4], [5, 6]], dtype=np.float32),
        "node_labels": np.array([0, 1, 1]),
        "train_masks": np.eye(3, dtype=bool)[[0, 1]],
        "val_masks": np.eye(3, dtype=bool)[[1, 2]],
        "test_masks": np.eye(3, dtype=bool)[[2, 0]],
    }
    return {name: array for name, array in (arrays | changed).items() if array is not None}


def pyg(**changed: Any) -> dict[str, Any]:
    """The graph of `listed` with the names of PyTorch Geometric's `Data` and one split."""
    arrays = {
        "edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "x": np.array([[1, -2.0], [3, 4], [5, 6]], dtype=np.float32),
        "y": np.array([[0], [1], [1]]),
        "train_mask": np.array([True, False, False]),
        "val_mask": np.array([False, True, False]),
        "test_mask": np.array([False, False, True]),
    }
    return {name: array for name, array in (arrays | changed).items() if array is not None}


def saved(folder: Path, arrays: dict[str, Any]) -> Path:
    path = folder / "graph.npz"
    np.savez_compressed(path, **arrays)
    return path


def test_the_form_of_csr_pieces(tmp_path: Path) -> None:
    tables = read_tables(saved(tmp_path, pieces()), None, label=None)
    expected = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert tables.graph.adjacency.toarray().tolist() == expected
    assert tables.graph.names == ("0", "1", "2")
    assert tables.labels.tolist() == [1, 0, UNKNOWN]
    assert tables.classes == ("0", "1")
    assert block(tables.columns, "numbers")["names"] == ["0", "1"]
    assert isinstance(npz.read_npz(tmp_path / "graph.npz"), RawGraph)


def test_a_dense_matrix_of_attributes_gives_the_same(tmp_path: Path) -> None:
    first = read_tables(saved(tmp_path, pieces()), None, label=None)
    dense = pieces(attr_matrix=ATTRIBUTES.toarray(), attr_data=None)
    again = read_tables(saved(tmp_path, dense), None, label="labels")
    assert again.graph.fingerprint == first.graph.fingerprint


def test_the_form_of_listed_edges(tmp_path: Path) -> None:
    tables = read_tables(saved(tmp_path, listed()), None, label=None)
    assert tables.graph.edges == 2
    assert tables.labels.tolist() == [0, UNKNOWN, UNKNOWN]
    assert tables.classes == ("0",)
    assert block(tables.columns, "numbers")["means"] == [3.0, pytest.approx(8 / 3)]
    assert any("labels of its other nodes were not read" in note for note in tables.notes)
    whole = read_tables(tmp_path / "graph.npz", as_dataset=True)
    assert whole.labels.tolist() == [0, 1, 1]
    assert whole.masks is not None
    turned = read_tables(
        saved(tmp_path, listed(edges=np.array([[0, 1, 1], [1, 2, 0]]))), None, label=None
    )
    assert turned.graph.edges == 2


def test_the_names_of_pyg_give_the_same(tmp_path: Path) -> None:
    first = read_tables(saved(tmp_path, listed()), None, label=None)
    again = read_tables(saved(tmp_path, pyg()), None, label="y")
    assert again.graph.fingerprint == first.graph.fingerprint
    assert again.labels.tolist() == [0, UNKNOWN, UNKNOWN]
    turned = read_tables(saved(tmp_path, pyg(edge_index=pyg()["edge_index"].T)), None, label=None)
    assert turned.graph.fingerprint == first.graph.fingerprint


def test_weights_of_pyg_are_kept(tmp_path: Path) -> None:
    path = saved(tmp_path, pyg(x=None, edge_weight=np.array([2.0, 2, 0.5, 0.5])))
    graph = read_tables(path, None, label=None).graph
    assert graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]]
    assert graph.features.shape == (3, 3)


@pytest.mark.parametrize(
    ("arrays", "train", "test"),
    [
        (pyg(), [[1, 0, 0]], [[0, 0, 1]]),
        (listed(), [[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 0]]),
        (pyg(train_mask=np.eye(3, 2, dtype=int)), [[1, 0, 0], [0, 1, 0]], [[0, 0, 1]] * 2),
    ],
)
def test_masks_are_splits(
    tmp_path: Path, arrays: dict[str, Any], train: list[list[int]], test: list[list[int]]
) -> None:
    masks = npz.read_npz(saved(tmp_path, arrays)).masks
    assert masks is not None
    assert [mask.astype(int).tolist() for mask in (masks[0], masks[2])] == [train, test]


def test_masks_without_validation_nodes_are_not_splits(tmp_path: Path) -> None:
    assert npz.read_npz(saved(tmp_path, pyg(val_mask=None))).masks is None


def test_without_attributes_there_is_the_identity(tmp_path: Path) -> None:
    bare = pieces(attr_data=None, labels=None)
    tables = read_tables(saved(tmp_path, bare), None, label=None)
    assert tables.graph.features.shape == (3, 3)
    assert tables.classes == ()


def test_names_of_classes_are_read_only_if_they_are_no_pickles(tmp_path: Path) -> None:
    plain = pieces(class_names=np.array(["cats", "dogs"]))
    assert read_tables(saved(tmp_path, plain), None, label=None).classes == ("cats", "dogs")
    pickled = pieces(idx_to_class=np.array({0: "cats"}, dtype=object))
    tables = read_tables(saved(tmp_path, pickled), None, label=None)
    assert tables.classes == ("0", "1")
    assert any("'idx_to_class'" in note and "pickle" in note for note in tables.notes)


def test_the_recipe_of_one_file_fits_another(tmp_path: Path) -> None:
    columns = read_tables(saved(tmp_path, listed()), None, label=None).columns
    other = listed(node_features=np.array([[3.0, 8 / 3], [3, 8 / 3], [3, 8 / 3]]))
    again = read_tables(saved(tmp_path, other), None, label=None, columns=columns)
    assert abs(again.graph.features).max() < 1e-12
    wider = listed(node_features=np.ones((3, 1)))
    with pytest.raises(UsageError, match="lacks the column '1'"):
        read_tables(saved(tmp_path, wider), None, label=None, columns=columns)


class Evil:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    evil = np.array([Evil(trace)] * 3, dtype=object)
    for name in ("labels", "adj_data", "adj_shape", "attr_matrix"):
        with pytest.raises(UsageError, match=f"array '{name}': it holds pickled objects"):
            read_tables(saved(tmp_path, pieces(**{name: evil})), None, label=None)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        (pieces(adj_indices=None), "lacks the array 'adj_indices'"),
        (pieces(adj_shape=None), "lacks the array 'adj_shape'"),
        (listed(node_features=None, node_labels=None), "lacks the array 'node_features'"),
        ({"x": np.ones(3)}, "has neither 'adj_data'.*; it has x"),
        (pieces(adj_shape=np.array([3, 4])), "must be square"),
        (pieces(adj_shape=np.array([3])), r"'adj_shape': \[3\] is not the shape of a matrix"),
        (pieces(adj_shape=np.array([10**12, 10**12])), "does not delimit 1,000,000,000,000 rows"),
        (pieces(adj_indptr=np.array([0, 3, 1, 3])), "does not delimit 3 rows"),
        (pieces(adj_indices=np.array([1, 0, 7])), "'adj_indices': a column lies outside 0 to 2"),
        (pieces(adj_indices=np.array([1, 0])), "there are 2 columns and 3 values for 3 cells"),
        (pieces(adj_data=np.array([1, -1.0, 1])), "'adj_data': entry 1 is -1; weights must not be"),
        (pieces(adj_data=np.array([1, np.nan, 1])), r"'adj_data': entry \[1\] is nan"),
        (pieces(attr_matrix=np.ones((4, 2))), "there are 3 nodes, but 4 rows of features"),
        (pieces(attr_shape=np.array([3, 10**9])), "1,000,000,000 features are more than"),
        (pieces(labels=np.array([1, 2])), r"there are 3 nodes, but labels of shape \(2,\)"),
        (pieces(labels=np.array(["a", "b", "c"])), "'labels': it must hold whole numbers, not <U1"),
        (pieces(labels=np.array([0.5, 1, 2])), "'labels': labels must be whole numbers"),
        (listed(edges=np.ones((3, 3), dtype=int)), r"its shape is \(3, 3\), but it must be E × 2"),
        (
            listed(edges=np.array([[0, 1], [1, 3]])),
            "edge 1 joins 1 and 3, but the nodes are 0 ",
        ),
        (listed(edges=np.array([[0.5, 1]])), "'edges': it must hold whole numbers"),
        (listed(edges=np.array([0, 1])), "'edges': its shape is .* but it must have 2 axes"),
        (pyg(edge_index=np.zeros((3, 1), int)), r"its shape is \(3, 1\), but it must be 2 × E"),
        (pyg(y=np.array(1), x=None), "the nodes are 0 to -1"),
        (pyg(edge_weight=np.ones(3)), "'edge_weight': there are 4 edges, but 3 weights"),
        (pyg(val_mask=np.ones((3, 2, 2), bool)), r"'val_mask': its shape is \(3, 2, 2\)"),
        (pyg(val_mask=np.ones(4, bool)), r"its shape is \(4,\), but there are 3 nodes and 1 split"),
        (listed(val_masks=np.ones((3, 3), bool)), "there are 3 nodes and 3 splits"),
        (pyg(val_mask=np.array(["a"] * 3)), "'val_mask': it must hold truth values, not <U1"),
        (listed(node_features=np.ones(3)), r"its shape is \(3,\), but it must be a matrix"),
        (listed(node_features=np.full((3, 2), np.inf)), r"entry \[0, 0\] is inf, not a usable"),
        (listed(node_features=np.ones((0, 2)), edges=np.ones((0, 2), int)), "has no nodes"),
    ],
)
def test_wrong_arrays(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read_tables(saved(tmp_path, arrays), None, label=None)


def test_missing_labels_as_nan(tmp_path: Path) -> None:
    tables = read_tables(
        saved(tmp_path, pieces(labels=np.array([1.0, np.nan, 0]))), None, label=None
    )
    assert tables.labels.tolist() == [1, UNKNOWN, 0]


def test_a_file_that_would_unpack_to_far_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "LARGE_ARRAY_BYTES", 1 << 20)
    path = saved(tmp_path, pieces(extra=np.zeros(10**6)))
    with pytest.raises(UsageError, match=r"would unpack to .* and was not read"):
        read_tables(path, None, label=None)


def test_other_files_by_that_name(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    for content in (b"PK\x03\x04", b"no zip at all", saved(tmp_path, pieces()).read_bytes()[:-30]):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"is damaged or not an \.npz file"):
            read_tables(path, None, label=None)
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", stream.getvalue()[:-8])
    with pytest.raises(UsageError, match=r"claims the shape \(3,\), 24 bytes, but has room for 16"):
        read_tables(path, None, label=None)
