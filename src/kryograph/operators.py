"""Diffusion operators L of a graph. Nothing else in kryograph normalises an adjacency.

`OPERATORS` holds one record per operator, from which both forms of an operator are computed: a
constant matrix (`Operator`), and a list of entries that have gradients (`EdgeOperator`). In the
formulas A is the adjacency of an undirected graph, D its degrees, Ã = A + I and D̃ its degrees.

A node without neighbours keeps its own features under `sym` and `rw`, and has a zero row in all
Laplacians, so that the multiplicity of their eigenvalue 0 is the number of components.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

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
            return self.tensor(product_type(x), x.device) @ x
        product: npt.NDArray[np.floating] = self.matrix @ x
        return product


def _storage_device(device: torch.device | str) -> torch.device:
    """Device of an operator's entries; for tensors without storage ("meta") it is the CPU."""
    named = torch.device(device)
    return torch.device("cpu") if named.type == "meta" else named


def product_type(x: Tensor) -> torch.dtype:
    """Type in which an operator is multiplied by x; no sparse kernel takes bfloat16."""
    return x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32


def operator(graph: Graph, name: str = "sym") -> Operator:
    """Compute the operator with this name for a graph."""
    return _build(graph.adjacency, name, symmetric=True)


def from_adjacency(adjacency: sp.csr_array, name: str = "sym") -> Operator:
    """Compute the operator with this name for an adjacency, which may be directed.

    The adjacency has no self-loops. Its entry (i, j) is the weight with which node i receives the
    features of node j; degrees are sums of rows.
    """
    return _build(adjacency, name, symmetric=False)


def _build(adjacency: sp.csr_array, name: str, *, symmetric: bool) -> Operator:
    """Compute an operator for an adjacency that is known to be `symmetric`, or may be."""
    check_known("operator", name, OPERATORS)
    kind = OPERATORS[name]
    matrix = sp.csr_array(kind.matrix(adjacency.astype(np.float64, copy=False)))
    matrix.sort_indices()
    known = symmetric and kind.left == kind.right
    return Operator(name, matrix, symmetric=known or _is_symmetric(matrix))


def from_edge_index(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, name: str = "sym"
) -> Operator:
    """Compute an operator for PyTorch Geometric edges: row 0 is the source, row 1 the target.

    As in PyTorch Geometric, edges are not symmetrised and the weights of repeated edges add up.
    Self-loops in the list are dropped; `sym`, `rw` and `affinity` add their own.
    """
    if edge_weight is not None and edge_weight.requires_grad:
        raise UsageError("Gradients with respect to edge weights are not available: detach them.")
    _check_edges(edge_index, edge_weight, n)
    source, target = edge_index.detach().cpu().numpy()
    weight = np.ones(source.size) if edge_weight is None else edge_weight.double().cpu().numpy()
    keep = source != target
    entries = (weight[keep], (target[keep], source[keep]))
    return from_adjacency(sp.coo_array(entries, shape=(n, n)).tocsr(), name)


