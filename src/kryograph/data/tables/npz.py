"""Graphs in NumPy's .npz files, in the layouts of three benchmarks; pickles are never read.

Shchur: the pieces of CSR matrices, `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape` and the
same for `attr` (or one dense `attr_matrix`), and `labels`. Platonov: `edges` (E × 2),
`node_features` and `node_labels`. PyTorch Geometric: `edge_index` (2 × E), `edge_weight`, `x`, `y`.

Splits are masks: `train_masks`, `val_masks` and `test_masks` are K × N, as in Platonov's files;
`train_mask`, `val_mask` and `test_mask` are N or N × K, as in PyTorch Geometric.

The size that an array claims to have is compared with the size of the file before anything is read,
so that a file of a few bytes cannot ask for all memory.
"""

from __future__ import annotations

import itertools
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.data.tables.formats import FILE_FORMATS, FileFormat
from kryograph.data.tables.sheet import (
    LARGEST_WHOLE,
    Floats,
    Mask,
    NumberColumn,
    RawGraph,
    Sheet,
    SplitMasks,
    text_column,
)
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Features, Indices
from kryograph.text import plural

CLASS_NAMES = ("class_names", "idx_to_class", "label_names")
MASK_NAMES = (("train_mask", "val_mask", "test_mask"), ("train_masks", "val_masks", "test_masks"))
MOST_COLUMNS = 200_000
LARGE_ARRAY_BYTES = 4 << 30
UNPACKED_RATIO_OF_ARRAYS = 100
"""More than LARGE_ARRAY_BYTES are not unpacked if they are more than this times the file's size."""

LoadedArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ArrayGraph:
    """Contents of an .npz file, checked."""

    n: int
    pairs: Indices
    """2 × E node numbers, as listed."""
    weights: Floats | None
    features: Features | None
    """N × F; None if the file has none."""
    labels: Indices | None
    """N class numbers, `UNKNOWN` where there is no label; None if the file has none."""
    label_name: str
    """Name of the array of labels in this layout."""
    classes: tuple[str, ...]
    """Names of the classes; () if the file has none that can be read."""
    masks: SplitMasks | None
    known: Mask | None
    """N; the training nodes of the first split, None if the file has no mask of them."""
    notes: tuple[str, ...]


def read_npz(path: Path) -> RawGraph:
    """Read a graph in any of the layouts, with the features and the labels as columns."""
    arrays = read_arrays(path)
    columns: dict[str, Any] = {}
    if arrays.features is not None:
        columns = feature_columns(arrays.features)
    if arrays.labels is not None:
        name_of = arrays.classes.__getitem__ if arrays.classes else str
        names = [name_of(label) if label >= 0 else "" for label in arrays.labels.tolist()]
        columns[arrays.label_name] = text_column(names)
    return RawGraph(
        ids=tuple(map(str, range(arrays.n))),
        pairs=arrays.pairs,
        weights=arrays.weights,
        sheet=Sheet(path, columns, arrays.n, lambda row: f"node {row}"),
        label=None if arrays.labels is None else arrays.label_name,
        masks=arrays.masks,
        known=arrays.known,
        notes=arrays.notes,
    )


def feature_columns(features: Features) -> dict[str, Any]:
    """Divide a matrix of features into columns called "0", "1" and so on."""
    cells = sp.csc_array(features)
    rows = cells.indices.astype(np.int32)
    return {
        str(at): NumberColumn(cells.shape[0], rows[start:end], cells.data[start:end])
        for at, (start, end) in enumerate(itertools.pairwise(cells.indptr))
    }


FILE_FORMATS.add("npz", FileFormat("NumPy arrays", read_npz, whole=True))


