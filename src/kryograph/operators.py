"""Diffusion operators L of a graph. Nothing else in kryograph normalises an adjacency.

`OPERATORS` holds one record per operator; a new operator is one decorated function there. In the
formulas A is the adjacency of an undirected graph, D its degrees, Ã = A + I and D̃ its degrees.

A node without neighbours keeps its own features under `sym` and `rw`, and has a zero row in all
Laplacians, so that the multiplicity of their eigenvalue 0 is the number of components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError, check_known
from kryograph.graph import Graph
from kryograph.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Operator:
    """A linear operator on node features: the matrix L, and whether it is symmetric.

    `L @ x` and `L.T @ x` take NumPy arrays and torch tensors of any floating-point type.

    >>> from kryograph.data import toy
    >>> L = operator(toy.cycle(4), "rw")
    >>> L.symmetric, (L @ np.ones((4, 1))).ravel().tolist()
    (True, [1.0, 1.0, 1.0, 1.0])
    """

    name: str
    matrix: sp.csr_array
    symmetric: bool
    _on_device: dict[tuple[torch.dtype, torch.device], SparseMatrix] = field(
        default_factory=dict, repr=False
    )
    _edges: dict[torch.device, Tensor] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Number of nodes of the graph."""
        return int(self.matrix.shape[0])

    @property
    def T(self) -> Operator:
        """The transposed operator; the same object if L is symmetric."""
        if self.symmetric:
            return self
        name = self.name.removesuffix("ᵀ") if self.name.endswith("ᵀ") else self.name + "ᵀ"
        return Operator(name, self.matrix.T.tocsr(), symmetric=False)

    def tensor(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> SparseMatrix:
        """The operator as a torch matrix; converted once per type and device."""
        key = (dtype, _storage_device(device))
        if key not in self._on_device:
            self._on_device[key] = SparseMatrix.from_scipy(
                self.matrix, dtype=dtype, device=key[1], symmetric=self.symmetric
            )
        return self._on_device[key]

    def edge_index(self, device: torch.device | str = "cpu") -> Tensor:
        """The entries of L as PyTorch Geometric edges: row 0 is the source, row 1 the target."""
        key = _storage_device(device)
        if key not in self._edges:
            entries = self.matrix.tocoo()
            pairs = np.stack([entries.col, entries.row]).astype(np.int64)
            self._edges[key] = torch.from_numpy(pairs).to(key)
        return self._edges[key]

    @overload
    def __matmul__(self, x: Tensor) -> Tensor: ...

    @overload
    def __matmul__(self, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]: ...

    def __matmul__(self, x: Tensor | npt.NDArray[np.floating]) -> Tensor | npt.NDArray[np.floating]:
        if isinstance(x, Tensor):
            x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
            # bfloat16 is multiplied in float32, because no sparse kernel takes bfloat16.
            exact = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
            return self.tensor(exact, x.device) @ x
        product: npt.NDArray[np.floating] = self.matrix @ x
        return product


def _storage_device(device: torch.device | str) -> torch.device:
    """Device of an operator's entries; for tensors without storage ("meta") it is the CPU."""
    named = torch.device(device)
    return torch.device("cpu") if named.type == "meta" else named


def operator(graph: Graph, name: str = "sym") -> Operator:
    """Compute the operator with this name for a graph."""
    return from_adjacency(graph.adjacency, name)


def from_adjacency(adjacency: sp.csr_array, name: str = "sym") -> Operator:
    """Compute the operator with this name for an adjacency, which may be directed.

    The adjacency has no self-loops. Its entry (i, j) is the weight with which node i receives the
    features of node j; degrees are sums of rows.
    """
    check_known("operator", name, OPERATORS)
    matrix = sp.csr_array(OPERATORS[name].matrix(adjacency.astype(np.float64)))
    matrix.sort_indices()
    return Operator(name, matrix, symmetric=_is_symmetric(matrix))


def from_edge_index(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, name: str = "sym"
) -> Operator:
    """Compute an operator for PyTorch Geometric edges: row 0 is the source, row 1 the target.

    As in PyTorch Geometric, edges are not symmetrised and the weights of repeated edges add up.
    Self-loops in the list are dropped; `sym`, `rw` and `affinity` add their own.
    """
    if edge_weight is not None and edge_weight.requires_grad:
        raise UsageError("Gradients with respect to edge weights are not available: detach them.")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise UsageError(f"edge_index must be 2 × E; it is {tuple(edge_index.shape)}.")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise UsageError(
            f"There are {edge_index.shape[1]} edges, but weights of shape "
            f"{tuple(edge_weight.shape)}."
        )
    source, target = edge_index.detach().cpu().numpy()
    if source.size and (edge_index.min() < 0 or edge_index.max() >= n):
        raise UsageError(f"edge_index names a node outside 0 to {n - 1}.")
    weight = np.ones(source.size) if edge_weight is None else edge_weight.double().cpu().numpy()
    if not np.all(np.isfinite(weight)) or not np.all(weight > 0):
        raise UsageError("Edge weights must be positive and finite.")
    keep = source != target
    entries = (weight[keep], (target[keep], source[keep]))
    return from_adjacency(sp.coo_array(entries, shape=(n, n)).tocsr(), name)


Matrix: TypeAlias = Callable[[sp.csr_array], sp.sparray]
"""A function that computes the matrix of an operator."""


@dataclass(frozen=True)
class OperatorKind:
    """A kind of operator: its matrix for an adjacency without self-loops, and its properties."""

    matrix: Matrix
    formula: str
    properties: str
    searched: bool
    """Whether a search for settings may choose this operator."""


OPERATORS: dict[str, OperatorKind] = {}


def _define(
    name: str, formula: str, properties: str, *, searched: bool = False
) -> Callable[[Matrix], Matrix]:
    """Enter the decorated function into `OPERATORS`."""

    def enter(matrix: Matrix) -> Matrix:
        OPERATORS[name] = OperatorKind(matrix, formula, properties, searched)
        return matrix

    return enter


@_define(
    "sym",
    "D̃^{-1/2} Ã D̃^{-1/2}",
    "symmetric, spectrum in (-1, 1]; the operator of the paper's text",
    searched=True,
)
def _symmetric(adjacency: sp.csr_array) -> sp.sparray:
    affinity = _affinity(adjacency)
    root = sp.diags_array(_power(affinity.sum(axis=1), -0.5))
    return root @ affinity @ root


@_define("rw", "D̃^{-1} Ã", "rows sum to 1; the operator of the authors' code (D1)", searched=True)
def _random_walk(adjacency: sp.csr_array) -> sp.sparray:
    affinity = _affinity(adjacency)
    return sp.diags_array(_power(affinity.sum(axis=1), -1.0)) @ affinity


@_define("laplacian", "D - A", "symmetric, L 1 = 0")
def _laplacian(adjacency: sp.csr_array) -> sp.sparray:
    return sp.diags_array(adjacency.sum(axis=1)) - adjacency


@_define("normalised-laplacian", "I - D^{-1/2} A D^{-1/2}", "symmetric, spectrum in [0, 2]")
def _normalised_laplacian(adjacency: sp.csr_array) -> sp.sparray:
    degree = adjacency.sum(axis=1)
    root = sp.diags_array(_power(degree, -0.5))
    return sp.diags_array((degree > 0).astype(np.float64)) - root @ adjacency @ root


@_define("affinity", "A + I", "symmetric")
def _affinity(adjacency: sp.csr_array) -> sp.sparray:
    return adjacency + sp.eye_array(adjacency.shape[0])


@_define("walk-laplacian", "I - D^{-1} A", "similar to the normalised Laplacian")
def _walk_laplacian(adjacency: sp.csr_array) -> sp.sparray:
    has_neighbours = (adjacency.sum(axis=1) > 0).astype(np.float64)
    return sp.diags_array(has_neighbours) - _neighbour_mean(adjacency)


@_define("neighbour-mean", "D^{-1} A", "rows sum to 1, or to 0 without neighbours")
def _neighbour_mean(adjacency: sp.csr_array) -> sp.sparray:
    return sp.diags_array(_power(adjacency.sum(axis=1), -1.0)) @ adjacency


def _power(degree: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    """Compute degree ** exponent, with 0 where the degree is 0."""
    result = np.zeros_like(degree)
    np.power(degree, exponent, out=result, where=degree > 0)
    return result


def _is_symmetric(matrix: sp.csr_array) -> bool:
    # The comparison allows for rounding: d_i^{-1/2} a d_j^{-1/2} is multiplied from the left, so
    # that (i, j) and (j, i) may differ in their last digits.
    transpose = matrix.T.tocsr()
    tolerance = 4 * np.finfo(np.float64).eps * abs(matrix).maximum(abs(transpose))
    return bool((abs(matrix - transpose) > tolerance).nnz == 0)
