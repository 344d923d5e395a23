"""Graph, Split and Task: the nodes and edges, their division, and the labels training may see.

All three are validated by their constructors and immutable: their arrays are read-only. A `Task`
holds no test label, so code that receives a task cannot read one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from kryograph.errors import UsageError, check_known
from kryograph.merging import REPEAT_RULES, Cleaning, canonical_csr, checked_weights, merge_edges

if TYPE_CHECKING:
    from torch_geometric.data import Data

Indices: TypeAlias = npt.NDArray[np.int64]
Features: TypeAlias = "npt.NDArray[np.floating] | sp.csr_array"
MatrixLike: TypeAlias = "npt.ArrayLike | sp.sparray | sp.spmatrix"

UNKNOWN = -1
"""The label of a node whose class is unknown or hidden."""

DIGEST_NUMBERS = 2**20
"""Numbers that are converted at a time for a digest."""

NO_NODES: Indices = np.empty(0, dtype=np.int64)
"""An empty set of nodes."""
NO_NODES.setflags(write=False)


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
        adjacency = canonical_csr(self.adjacency).astype(np.float64, copy=False)
        n, weights = adjacency.shape[0], adjacency.data
        if adjacency.shape != (n, n):
            raise UsageError(f"The adjacency must be square; it is {adjacency.shape}.")
        if not np.all(np.isfinite(weights) & (weights > 0)):
            raise UsageError("Edge weights must be positive and finite.")
        if adjacency.diagonal().any():
            raise UsageError("The adjacency must have no self-loops; use Graph.from_edges.")
        if (adjacency != adjacency.T).nnz:
            raise UsageError("The adjacency must be symmetric; use Graph.from_edges.")
        self._keep(adjacency)

    def _keep(self, adjacency: sp.csr_array) -> None:
        """Make an adjacency that has all properties that of the graph; check everything else."""
        n, features = adjacency.shape[0], _as_features(self.features)
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "features", features)
        if n == 0:
            raise UsageError("The graph has no nodes.")
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
        repeat: str = "max",
    ) -> Graph:
        """Build the undirected graph of 2 × E node pairs, listed in one direction or both.

        Without `features` the features are the sparse N × N identity. `repeat` is the rule for the
        weight of pairs that are listed more than once (`kryograph.merging.REPEAT_RULES`).
        """
        pairs = whole_numbers(edges, "Edges", copy=False)
        if pairs.size == 0:
            pairs = pairs.reshape(2, 0)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise UsageError(f"Edges must be 2 × E node numbers; got shape {pairs.shape}.")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
            at = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=0))[0]
            raise UsageError(
                f"Edge {at} joins {pairs[0, at]} and {pairs[1, at]}, but nodes are 0 to {n - 1}."
            )
        values = None if weights is None else checked_weights(weights, pairs.shape[1])
        check_known("rule for repeated edges", repeat, REPEAT_RULES)
        adjacency, cleaning = merge_edges(pairs, values, n, repeat)
        # The adjacency is symmetric and new: it needs neither checks nor a copy.
        graph = object.__new__(cls)
        x = sp.eye_array(n, format="csr") if features is None else features
        named = None if names is None else tuple(names)
        vars(graph).update(features=x, names=named, cleaning=cleaning)
        graph._keep(adjacency)
        return graph

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
        """Build the graph of a square matrix of weights; one-way edges are made two-way.

        Repeated entries are added up, as everywhere in SciPy.
        """
        entries = sp.coo_array(adjacency)
        if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
            raise UsageError(f"The adjacency must be square; it is {entries.shape}.")
        stored = entries.data != 0
        pairs = np.stack([entries.row[stored], entries.col[stored]]).astype(np.int64)
        return cls.from_edges(
            pairs,
            entries.shape[0],
            weights=entries.data[stored],
            features=features,
            names=names,
            repeat="sum",
        )

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
    def from_tables(cls, edges: object, nodes: object = None, **how: Any) -> Graph:
        """Read a graph from an edge and a node table; see `kryograph.data.tables.read_tables`."""
        from kryograph.data.tables import read_tables

        return read_tables(edges, nodes, **how).graph

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
        # Indices may have 32 or 64 bits and features either precision: equal values count.
        return digest(shape, *_arrays(self.adjacency), *_arrays(self.features), widen=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return the graph itself, which never changes; scikit-learn copies each parameter."""
        return self

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
            nodes = np.sort(whole_numbers(listed, "The nodes of a split"))
            if not np.diff(nodes).all():
                raise UsageError(f"Split {self.name!r} lists a {part} node twice.")
            if nodes.size and nodes[0] < 0:
                raise UsageError(f"Split {self.name!r} has the {part} node {nodes[0]}.")
            nodes.setflags(write=False)
            object.__setattr__(self, part, nodes)
        if self.train.size == 0:
            raise UsageError(f"Split {self.name!r} has no training node.")
        together = np.concatenate([self.train, self.validation, self.test])
        if not self.leaky and not np.diff(np.sort(together)).all():
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