def read_arrays(path: Path) -> ArrayGraph:
    """Read a graph in any of the layouts."""
    with _Archive(path) as archive:
        if "adj_shape" in archive.members or "adj_indptr" in archive.members:
            return _from_pieces(archive)
        if "edges" in archive.members:
            return _from_edge_array(archive, "edges", 1, "node_features", "node_labels")
        if "edge_index" in archive.members:
            return _from_edge_array(archive, "edge_index", 0, "x", "y")
        raise UsageError(
            f"{path} has neither 'adj_data', 'adj_indices', 'adj_indptr' and 'adj_shape' nor "
            "'edges' and 'node_features' nor 'edge_index' and 'x'; it has "
            f"{', '.join(archive.members) or 'nothing'}."
        )


class Member(NamedTuple):
    """An array in the file: its entry in the archive, and shape and type from its header."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Archive:
    """The arrays of a file: all headers when it is opened, the arrays one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members: dict[str, Member] = {}

    def __enter__(self) -> _Archive:
        try:
            self._zip = zipfile.ZipFile(self.path)
            for info in self._zip.infolist():
                self.members[info.filename.removesuffix(".npy")] = _member(self._zip, info)
        except Exception as error:  # a broken archive can raise nearly anything
            reason = str(error) or type(error).__name__
            raise UsageError(f"{self.path} is damaged or not an .npz file ({reason}).") from error
        size, packed = sum(i.file_size for i in self._zip.infolist()), self.path.stat().st_size
        if size > max(LARGE_ARRAY_BYTES, UNPACKED_RATIO_OF_ARRAYS * packed):
            raise UsageError(
                f"{self.path} would unpack to {size / 1e9:,.0f} GB from {packed / 1e6:,.1f} MB and "
                "was not read."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def fault(self, name: str, what: str) -> UsageError:
        return UsageError(f"{self.path}, array {name!r}: {what}.")

    def check(self, fine: bool | np.bool_, name: str, what: str) -> None:
        """Raise an error about an array unless it is `fine`."""
        if not fine:
            raise self.fault(name, what)

    def __getitem__(self, name: str) -> LoadedArray:
        if name not in self.members:
            raise UsageError(f"{self.path} lacks the array {name!r}.")
        member = self.members[name]
        what = "it holds pickled objects, which are never read"
        self.check(not member.dtype.hasobject, name, what)
        try:
            with self._zip.open(member.info) as stream:
                return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise self.fault(name, f"it is damaged ({reason})") from error

    def whole(self, name: str, ndim: int = 1) -> Indices:
        """Read an array of integers with `ndim` axes."""
        array = self[name]
        what = f"its shape is {array.shape}, but it must have {ndim} axes"
        self.check(array.ndim == ndim, name, what)
        if array.dtype.kind == "u":
            array = np.minimum(array, np.iinfo(np.int64).max)
        elif array.dtype.kind == "f" and np.all(np.isfinite(array)):
            fine = np.all(array == np.floor(array)) and np.all(np.abs(array) <= 2**53)
            self.check(fine, name, "it must hold whole numbers")
        else:
            what = f"it must hold whole numbers, not {array.dtype}"
            self.check(array.dtype.kind == "i", name, what)
        return array.astype(np.int64)

    def real(self, name: str) -> Floats:
        """Read an array of finite numbers."""
        array = self[name]
        self.check(array.dtype.kind in "biuf", name, f"it must hold numbers, not {array.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):
            values = array.astype(np.float64)
            bad = np.argwhere(~(np.abs(values) <= LARGEST_WHOLE))
        if bad.size:
            at = tuple(bad[0].tolist())
            where = ", ".join(map(str, at))
            raise self.fault(name, f"entry [{where}] is {values[at]:g}, not a usable number")
        return values

    def weights(self, name: str, count: int) -> Floats:
        """Read `count` weights of edges."""
        weights = self.real(name).reshape(-1)
        what = f"there are {count:,} edges, but {weights.size:,} weights"
        self.check(weights.size == count, name, what)
        bad = np.flatnonzero(weights < 0)
        if bad.size:
            what = f"entry {bad[0]} is {weights[bad[0]]:g}; weights must not be negative"
            raise self.fault(name, what)
        return weights

    def csr(self, name: str) -> sp.csr_array:
        """Read a matrix from its pieces, each of which is checked."""
        shape = self.whole(f"{name}_shape")
        what = f"{shape.tolist()} is not the shape of a matrix"
        self.check(shape.size == 2 and shape.min() >= 0, f"{name}_shape", what)
        rows, width = map(int, shape)
        data = self.real(f"{name}_data")
        indices, indptr = self.whole(f"{name}_indices"), self.whole(f"{name}_indptr")
        fine = indptr.size == rows + 1 and indptr[0] == 0 and np.all(np.diff(indptr) >= 0)
        self.check(fine, f"{name}_indptr", f"it does not delimit {rows:,} rows")
        sizes = f"{indices.size:,} columns and {data.size:,} values for {indptr[-1]:,} cells"
        fine = data.shape == indices.shape and indptr[-1] == indices.size
        self.check(fine, f"{name}_indices", f"there are {sizes}")
        fine = np.all((indices >= 0) & (indices < width))
        self.check(fine, f"{name}_indices", f"a column lies outside 0 to {width - 1}")
        return sp.csr_array((data, indices, indptr), shape=(rows, width))


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """Read the header of an array and compare its size with the bytes that follow."""
    form = np.lib.format
    with archive.open(info) as stream:
        version = form.read_magic(stream)
        read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
        if version not in read:
            raise ValueError(f"{info.filename} has the unknown version {version}")
        shape, _, dtype = read[version](stream)
        room = info.file_size - stream.tell()
    size = math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and (size != room or min(shape, default=0) < 0):
        raise ValueError(
            f"{info.filename} claims the shape {shape}, {size:,} bytes, but has room for {room:,}"
        )
    return Member(info, shape, dtype)


def _from_pieces(archive: _Archive) -> ArrayGraph:
    adjacency = archive.csr("adj").tocoo()
    n, width = adjacency.shape
    what = f"the adjacency must be square, not {adjacency.shape}"
    archive.check(n == width, "adj_shape", what)
    weights = archive.weights("adj_data", adjacency.nnz)
    features: Features | None = None
    if "attr_matrix" in archive.members:
        features = _dense(archive, "attr_matrix", n)
    elif "attr_data" in archive.members:
        features = attributes = archive.csr("attr")
        _check_shape(archive, "attr_shape", attributes.shape, n)
        attributes.sum_duplicates()
        attributes.eliminate_zeros()
    pairs = np.stack([adjacency.row, adjacency.col]).astype(np.int64)
    return _graph(archive, n, pairs, weights, features, "labels")


def _from_edge_array(
    archive: _Archive, edges: str, axis: int, features: str, labels: str
) -> ArrayGraph:
    """Read the layouts that list the edges; `axis` is that of the two ends of an edge."""
    values = None
    if features in archive.members or labels not in archive.members:
        values = _dense(archive, features, None)
    n = len(values) if values is not None else (*archive.members[labels].shape, 0)[0]
    pairs = archive.whole(edges, 2)
    if pairs.shape[axis] != 2:  # an array of the other orientation is turned
        pairs = pairs.T
    shape, expected = archive.members[edges].shape, ("2 × E", "E × 2")[axis]
    archive.check(pairs.shape[axis] == 2, edges, f"its shape is {shape}, but it must be {expected}")
    pairs = pairs.T if axis else pairs
    bad = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=0))
    if bad.size:
        ends = " and ".join(map(str, pairs[:, bad[0]]))
        raise archive.fault(edges, f"edge {bad[0]} joins {ends}, but the nodes are 0 to {n - 1}")
    weights = None
    if "edge_weight" in archive.members:
        weights = archive.weights("edge_weight", pairs.shape[1])
    return _graph(archive, n, pairs, weights, values, labels)