def _check_edges(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> None:
    """Raise a `UsageError` if these are not the edges and positive weights of n nodes."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise UsageError(f"edge_index must be 2 × E; it is {tuple(edge_index.shape)}.")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise UsageError(
            f"There are {edge_index.shape[1]} edges, but weights of shape "
            f"{tuple(edge_weight.shape)}."
        )
    if torch.compiler.is_compiling():
        return  # a program is made for any edges: their values are not known yet
    if edge_index.numel() and (edge_index.min() < 0 or edge_index.max() >= n):
        raise UsageError(f"edge_index names a node outside 0 to {n - 1}.")
    if edge_weight is not None:
        weight = edge_weight.detach()
        if not torch.all(torch.isfinite(weight) & (weight > 0)):
            raise UsageError("Edge weights must be positive and finite.")


@dataclass(frozen=True, eq=False)
class EdgeOperator:
    """A linear operator on node features whose entries have gradients.

    `L @ x` is the sum of each node's messages in the manner of PyTorch Geometric. It consists of
    torch's own functions only, so it can be compiled and exported. `Operator` is several times
    faster, and has constant entries.

    Args:
        edge_index: Source and target of each entry beside the diagonal, 2 × E.
        values: These entries, E; those with the same source and target add up.
        diagonal: Entries of the diagonal, N.
    """

    edge_index: Tensor
    values: Tensor
    diagonal: Tensor

    def __matmul__(self, x: Tensor) -> Tensor:
        exact = x.to(product_type(x))
        source, target = self.edge_index[0], self.edge_index[1]
        messages = self.values.to(exact.dtype)[:, None] * exact[source]
        kept = self.diagonal.to(exact.dtype)[:, None] * exact
        return kept.index_add(0, target, messages).to(x.dtype)


def edge_operator(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, name: str = "sym"
) -> EdgeOperator:
    """Compute the operator of `from_edge_index`, with gradients for the edge weights.

    >>> weight = torch.tensor([3.0], requires_grad=True)
    >>> L = edge_operator(torch.tensor([[0], [1]]), weight, 2, "rw")
    >>> (L @ torch.eye(2)).tolist()
    [[1.0, 0.0], [0.75, 0.25]]
    """
    check_known("operator", name, OPERATORS)
    _check_edges(edge_index, edge_weight, n)
    kind, (source, target) = OPERATORS[name], (edge_index[0], edge_index[1])
    if edge_weight is None:
        weight = torch.ones_like(source, dtype=torch.float64)
    else:
        weight = edge_weight.double()
    # Self-loops keep their place with weight 0: how many there are is not known in a program.
    weight = torch.where(source == target, 0.0, weight)
    degree = weight.new_full((n,), float(kind.loops)).index_add(0, target, weight)
    left = weight.new_ones(n) if kind.left == 0 else _tensor_power(degree, kind.left)
    right = weight.new_ones(n) if kind.right == 0 else _tensor_power(degree, kind.right)
    values = left[target] * weight * right[source]
    if kind.laplacian:
        diagonal = _tensor_power(degree, 1 + kind.left + kind.right)
        return EdgeOperator(edge_index, -values, diagonal)
    return EdgeOperator(edge_index, values, left * right * float(kind.loops))


def _tensor_power(degree: Tensor, exponent: float) -> Tensor:
    """Compute degree ** exponent, with 0 where the degree is 0, there also as its gradient."""
    positive = degree > 0
    return torch.where(positive, torch.where(positive, degree, 1.0) ** exponent, 0.0)


@dataclass(frozen=True)
class OperatorKind:
    """A kind of operator: D^left A D^right, or D^left (D - A) D^right for a Laplacian.

    A factor with exponent 0 is no factor; otherwise a degree of 0 becomes 0.
    """

    formula: str
    properties: str
    left: float
    right: float
    loops: bool = False
    """Whether A has a loop of weight 1 at every node: it is Ã then, and D is D̃."""
    laplacian: bool = False
    searched: bool = False
    """Whether a search for settings may choose this operator."""

    def matrix(self, adjacency: sp.csr_array) -> sp.sparray:
        """Compute the operator's matrix for an adjacency without self-loops."""
        matrix = adjacency
        if self.loops:
            matrix = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr"))
        degree = matrix.sum(axis=1)
        if not self.loops and (self.left != 0 or self.right != 0):
            matrix = matrix.copy()  # its entries are multiplied in place
        if self.left != 0:
            matrix.data *= np.repeat(_power(degree, self.left), np.diff(matrix.indptr))
        if self.right != 0:
            matrix.data *= _power(degree, self.right)[matrix.indices]
        if self.laplacian:
            return sp.diags_array(_power(degree, 1 + self.left + self.right)) - matrix
        return matrix


OPERATORS = {
    "sym": OperatorKind(
        "D̃^{-1/2} Ã D̃^{-1/2}",
        "symmetric, spectrum in (-1, 1]; the operator of the paper's text",
        left=-0.5,
        right=-0.5,
        loops=True,
        searched=True,
    ),
    "rw": OperatorKind(
        "D̃^{-1} Ã",
        "rows sum to 1; the operator of the authors' code (D1)",
        left=-1,
        right=0,
        loops=True,
        searched=True,
    ),
    "laplacian": OperatorKind("D - A", "symmetric, L 1 = 0", left=0, right=0, laplacian=True),
    "normalised-laplacian": OperatorKind(
        "I - D^{-1/2} A D^{-1/2}",
        "symmetric, spectrum in [0, 2]",
        left=-0.5,
        right=-0.5,
        laplacian=True,
    ),
    "affinity": OperatorKind("A + I", "symmetric", left=0, right=0, loops=True),
    "walk-laplacian": OperatorKind(
        "I - D^{-1} A", "similar to the normalised Laplacian", left=-1, right=0, laplacian=True
    ),
    "neighbour-mean": OperatorKind(
        "D^{-1} A", "rows sum to 1, or to 0 without neighbours", left=-1, right=0
    ),
}
"""The operators by name."""


def _power(degree: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    """Compute degree ** exponent, with 0 where the degree is 0."""
    result = np.zeros_like(degree)
    np.power(degree, exponent, out=result, where=degree > 0)
    return result


def _is_symmetric(matrix: sp.csr_array) -> bool:
    """Whether a matrix with sorted indices and no stored zero equals its transpose."""
    transpose = matrix.T.tocsr()
    if not np.array_equal(matrix.indptr, transpose.indptr):
        return False
    if not np.array_equal(matrix.indices, transpose.indices):
        return False
    # The comparison allows for rounding: d_i^{-1/2} a d_j^{-1/2} is multiplied from the left, so
    # that (i, j) and (j, i) may differ in their last digits.
    tolerance = 4 * np.finfo(np.float64).eps * np.maximum(abs(matrix.data), abs(transpose.data))
    return bool(np.all(abs(matrix.data - transpose.data) <= tolerance))