def whole_numbers(values: npt.ArrayLike, what: str, *, copy: bool = True) -> Indices:
    """Convert `values` to int64; anything but integers is an error that names `what`.

    Without `copy` the result may share the memory of `values`.
    """
    array = np.asarray(values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UsageError(f"{what} must be whole numbers; got {array.dtype}.")
    return array.astype(np.int64, copy=copy)


def checked_labels(labels: npt.ArrayLike, n: int, classes: int) -> Indices:
    """Check that there are N class numbers from `UNKNOWN` to `classes` - 1; a read-only copy."""
    checked = whole_numbers(labels, "Labels")
    if checked.shape != (n,):
        raise UsageError(f"There are {n:,} nodes, but labels of shape {checked.shape}.")
    if checked.max(initial=UNKNOWN) >= classes or checked.min(initial=0) < UNKNOWN:
        raise UsageError(f"Labels must lie between -1 (unknown) and {classes - 1}.")
    checked.setflags(write=False)
    return checked


def digest(*arrays: npt.NDArray[np.generic], widen: bool = False) -> str:
    """Sixteen hexadecimal digits that depend on the types, shapes and contents of the arrays.

    With `widen` integers count as int64 and other numbers as float64, whatever their type.
    """
    sha = hashlib.sha256()
    for array in arrays:
        kind = np.dtype(np.int64 if array.dtype.kind == "i" else np.float64)
        dtype = kind if widen else array.dtype
        sha.update(f"{dtype.str}{array.shape}".encode())
        flat = array.reshape(-1)
        for start in range(0, flat.size, DIGEST_NUMBERS):
            part = flat[start : start + DIGEST_NUMBERS].astype(dtype, copy=False)
            sha.update(np.ascontiguousarray(part).data)
    return sha.hexdigest()[:16]


def _as_features(features: MatrixLike) -> Features:
    """Features as a graph keeps them: a copy, unless they are final and nobody can change them."""
    if _is_frozen(features):
        return features
    copy = canonical_csr(features) if sp.issparse(features) else np.array(features)
    return copy if np.issubdtype(copy.dtype, np.floating) else copy.astype(np.float64)


def _is_frozen(features: MatrixLike) -> TypeGuard[Features]:
    """Whether features are in their final form and read-only, so that they need no copy."""
    if not isinstance(features, np.ndarray | sp.csr_array) or features.dtype.kind != "f":
        return False
    if not all(_is_read_only(array) for array in _arrays(features)):
        return False
    return isinstance(features, np.ndarray) or bool(
        features.has_canonical_format and features.data.all()
    )


def _is_read_only(array: npt.NDArray[np.generic]) -> bool:
    """Whether nobody can change an array: neither itself nor an array that it is a part of."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def _first_bad_row(features: Features) -> int:
    if isinstance(features, sp.csr_array):
        entry = np.flatnonzero(~np.isfinite(features.data))[0]
        return int(np.searchsorted(features.indptr, entry, side="right") - 1)
    return int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])


def _arrays(matrix: Features) -> tuple[npt.NDArray[Any], ...]:
    if isinstance(matrix, sp.csr_array):
        return matrix.indptr, matrix.indices, matrix.data
    return (matrix,)