def _graph(
    archive: _Archive,
    n: int,
    pairs: Indices,
    weights: Floats | None,
    features: Features | None,
    label_name: str,
) -> ArrayGraph:
    if n == 0:
        raise UsageError(f"{archive.path} has no nodes.")
    labels = _labels(archive, label_name, n) if label_name in archive.members else None
    classes: tuple[str, ...] = ()
    notes = []
    for name in CLASS_NAMES:
        dtype = archive.members[name].dtype if name in archive.members else np.dtype(float)
        if dtype.hasobject:
            notes.append(f"The array {name!r} of {archive.path} is a pickle and was not read.")
        elif dtype.kind == "U" and not classes:
            classes = tuple(str(value).strip() for value in archive[name].ravel().tolist())
    if labels is not None and labels.max(initial=0) >= len(classes):
        classes = ()
    masks, known = _masks(archive, n), _training_nodes(archive, n)
    fixed = (labels, label_name, classes, masks, known, tuple(notes))
    return ArrayGraph(n, pairs, weights, features, *fixed)


def _dense(archive: _Archive, name: str, n: int | None) -> Floats:
    values = archive.real(name)
    what = f"its shape is {values.shape}, but it must be a matrix"
    archive.check(values.ndim == 2, name, what)
    _check_shape(archive, name, values.shape, n)
    return values


