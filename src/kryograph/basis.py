"""Basis: representations of the nodes of one graph, shared by all heads that learn from them.

A representation is a matrix with one row for each node, made of the blocks L^k Z of an operator L.
Each is computed once for a graph, however many heads (`systems.head`) and folds use it. Symbols:

* X: the features, N × F. If F ≤ 64 ("few"), the columns are standardised and divided by √F.
* Z: the features in at most 256 dimensions, N × d: X itself, or U·Σ of a singular value
  decomposition of the weighted features.
* S: the symmetric operator with self-loops (`sym`); P: the mean over neighbours.

Rows have unit length, so that hubs and long documents do not outweigh others; the columns of few
features are standardised instead, because their lengths mean something.

The `state` of a basis holds the means, word weights and directions that its representations have
learned from one graph. A model is applied to another graph by a basis with the same state, so that
its rows can be compared with those of the first graph.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from kryograph.features import is_identity
from kryograph.graph import Features, Graph
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix

DenseRows: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = "DenseRows | sp.csr_array"
"""A representation: one row for each node."""

FEW_FEATURES = 64
"""Up to this number of features the columns are standardised and kept as they are."""

RANK = 256
"""Largest number of dimensions of Z."""

MAX_ENTRIES = 5 * 10**7
"""Largest number of entries of Z; a graph with more nodes gets fewer dimensions."""

EIGENVECTORS = 64
"""Number of eigenvectors of S that stand for the features of a graph without features."""

DAMPING, DAMPED_HOPS, SUMMED_HOPS = 0.9, 10, 16
"""Powers of the operator are summed with the weights 0.9^k up to k = 10, or with 1 up to 16."""

MAX_TWO_HOP_ENTRIES = 3e7
"""Rows of P A are used if the estimated number of their entries is at most this."""

EIGENVECTOR_WORK, LEAST_RESTARTS = 2 * 10**8, 20
"""Edges that may be passed in search of eigenvectors, times the products of a restart; in a large
random graph eigenvalues are so close to each other that the search would take minutes."""

MAX_DENSE_NODES = 3000
"""Largest graph whose eigenvectors are computed densely if ARPACK fails."""

ARPACK_TAKES_RNG = "rng" in inspect.signature(eigsh).parameters
"""Whether `eigsh` can be told its random numbers; since SciPy 1.17."""


@dataclass(frozen=True)
class Representation:
    """A kind of rows that heads learn from.

    Args:
        compute: Computes the rows from a basis.
        formula: What the rows are.
        inductive: Whether rows of another graph are comparable. Otherwise a column stands for a
            node, or for a direction, of this graph alone.
        needs_features: Whether the rows differ from others only if there are features.
    """

    compute: Callable[[Basis], Rows]
    formula: str
    inductive: bool = True
    needs_features: bool = False


REPRESENTATIONS: dict[str, Representation] = {}
"""All representations by name."""


def _define(
    name: str, formula: str, *, inductive: bool = True, needs_features: bool = False
) -> Callable[[Callable[[Basis], Rows]], Callable[[Basis], Rows]]:
    """Enter the decorated function into `REPRESENTATIONS`."""

    def enter(compute: Callable[[Basis], Rows]) -> Callable[[Basis], Rows]:
        REPRESENTATIONS[name] = Representation(compute, formula, inductive, needs_features)
        return compute

    return enter


@dataclass(frozen=True, eq=False)
class Basis:
    """Representations of a graph; each is computed at its first use and then kept.

    Args:
        graph: The graph.
        state: Learned tensors by name, which `rows` completes. Pass those of a fitted basis to make
            the rows of another graph comparable with its rows.
        positions: Eigenvectors that stand for the features of a graph without features, N × 64;
            None computes those of the graph.

    >>> from kryograph.data import toy
    >>> Basis(toy.two_cliques(4)).rows("hops").shape
    (8, 192)
    """

    graph: Graph
    state: dict[str, Tensor] = field(default_factory=dict)
    positions: DenseRows | None = None
    _rows: dict[str, Rows] = field(default_factory=dict, repr=False)

    def rows(self, name: str) -> Rows:
        """Rows of the representation with this name."""
        if name not in self._rows:
            self._rows[name] = REPRESENTATIONS[name].compute(self)
        return self._rows[name]

    def changed(self, graph: Graph) -> Basis:
        """Basis of the same nodes with other edges or features; what is learned stays."""
        return Basis(graph, dict(self.state), None if self.has_features else self.Z)

    def usable(self, name: str) -> bool:
        """Whether the representation exists for this graph and is not the same as another one."""
        kind = REPRESENTATIONS[name]
        if kind.needs_features and not (self.has_features and (self.many or name == "features")):
            return False
        return name != "neighbours" or self.graph.edges > 0

    @cached_property
    def has_features(self) -> bool:
        """Whether any column tells nodes apart; False also for the identity.

        With the state of a graph that has features it is True, so that the columns of the rows mean
        what they meant there.
        """
        if self.state:  # only the rows of a graph with features learn one
            return True
        x = self.graph.features
        if x.shape[1] == 0 or is_identity(x):
            return False
        # `min` and `max` of a sparse matrix count entries that are not stored.
        return bool((x.max(axis=0) != x.min(axis=0)).sum())

    @property
    def many(self) -> bool:
        """Whether there are more than `FEW_FEATURES` features."""
        return int(self.graph.features.shape[1]) > FEW_FEATURES

    @cached_property
    def S(self) -> SparseMatrix:
        """Operator S, symmetric and with self-loops."""
        return SparseMatrix.from_scipy(operator(self.graph, "sym").matrix)

    @cached_property
    def P(self) -> SparseMatrix:
        """The operator that averages over the neighbours of a node."""
        return SparseMatrix.from_scipy(operator(self.graph, "neighbour-mean").matrix)

    @cached_property
    def Z(self) -> DenseRows:
        """The features in at most `RANK` dimensions, or eigenvectors of S without features."""
        if not self.has_features and self.positions is not None:
            return self.positions
        if not self.has_features:
            return math.sqrt(self.graph.n) * self.eigenvectors("sym", EIGENVECTORS)
        if not self.many:
            return np.asarray(self.rows("features"))
        weighted = self.rows("weighted")
        if "projection" not in self.state:
            rank = max(32, min(RANK, MAX_ENTRIES // self.graph.n))
            rank = min(rank, *weighted.shape)
            # Random directions in the space of the features: the order of the nodes has no say.
            _, _, directions = randomized_svd(
                weighted, rank, n_iter=2, transpose=False, flip_sign=False, random_state=0
            )
            directions *= np.where((directions**3).sum(axis=1) < 0, -1.0, 1.0)[:, None]
            self.state["projection"] = torch.from_numpy(directions.T.astype(np.float32).copy())
        return np.asarray(weighted @ self.state["projection"].numpy(), dtype=np.float32)

    @cached_property
    def walked(self) -> tuple[DenseRows, DenseRows]:
        """P Z and P² Z."""
        once = product(self.P, self.Z)
        return once, product(self.P, once)

    @cached_property
    def summed(self) -> tuple[DenseRows, DenseRows, DenseRows]:
        """Damped sum and plain sum of the S^k Z, and S² Z."""
        block, damped, plain = self.Z, self.Z.copy(), self.Z.copy()
        second = block
        for k in range(1, SUMMED_HOPS + 1):
            block = product(self.S, block)
            plain += block
            if k <= DAMPED_HOPS:
                damped += np.float32(DAMPING**k) * block
            if k == 2:
                second = block
        return damped, plain, second

    def eigenvectors(self, name: str, count: int) -> DenseRows:
        """Eigenvectors of an operator with the largest absolute eigenvalues, N × count.

        Missing ones (in a small graph) are zero. Signs are chosen by the third moment.
        """
        n = self.graph.n
        matrix = self.graph.adjacency if name == "adjacency" else operator(self.graph, name).matrix
        vectors = np.zeros((n, count), dtype=np.float32)
        kept = min(count, n - 2)
        if kept < 1 or matrix.nnz == 0:
            return vectors
        # The start depends on degrees, so that the order of the nodes has no say.
        start = 1 + np.sqrt(self.graph.adjacency.sum(axis=1)) + 0.1 * np.cos(self._codes)
        # ARPACK draws another start where this one spans an invariant space (equal degrees, several
        # components). Before SciPy 1.17 these draws differ from call to call.
        draws = {"rng": np.random.default_rng(0)} if ARPACK_TAKES_RNG else {}
        restarts = max(LEAST_RESTARTS, EIGENVECTOR_WORK // (matrix.nnz + n))
        matrix = matrix.astype(np.float64)
        try:
            values, columns = eigsh(matrix, kept, which="LM", v0=start, maxiter=restarts, **draws)
        except ArpackNoConvergence as error:  # those that are not found in time stay zero
            values, columns = error.eigenvalues, error.eigenvectors
        except ArpackError:  # many equal eigenvalues: ARPACK runs out of directions
            if n > MAX_DENSE_NODES:
                return vectors
            values, columns = np.linalg.eigh(matrix.toarray())
        columns = columns[:, np.argsort(-abs(values), kind="stable")[:kept]]
        signs = np.where((columns**3).sum(axis=0) < 0, -1.0, 1.0)
        vectors[:, : columns.shape[1]] = columns * signs
        return vectors

    @cached_property
    def _codes(self) -> npt.NDArray[np.float64]:
        """A number for each node that depends on degrees near it, not on its index."""
        degree = self.graph.adjacency.sum(axis=1)
        near = self.graph.adjacency @ degree
        return np.asarray(near + np.sqrt(1.0 + self.graph.adjacency @ near))

    def learned(self, name: str, compute: Callable[[], npt.NDArray[np.floating]]) -> DenseRows:
        """Return an entry of the state; compute it first if it is not there."""
        if name not in self.state:
            self.state[name] = torch.from_numpy(np.asarray(compute(), dtype=np.float32).copy())
        return np.asarray(self.state[name].numpy())

    def scaled(self, name: str, blocks: list[DenseRows]) -> DenseRows:
        """Put blocks side by side, with rows of unit length or, of few features, standardised."""
        parts = []
        for k, block in enumerate(blocks):
            if self.many or not self.has_features:
                parts.append(unit_rows(block))
            else:
                parts.append(self.standardised(f"{name}.{k}", block))
        return np.hstack(parts) / np.float32(math.sqrt(len(blocks)))

    def standardised(self, name: str, block: npt.NDArray[np.floating]) -> DenseRows:
        """Standardise the columns, and divide them by the square root of their number."""
        mean = self.learned(f"{name}.mean", lambda: block.mean(axis=0))
        spread = self.learned(f"{name}.spread", lambda: spread_of(block))
        return ((block - mean) / (spread * math.sqrt(block.shape[1]))).astype(np.float32)


def product(matrix: SparseMatrix, x: DenseRows) -> DenseRows:
    """A sparse matrix times dense rows, by torch's kernels."""
    return np.asarray(matrix.product(torch.from_numpy(np.ascontiguousarray(x))).numpy())


