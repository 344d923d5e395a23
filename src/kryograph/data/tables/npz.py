"""Graphs in NumPy's .npz, in the two forms that benchmarks use, and never a pickle.

In the first, adjacency and attributes are the pieces of CSR matrices: `adj_data`, `adj_indices`,
`adj_indptr`, `adj_shape`, the same for `attr` (or one dense `attr_matrix`), and `labels`. In the
second there are `edges` (E × 2), `node_features`, `node_labels` and masks.

What an array claims to be is compared with the size of the file before anything is read, so that a
file of a few bytes cannot ask for all memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.data.tables.sheet import LARGEST_WHOLE, NumberColumn, RawGraph, Sheet
from kryograph.errors import UsageError

CLASS_NAMES = ("class_names", "idx_to_class", "label_names")
MASKS = ("train_masks", "val_masks", "test_masks", "train_mask", "val_mask", "test_mask")
MOST_COLUMNS = 200_000
LARGE_ARRAY_BYTES = 4 << 30
PACKED = 100
"""More than LARGE_ARRAY_BYTES are not unpacked if they are more than this times the file's size."""

LoadedArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Member:
    """What an array in the file says of itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def pickled(self) -> bool:
        """Whether it holds objects, which only unpickling could read."""
        return self.dtype.hasobject


def read_npz(path: Path) -> RawGraph:
    """Read a graph in either form."""
    with _Arrays(path) as arrays:
        if "adj_shape" in arrays.members or "adj_indptr" in arrays.members:
            return _from_pieces(arrays)
        if "edges" in arrays.members:
            return _from_edges(arrays)
        raise UsageError(
            f"{path} has neither 'adj_data', 'adj_indices', 'adj_indptr' and 'adj_shape' nor "
            f"'edges' and 'node_features'; it has {', '.join(arrays.members) or 'nothing'}."
        )


class _Arrays:
    """The arrays of a file: what they say of themselves first, then one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.members: Mapping[str, Member] = {}

    def __enter__(self) -> _Arrays:
        try:
            self._zip = zipfile.ZipFile(self.path)
            self.members = {
                info.filename.removesuffix(".npy"): _member(self._zip, info)
                for info in self._zip.infolist()
            }
        except Exception as error:  # a broken archive can raise nearly anything
            said = str(error) or type(error).__name__
            raise UsageError(f"{self.path} is damaged or not an .npz file ({said}).") from error
        size, packed = sum(i.file_size for i in self._zip.infolist()), self.path.stat().st_size
        if size > max(LARGE_ARRAY_BYTES, PACKED * packed):
            raise UsageError(
                f"{self.path} would unpack to {size / 1e9:,.0f} GB from {packed / 1e6:,.1f} MB and "
                "was not read."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def fault(self, name: str, what: str) -> UsageError:
        return UsageError(f"{self.path}, array {name!r}: {what}.")

    def __getitem__(self, name: str) -> LoadedArray:
        if name not in self.members:
            raise UsageError(f"{self.path} lacks the array {name!r}.")
        member = self.members[name]
        if member.pickled:
            raise self.fault(name, "it holds pickled objects, which are never read")
        try:
            with self._zip.open(_file(self._zip, name)) as stream:
                found = np.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:
            said = str(error) or type(error).__name__
            raise UsageError(f"{self.path}, array {name!r}: it is damaged ({said}).") from error
        return np.asarray(found)

    def whole(self, name: str, ndim: int = 1) -> LoadedArray:
        """An array of integers of some dimension."""
        found = self[name]
        if found.ndim != ndim:
            raise self.fault(name, f"its shape is {found.shape}, but it must have {ndim} axes")
        if found.dtype.kind == "u":
            found = np.minimum(found, np.iinfo(np.int64).max)
        elif found.dtype.kind == "f" and np.all(np.isfinite(found)):
            if np.any(found != np.floor(found)) or np.any(np.abs(found) > 2**53):
                raise self.fault(name, "it must hold whole numbers")
        elif found.dtype.kind != "i":
            raise self.fault(name, f"it must hold whole numbers, not {found.dtype}")
        return found.astype(np.int64)

    def real(self, name: str) -> LoadedArray:
        """An array of numbers, all finite."""
        found = self[name]
        if found.dtype.kind not in "biuf":
            raise self.fault(name, f"it must hold numbers, not {found.dtype}")
        with np.errstate(over="ignore", invalid="ignore"):
            values = found.astype(np.float64)
            bad = np.argwhere(~(np.abs(values) <= LARGEST_WHOLE))
        if bad.size:
            at = tuple(bad[0].tolist())
            where = ", ".join(map(str, at))
            raise self.fault(name, f"entry [{where}] is {values[at]:g}, not a usable number")
        return values


def _file(archive: zipfile.ZipFile, name: str) -> str:
    return name + ".npy" if name + ".npy" in archive.namelist() else name


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    """Read an array's header and compare it with the room it has."""
    form = np.lib.format
    with archive.open(info) as stream:
        version = form.read_magic(stream)
        read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
        if version not in read:
            raise ValueError(f"{info.filename} has the unknown version {version}")
        shape, _, dtype = read[version](stream)
        room = info.file_size - stream.tell()
    member = Member(shape, dtype)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if not member.pickled and (size != room or min(shape, default=0) < 0):
        raise ValueError(
            f"{info.filename} claims the shape {shape}, {size:,} bytes, but has room for {room:,}"
        )
    return member


def _from_pieces(arrays: _Arrays) -> RawGraph:
    adjacency = _csr(arrays, "adj").tocoo()
    n = adjacency.shape[0]
    if adjacency.shape[1] != n:
        raise arrays.fault("adj_shape", f"the adjacency must be square, not {adjacency.shape}")
    bad = np.flatnonzero(adjacency.data <= 0)
    if bad.size:
        at = bad[0]
        raise arrays.fault(
            "adj_data", f"entry {at} is {adjacency.data[at]:g}; weights must be positive"
        )
    columns: dict[str, Any] = {}
    if "attr_matrix" in arrays.members:
        columns = _dense(arrays, "attr_matrix", n)
    elif "attr_data" in arrays.members:
        columns = _sparse(arrays, n)
    pairs = np.stack([adjacency.row, adjacency.col]).astype(np.int64)
    return _raw_graph(arrays, n, pairs, adjacency.data, columns, "labels")


def _from_edges(arrays: _Arrays) -> RawGraph:
    columns = _dense(arrays, "node_features", None)
    n = arrays.members["node_features"].shape[0]
    edges = arrays.whole("edges", 2)
    if edges.shape[1] != 2 and edges.shape[0] == 2:
        edges = edges.T
    if edges.shape[1] != 2:
        raise arrays.fault("edges", f"its shape is {edges.shape}, but it must be E × 2")
    bad = np.flatnonzero(((edges < 0) | (edges >= n)).any(axis=1))
    if bad.size:
        pair = " and ".join(map(str, edges[bad[0]]))
        raise arrays.fault("edges", f"row {bad[0]} joins {pair}, but the nodes are 0 to {n - 1}")
    return _raw_graph(arrays, n, edges.T, None, columns, "node_labels")


def _raw_graph(
    arrays: _Arrays,
    n: int,
    pairs: LoadedArray,
    weights: LoadedArray | None,
    columns: dict[str, Any],
    label: str,
) -> RawGraph:
    if n == 0:
        raise UsageError(f"{arrays.path} has no nodes.")
    notes: list[str] = []
    if label in arrays.members:
        columns = {**columns, label: _labels(arrays, label, n, notes)}
    if any(mask in arrays.members for mask in MASKS):
        notes.append(f"The masks in {arrays.path} were not used: all its labels were kept.")
    return RawGraph(
        ids=tuple(map(str, range(n))),
        pairs=pairs,
        weights=weights,
        sheet=Sheet(arrays.path, columns, n, lambda row: f"node {row}"),
        label=label if label in arrays.members else None,
        notes=tuple(notes),
    )


def _csr(arrays: _Arrays, name: str) -> sp.csr_array:
    """A matrix from its pieces, each of which is checked."""
    shape = arrays.whole(f"{name}_shape")
    if shape.size != 2 or shape.min() < 0:
        raise arrays.fault(f"{name}_shape", f"{shape.tolist()} is not the shape of a matrix")
    rows, width = map(int, shape)
    data = arrays.real(f"{name}_data")
    indices, indptr = arrays.whole(f"{name}_indices"), arrays.whole(f"{name}_indptr")
    if indptr.size != rows + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise arrays.fault(f"{name}_indptr", f"it does not delimit {rows:,} rows")
    if data.shape != indices.shape or indptr[-1] != indices.size:
        raise arrays.fault(
            f"{name}_indices",
            f"there are {indices.size:,} columns and {data.size:,} values for {indptr[-1]:,} cells",
        )
    if indices.size and (indices.min() < 0 or indices.max() >= width):
        raise arrays.fault(f"{name}_indices", f"a column lies outside 0 to {width - 1}")
    return sp.csr_array((data, indices, indptr), shape=(rows, width))


def _sparse(arrays: _Arrays, n: int) -> dict[str, Any]:
    attributes = _csr(arrays, "attr")
    _check_width(arrays, "attr_shape", attributes.shape, n)
    by_column = attributes.tocsc()
    by_column.sum_duplicates()
    by_column.eliminate_zeros()
    none = np.empty(0, dtype=np.int32)
    start = by_column.indptr
    rows = by_column.indices.astype(np.int32)
    return {
        str(at): NumberColumn(
            n, rows[start[at] : start[at + 1]], by_column.data[start[at] : start[at + 1]], none
        )
        for at in range(attributes.shape[1])
    }


def _dense(arrays: _Arrays, name: str, n: int | None) -> dict[str, Any]:
    values = arrays.real(name)
    if values.ndim != 2:
        raise arrays.fault(name, f"its shape is {values.shape}, but it must be a matrix")
    _check_width(arrays, name, values.shape, n)
    return {str(at): NumberColumn.from_dense(values[:, at]) for at in range(values.shape[1])}


def _check_width(arrays: _Arrays, name: str, shape: tuple[int, ...], n: int | None) -> None:
    if n is not None and shape[0] != n:
        raise arrays.fault(name, f"there are {n:,} nodes, but {shape[0]:,} rows of features")
    if shape[1] > MOST_COLUMNS:
        raise arrays.fault(name, f"{shape[1]:,} features are more than {MOST_COLUMNS:,}")


def _labels(arrays: _Arrays, name: str, n: int, notes: list[str]) -> Any:
    """The labels as text; the classes' names if there are any that can be read."""
    import pyarrow as pa

    found = arrays[name]
    if found.dtype.kind == "f" and found.ndim == 1:
        missing = np.isnan(found)
        labels = np.where(missing, -1, found)
        if not np.all(np.isfinite(labels)) or np.any(labels != np.floor(labels)):
            raise arrays.fault(name, "labels must be whole numbers")
        labels = labels.astype(np.int64)
    else:
        labels = arrays.whole(name, found.ndim)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
    if labels.shape != (n,):
        raise arrays.fault(name, f"there are {n:,} nodes, but labels of shape {labels.shape}")
    names: list[str] | None = None
    for given in CLASS_NAMES:
        if given not in arrays.members:
            continue
        if arrays.members[given].pickled:
            notes.append(f"The array {given!r} of {arrays.path} is a pickle and was not read.")
        elif arrays.members[given].dtype.kind == "U" and names is None:
            names = [str(value).strip() for value in arrays[given].ravel().tolist()]
    if names is not None and 0 <= labels.max(initial=-1) < len(names):
        return pa.chunked_array(
            [pa.array([names[at] if at >= 0 else "" for at in labels.tolist()])]
        )
    return pa.chunked_array([pa.array([str(at) if at >= 0 else "" for at in labels.tolist()])])