def _check_shape(archive: _Archive, name: str, shape: tuple[int, ...], n: int | None) -> None:
    what = f"there are {n or 0:,} nodes, but {shape[0]:,} rows of features"
    archive.check(n in (None, shape[0]), name, what)
    what = f"{shape[1]:,} features are more than {MOST_COLUMNS:,}"
    archive.check(shape[1] <= MOST_COLUMNS, name, what)


def _labels(archive: _Archive, name: str, n: int) -> Indices:
    """Read the labels; a negative number or NaN is no label."""
    array = archive[name]
    if array.dtype.kind == "f" and array.ndim == 1:
        labels = np.where(np.isnan(array), UNKNOWN, array)
        fine = np.all(np.isfinite(labels)) and np.all(labels == np.floor(labels))
        archive.check(fine, name, "labels must be whole numbers")
        labels = labels.astype(np.int64)
    else:
        labels = archive.whole(name, array.ndim)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
    what = f"there are {n:,} nodes, but labels of shape {labels.shape}"
    archive.check(labels.shape == (n,), name, what)
    return np.maximum(labels, UNKNOWN)


def _masks(archive: _Archive, n: int) -> SplitMasks | None:
    """Read the masks of training, validation and test nodes, K × N or 1 × N; None without all."""
    masks = {}
    for names in zip(*MASK_NAMES, strict=True):
        name = next((name for name in names if name in archive.members), None)
        if name is None:
            return None
        masks[name] = _mask(archive, name)
    count = max(map(len, masks.values()))
    for name, mask in masks.items():
        shape = archive.members[name].shape
        what = f"its shape is {shape}, but there are {n:,} nodes and {plural(count, 'split')}"
        archive.check(mask.shape in ((count, n), (1, n)), name, what)
    train, validation, test = (np.broadcast_to(mask, (count, n)) for mask in masks.values())
    return train, validation, test


def _training_nodes(archive: _Archive, n: int) -> Mask | None:
    """Read the training nodes of the first split, N; None if there is no mask of them."""
    name = next((names[0] for names in MASK_NAMES if names[0] in archive.members), None)
    if name is None:
        return None
    mask = _mask(archive, name)
    what = f"its shape is {archive.members[name].shape}, but there are {n:,} nodes"
    archive.check(mask.ndim == 2 and mask.shape[1] == n and len(mask) > 0, name, what)
    first: Mask = mask[0]
    return first


def _mask(archive: _Archive, name: str) -> Mask:
    """Read a mask with a row for each split."""
    array = archive[name]
    what = f"it must hold truth values, not {array.dtype}"
    archive.check(array.dtype.kind in "biu", name, what)
    return np.asarray(np.atleast_2d(array.T if name in MASK_NAMES[0] else array) != 0)
