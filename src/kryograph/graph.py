"""Graph, Split and Task: the nodes and edges, their division, and the labels training may see.

All three are validated by their constructors and immutable: their arrays are read-only. A `Task`
holds no test label, so code that receives a task cannot read one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from kryograph.errors import UsageError
from kryograph.text import plural

if TYPE_CHECKING:
    from torch_geometric.data import Data

Indices: TypeAlias = npt.NDArray[np.int64]
Features: TypeAlias = "npt.NDArray[np.floating] | sp.csr_array"
MatrixLike: TypeAlias = "npt.ArrayLike | sp.sparray | sp.spmatrix"

UNKNOWN = -1
"""The label of a node whose class is unknown or hidden."""

NO_NODES: Indices = np.empty(0, dtype=np.int64)
"""An empty set of nodes."""
NO_NODES.setflags(write=False)


@dataclass(frozen=True)
class Cleaning:
    """Numbers of the changes that `Graph.from_edges` made to a list of edges.

    Self-loops are removed, entries with the source and target of an earlier one dropped, and the
    other direction of one-way pairs added. A pair that is listed more than once, in one direction
    or both, keeps its largest weight.
    """

    loops: int = 0
    repeated: int = 0
    one_way: int = 0

    def __str__(self) -> str:
        changes = [
            (self.loops, "self-loop", "removed"),
            (self.repeated, "repeated edge", "merged"),
            (self.one_way, "one-way edge", "made two-way"),
        ]
        return ", ".join(f"{plural(n, noun)} {verb}" for n, noun, verb in changes if n)


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with features: symmetric adjacency, no self-loops, positive weights.

    `Graph.from_edges` builds one from any list of edges. The constructor copies its arguments and
    accepts only an adjacency that already has these properties.

    The adjacency is N × N, CSR, float64; features are N × F, dense or CSR, and stay so.

    >>> graph = Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 2]], n=4)
    >>> graph.n, graph.edges, str(graph.cleaning)
    (4, 2, '1 self-loop removed, 1 one-way edge made two-way')
    """

    adjacency: sp.csr_array
    features: Features
    names: tuple[str, ...] | None = None
    cleaning: Cleaning = field(default_factory=Cleaning)

    def __post_init__(self) -> None:
        # Copies, because the arrays become read-only below and the caller's must not.
        adjacency = _canonical(self.adjacency).astype(np.float64)
        features = _as_features(self.features)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "features", features)
        n, weights = adjacency.shape[0], adjacency.data
        if n == 0:
            raise UsageError("The graph has no nodes.")
        if adjacency.shape != (n, n):
            raise UsageError(f"The adjacency must be square; it is {adjacency.shape}.")
        if not np.all(np.isfinite(weights) & (weights > 0)):
            raise UsageError("Edge weights must be positive and finite.")
        if adjacency.diagonal().any():
            raise UsageError("The adjacency must have no self-loops; use Graph.from_edges.")
        if (adjacency != adjacency.T).nnz:
            raise UsageError("The adjacency must be symmetric; use Graph.from_edges.")
        if features.ndim != 2 or features.shape[0] != n:
            raise UsageError(f"There are {n:,} nodes, but features of shape {features.shape}.")
        values = features.data if isinstance(features, sp.csr_array) else features
        if not np.all(np.isfinite(values)):
            raise UsageError(f"The features of node {_first_bad_row(features)} are not all finite.")
        if self.names is not None and len(self.names) != n:
            raise UsageError(f"There are {n:,} nodes, but {len(self.names):,} names.")
        for array in (*_arrays(adjacency), *_arrays(features)):
            array.setflags(write=False)

    @classmethod
    def from_edges(
        cls,
        edges: npt.ArrayLike,
        n: int,
        *,
        weights: npt.ArrayLike | None = None,
        features: MatrixLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Graph:
        """Build the undirected graph of 2 × E node pairs, listed in one direction or both.

        Without `features` the features are the sparse N × N identity.
        """
        pairs = whole_numbers(edges, "Edges")
        if pairs.size == 0:
            pairs = pairs.reshape(2, 0)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise UsageError(f"Edges must be 2 × E node numbers; got shape {pairs.shape}.")
        bad = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=0))
        if bad.size:
            at = bad[0]
            raise UsageError(
                f"Edge {at} joins {pairs[0, at]} and {pairs[1, at]}, but nodes are 0 to {n - 1}."
            )
        values = np.ones(pairs.shape[1]) if weights is None else np.array(weights, dtype=np.float64)
        if values.shape != (pairs.shape[1],):
            raise UsageError(
                f"There are {pairs.shape[1]} edges, but weights of shape {values.shape}."
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if wrong.size:
            at = wrong[0]
            raise UsageError(f"Edge {at} has weight {values[at]}: weights must be positive.")

        loops = pairs[0] == pairs[1]
        source, target, values = pairs[0, ~loops], pairs[1, ~loops], values[~loops]
        # Sorting, because np.unique hashes, which takes seconds for a million edges.
        directed = int(np.count_nonzero(np.diff(np.sort(source * n + target), prepend=-1)))
        low, high = np.minimum(source, target), np.maximum(source, target)
        key, at = np.unique(low * n + high, return_inverse=True)
        heaviest = np.zeros(key.size)
        np.maximum.at(heaviest, at, values)
        half = sp.coo_array((heaviest, (key // n, key % n)), shape=(n, n)).tocsr()
        repeated, one_way = source.size - directed, 2 * key.size - directed
        return cls(
            adjacency=half + half.T,
            features=sp.eye_array(n, format="csr") if features is None else features,
            names=None if names is None else tuple(names),
            cleaning=Cleaning(int(loops.sum()), repeated, one_way),
        )

    @classmethod
    def from_pyg(cls, data: Data) -> Graph:
        """Build the graph of a PyTorch Geometric `Data`; directed edges are made two-way."""
        weight, x = getattr(data, "edge_weight", None), data.x
        if x is not None and x.layout is not torch.strided:
            csr = x.detach().cpu().double().to_sparse_csr()
            arrays = (csr.values(), csr.col_indices(), csr.crow_indices())
            features = sp.csr_array(tuple(array.numpy() for array in arrays), shape=x.shape)
        else:
            features = None if x is None else x.detach().cpu().float().numpy()
        return cls.from_edges(
            data.edge_index.cpu().numpy(),
            data.num_nodes,
            weights=None if weight is None else weight.detach().cpu().double().numpy(),
            features=features,
        )

    @classmethod
    def from_scipy(
        cls,
        adjacency: sp.sparray | sp.spmatrix,
        *,
        features: MatrixLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Graph:
        """Build the graph of a square matrix of weights; one-way edges are made two-way."""
        entries = _canonical(adjacency).tocoo()
        if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
            raise UsageError(f"The adjacency must be square; it is {entries.shape}.")
        pairs = np.stack([entries.row, entries.col]).astype(np.int64)
        n = entries.shape[0]
        return cls.from_edges(pairs, n, weights=entries.data, features=features, names=names)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, weight: str = "weight", features: MatrixLike | None = None
    ) -> Graph:
        """Build the graph of a networkx graph, with the same order of nodes; names are `str(node)`.

        Directions are dropped; an edge without the attribute `weight` has weight 1.
        """
        number = {node: index for index, node in enumerate(graph.nodes)}
        names = [str(node) for node in number]
        edges = list(graph.edges(data=weight, default=1.0))
        return cls.from_edges(
            [[number[edge[end]] for edge in edges] for end in (0, 1)],
            len(names),
            weights=[edge[-1] for edge in edges],
            features=features,
            names=names,
        )

    @classmethod
    def from_tables(cls, edges: Path | str, nodes: Path | str | None = None, **how: Any) -> Graph:
        """Read a graph from an edge and a node table; see `kryograph.data.tables.read_tables`."""
        from kryograph.data.tables import read_tables

        path = None if nodes is None else Path(nodes)
        return read_tables(Path(edges), path, **{"label": None, **how}).graph

    def to_pyg(self) -> Data:
        """Convert to a PyTorch Geometric `Data`: dense `x`, both directions in `edge_index`."""
        from torch_geometric.data import Data

        entries = self.adjacency.tocoo()
        features = self.features
        dense = features.toarray() if isinstance(features, sp.csr_array) else features.copy()
        return Data(
            x=torch.from_numpy(dense).float(),
            edge_index=torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64)),
            edge_weight=torch.from_numpy(entries.data.astype(np.float32)),
        )

    @property
    def n(self) -> int:
        """Number N of nodes of the graph."""
        return int(self.adjacency.shape[0])

    @property
    def edges(self) -> int:
        """Number of undirected edges of the graph."""
        return int(self.adjacency.nnz // 2)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of adjacency and features: equal for equal graphs."""
        shape = np.array(self.features.shape)
        arrays = (shape, *_arrays(self.adjacency), *_arrays(self.features))
        # Indices may have 32 or 64 bits and features either precision: equal values count.
        return digest(*(a.astype(np.int64 if a.dtype.kind == "i" else np.float64) for a in arrays))

    def __repr__(self) -> str:
        kind = "sparse" if isinstance(self.features, sp.csr_array) else "dense"
        columns = f"{self.features.shape[1]:,} {kind} features"
        return f"Graph({self.n:,} nodes, {self.edges:,} edges, {columns})"


@dataclass(frozen=True, eq=False)
class Split:
    """The training, validation and test nodes, each sorted; disjoint unless the split is `leaky`.

    >>> Split("by hand", train=[2, 0], validation=[1], test=[3]).train
    array([0, 2])
    """

    name: str
    train: Indices
    validation: Indices
    test: Indices
    leaky: bool = False

    def __post_init__(self) -> None:
        for part in ("train", "validation", "test"):
            listed = np.asarray(getattr(self, part)).reshape(-1)
            if listed.dtype == bool:  # a mask in the manner of PyTorch Geometric
                listed = np.flatnonzero(listed)
            nodes = np.unique(whole_numbers(listed, "The nodes of a split"))
            if nodes.size != listed.size:
                raise UsageError(f"Split {self.name!r} lists a {part} node twice.")
            if nodes.size and nodes[0] < 0:
                raise UsageError(f"Split {self.name!r} has the {part} node {nodes[0]}.")
            nodes.setflags(write=False)
            object.__setattr__(self, part, nodes)
        if self.train.size == 0:
            raise UsageError(f"Split {self.name!r} has no training node.")
        together = np.concatenate([self.train, self.validation, self.test])
        if not self.leaky and np.unique(together).size != together.size:
            raise UsageError(f"Split {self.name!r}: train, validation and test overlap.")

    @cached_property
    def digest(self) -> str:
        """A digest of the three sets of nodes; the name has no influence."""
        return digest(self.train, self.validation, self.test)

    def __repr__(self) -> str:
        sizes = " / ".join(f"{p.size:,}" for p in (self.train, self.validation, self.test))
        return f"Split({self.name!r}, {sizes})"


@dataclass(frozen=True, eq=False)
class Task:
    """A graph, a split and the labels that training may see; it holds no test label.

    The graph is whole: features and edges of test nodes are known. The labels are N class numbers,
    `UNKNOWN` for every node outside train and validation. If the validation labels are hidden too,
    the task is one "without validation".
    """

    graph: Graph
    split: Split
    labels: Indices
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        labels = checked_labels(self.labels, self.graph.n, len(self.classes))
        split, n = self.split, self.graph.n
        if max(part.max(initial=0) for part in (split.train, split.validation, split.test)) >= n:
            raise UsageError(f"Split {split.name!r} names nodes beyond the graph's {n:,}.")
        visible = np.flatnonzero(labels != UNKNOWN)
        if np.setdiff1d(visible, np.concatenate([split.train, split.validation])).size:
            raise UsageError("A task may hold the labels of training and validation nodes only.")
        if np.any(labels[split.train] == UNKNOWN):
            raise UsageError(f"Split {split.name!r} trains on a node without a label.")
        known = labels[split.validation] != UNKNOWN
        if known.any() and not known.all():
            raise UsageError(f"Split {split.name!r} validates on a node without a label.")
        object.__setattr__(self, "labels", labels)

    @classmethod
    def labelled(cls, graph: Graph, labels: npt.ArrayLike, classes: tuple[str, ...]) -> Task:
        """Build the task that trains on every known label; it has no validation or test nodes."""
        checked = checked_labels(labels, graph.n, len(classes))
        known = np.flatnonzero(checked != UNKNOWN)
        return cls(graph, Split("all known labels", known, NO_NODES, NO_NODES), checked, classes)

    @property
    def has_validation(self) -> bool:
        """Whether the task has validation nodes and their labels are visible."""
        nodes = self.split.validation
        return bool(nodes.size and self.labels[nodes[0]] != UNKNOWN)


def whole_numbers(values: npt.ArrayLike, what: str) -> Indices:
    """Copy `values` as int64; anything but integers is an error that names `what`."""
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"{what} must be whole numbers; got {array.dtype}.")
    return array.astype(np.int64)


def checked_labels(labels: npt.ArrayLike, n: int, classes: int) -> Indices:
    """Check that there are N class numbers from `UNKNOWN` to `classes` - 1; a read-only copy."""
    checked = whole_numbers(labels, "Labels")
    if checked.shape != (n,):
        raise UsageError(f"There are {n:,} nodes, but labels of shape {checked.shape}.")
    if checked.max(initial=UNKNOWN) >= classes or checked.min(initial=0) < UNKNOWN:
        raise UsageError(f"Labels must lie between -1 (unknown) and {classes - 1}.")
    checked.setflags(write=False)
    return checked


def digest(*arrays: npt.NDArray[np.generic]) -> str:
    """Sixteen hexadecimal digits that depend on the types, shapes and contents of the arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:16]


def _canonical(matrix: sp.sparray | sp.spmatrix) -> sp.csr_array:
    """Copy a matrix to its canonical form: sorted indices, no repeated entry, no stored zero."""
    copy = sp.csr_array(matrix, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def _as_features(features: MatrixLike) -> Features:
    copy = _canonical(features) if sp.issparse(features) else np.array(features)
    return copy if np.issubdtype(copy.dtype, np.floating) else copy.astype(np.float64)


def _first_bad_row(features: Features) -> int:
    if isinstance(features, sp.csr_array):
        entry = np.flatnonzero(~np.isfinite(features.data))[0]
        return int(np.searchsorted(features.indptr, entry, side="right") - 1)
    return int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])


def _arrays(matrix: Features) -> tuple[npt.NDArray[Any], ...]:
    if isinstance(matrix, sp.csr_array):
        return matrix.indptr, matrix.indices, matrix.data
    return (matrix,)