@overload
def unit_rows(x: DenseRows) -> DenseRows: ...


@overload
def unit_rows(x: sp.csr_array) -> sp.csr_array: ...


def unit_rows(x: Rows) -> Rows:
    """Scale rows to unit length; rows of zeros stay."""
    if isinstance(x, sp.csr_array):
        lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
        factors = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return sp.csr_array(sp.diags_array(factors.astype(np.float32)) @ x)
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]
    return np.divide(x, lengths, out=np.zeros_like(x), where=lengths > 0)


def spread_of(x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Standard deviation of the columns; 1 for a constant one."""
    spread = x.std(axis=0)
    return np.where(spread > 1e-6 * np.maximum(abs(x).max(axis=0), 1e-30), spread, 1.0)


@_define("features", "X, rows of unit length", needs_features=True)
def _features(basis: Basis) -> Rows:
    x = basis.graph.features
    if basis.many:
        return unit_rows(x.astype(np.float32))
    return basis.standardised("features", to_dense(x))


@_define("weighted", "X with rare features weighted up, rows of unit length", needs_features=True)
def _weighted(basis: Basis) -> Rows:
    x = basis.graph.features
    # A state says how it was learned; another graph may have negative values where its graph has
    # none, and the other way round.
    if "weighted.mean" in basis.state or ("idf" not in basis.state and x.min() < 0):
        return unit_rows(basis.standardised("weighted", to_dense(x)))
    stored = sp.csr_array(x).astype(np.float32)
    count = np.asarray((stored != 0).sum(axis=0)).ravel()
    weight = basis.learned("idf", lambda: np.log((1 + stored.shape[0]) / (1 + count)) + 1)
    return unit_rows(sp.csr_array(stored.multiply(weight[None, :])))


@_define("diffused", "Σ_{k≤10} 0.9^k S^k Z")
def _diffused(basis: Basis) -> Rows:
    return basis.scaled("diffused", [basis.summed[0]])


@_define("centred", "Σ_{k≤10} 0.9^k ((I+P)/2)^k (Z − mean)", needs_features=True)
def _centred(basis: Basis) -> Rows:
    centre = basis.learned("centre", lambda: basis.Z.mean(axis=0))
    block = basis.Z - centre
    total = block.copy()
    for k in range(1, DAMPED_HOPS + 1):
        block = (block + product(basis.P, block)) / 2
        total += np.float32(DAMPING**k) * block
    return basis.scaled("centred", [total])


@_define("hops", "[Z, P Z, P² Z]")
def _hops(basis: Basis) -> Rows:
    return basis.scaled("hops", [basis.Z, *basis.walked])


@_define("contrast", "[Z, Z − P Z, P Z − P² Z]")
def _contrast(basis: Basis) -> Rows:
    once, twice = basis.walked
    return basis.scaled("contrast", [basis.Z, basis.Z - once, once - twice])


@_define("sum", "Σ_{k≤16} S^k Z")
def _sum(basis: Basis) -> Rows:
    return basis.scaled("sum", [basis.summed[1]])


@_define("neighbours", "P A: neighbours of neighbours", inductive=False)
def _neighbours(basis: Basis) -> Rows:
    adjacency = basis.graph.adjacency.astype(np.float32)
    if not reads_two_hops(basis.graph):
        return unit_rows(sp.csr_array(adjacency))
    return unit_rows(sp.csr_array(basis.P.to_scipy() @ adjacency))


def reads_two_hops(graph: Graph) -> bool:
    """Whether the rows of `neighbours` are those of P A; in a dense graph they are those of A."""
    degree = np.diff(graph.adjacency.indptr).astype(np.float64)
    return bool((degree**2).sum() <= MAX_TWO_HOP_ENTRIES)


@_define("tree", "[Z, P Z, P² Z, S² Z], degrees and eigenvectors of S and A", inductive=False)
def _tree(basis: Basis) -> Rows:
    once, twice = basis.walked
    parts = [block[:, :64] for block in (basis.Z, once, twice, basis.summed[2])]
    spectral = [basis.eigenvectors("sym", 16), basis.eigenvectors("adjacency", 16)]
    return np.hstack([*parts, degree_features(basis.graph), *spectral]).astype(np.float32)


def degree_features(graph: Graph) -> DenseRows:
    """Five numbers of each node: logarithms of degrees near it, and how its own compares."""
    neighbours = operator(graph, "neighbour-mean").matrix
    count = np.diff(graph.adjacency.indptr).astype(np.float64)
    near = neighbours @ count
    columns = [
        np.log1p(count),
        np.log1p(near),
        np.log1p(neighbours @ near),
        np.log1p(count) - np.log1p(near),
        np.log1p(graph.adjacency.sum(axis=1)),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def to_dense(x: Features) -> npt.NDArray[np.floating]:
    """Features as a dense array."""
    return np.asarray(x.toarray() if isinstance(x, sp.csr_array) else x)
