"""Diffusion operators L of a graph. Nothing else in kryograph normalises an adjacency.

With A the adjacency of an undirected graph, D its degrees, Ã = A + I and D̃ its degrees:

=====================  =======================  ============================================
name                   L                        true of it
=====================  =======================  ============================================
`sym`                  D̃^{-1/2} Ã D̃^{-1/2}      symmetric, spectrum in (-1, 1]; the paper's
`rw`                   D̃^{-1} Ã                 rows sum to 1; the authors' code (D1)
`laplacian`            D - A                    symmetric, L 1 = 0
`normalised-laplacian` I - D^{-1/2} A D^{-1/2}  symmetric, spectrum in [0, 2]
`affinity`             A + I                    symmetric
`walk-laplacian`       I - D^{-1} A             similar to the normalised Laplacian
`neighbour-mean`       D^{-1} A                 rows sum to 1, or to 0 without neighbours
=====================  =======================  ============================================

A node without neighbours keeps its own features under `sym` and `rw`, and has a zero row in all
Laplacians, so that the multiplicity of their eigenvalue 0 is the number of components.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.errors import UsageError, unknown
from kryograph.graph import Graph
from kryograph.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Operator:
    """A linear operator on node features that knows what is true of it.

    `L @ x` takes NumPy arrays and torch tensors of any floating type; `L.T @ x` the transpose.

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
        """Number of nodes."""
        return int(self.matrix.shape[0])

    @property
    def T(self) -> Operator:
        """The transpose."""
        if self.symmetric:
            return self
        name = self.name.removesuffix("ᵀ") if self.name.endswith("ᵀ") else self.name + "ᵀ"
        return Operator(name, self.matrix.T.tocsr(), symmetric=False)

    def tensor(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> SparseMatrix:
        """The operator as a torch matrix; made once per type and device."""
        key = (dtype, _storage_device(device))
        if key not in self._on_device:
            self._on_device[key] = SparseMatrix.from_scipy(
                self.matrix, dtype=dtype, device=key[1], symmetric=self.symmetric
            )
        return self._on_device[key]

    def edge_index(self, device: torch.device | str = "cpu") -> Tensor:
        """Its entries as PyTorch Geometric has edges: row 0 sends, row 1 receives; made once."""
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
            # bfloat16 activations are diffused in float32: there is no sparse kernel below it.
            exact = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
            return self.tensor(exact, x.device) @ x
        product: npt.NDArray[np.floating] = self.matrix @ x
        return product


def _storage_device(device: torch.device | str) -> torch.device:
    """Device of an operator's entries; for tensors without storage ("meta") it is the CPU."""
    named = torch.device(device)
    return torch.device("cpu") if named.type == "meta" else named


def operator(graph: Graph, name: str = "sym") -> Operator:
    """The operator of that name on a graph."""
    return from_adjacency(graph.adjacency, name)


def from_adjacency(adjacency: sp.csr_array, name: str = "sym") -> Operator:
    """The operator of that name; the adjacency has no self-loops and may be directed.

    Entry (i, j) is the weight of what node i receives from node j; degrees are sums of rows.
    """
    if name not in OPERATORS:
        raise unknown("operator", name, OPERATORS)
    matrix = sp.csr_array(OPERATORS[name](adjacency.astype(np.float64)))
    matrix.sort_indices()
    return Operator(name, matrix, symmetric=_is_symmetric(matrix))


def from_edge_index(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, name: str = "sym"
) -> Operator:
    """The operator of an edge list in PyTorch Geometric's form: row 0 sends, row 1 receives.

    As in PyTorch Geometric, edges are not symmetrised and the weights of repeated ones add up.
    Self-loops are replaced by those of the operator.
    """
    if edge_weight is not None and edge_weight.requires_grad:
        raise UsageError("Gradients with respect to edge weights are not available: detach them.")
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise UsageError(f"edge_index must be 2 × E; it is {tuple(edge_index.shape)}.")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise UsageError(f"{edge_index.shape[1]} edges have weights {tuple(edge_weight.shape)}.")
    source, target = edge_index.detach().cpu().numpy()
    if source.size and (edge_index.min() < 0 or edge_index.max() >= n):
        raise UsageError(f"edge_index names a node outside 0 to {n - 1}.")
    weight = np.ones(source.size) if edge_weight is None else edge_weight.double().cpu().numpy()
    if not np.all(np.isfinite(weight)) or not np.all(weight > 0):
        raise UsageError("Edge weights must be positive and finite.")
    keep = source != target
    entries = (weight[keep], (target[keep], source[keep]))
    return from_adjacency(sp.coo_array(entries, shape=(n, n)).tocsr(), name)


def _symmetric(adjacency: sp.csr_array) -> sp.sparray:
    affinity = _affinity(adjacency)
    root = sp.diags_array(_power(affinity.sum(axis=1), -0.5))
    return root @ affinity @ root


def _random_walk(adjacency: sp.csr_array) -> sp.sparray:
    affinity = _affinity(adjacency)
    return sp.diags_array(_power(affinity.sum(axis=1), -1.0)) @ affinity


def _laplacian(adjacency: sp.csr_array) -> sp.sparray:
    return sp.diags_array(adjacency.sum(axis=1)) - adjacency


def _normalised_laplacian(adjacency: sp.csr_array) -> sp.sparray:
    degree = adjacency.sum(axis=1)
    root = sp.diags_array(_power(degree, -0.5))
    return sp.diags_array((degree > 0).astype(np.float64)) - root @ adjacency @ root


def _affinity(adjacency: sp.csr_array) -> sp.sparray:
    return adjacency + sp.eye_array(adjacency.shape[0])


def _walk_laplacian(adjacency: sp.csr_array) -> sp.sparray:
    return sp.diags_array((adjacency.sum(axis=1) > 0).astype(np.float64)) - _mean(adjacency)


def _mean(adjacency: sp.csr_array) -> sp.sparray:
    return sp.diags_array(_power(adjacency.sum(axis=1), -1.0)) @ adjacency


OPERATORS: dict[str, Callable[[sp.csr_array], sp.sparray]] = {
    "sym": _symmetric,
    "rw": _random_walk,
    "laplacian": _laplacian,
    "normalised-laplacian": _normalised_laplacian,
    "affinity": _affinity,
    "walk-laplacian": _walk_laplacian,
    "neighbour-mean": _mean,
}


def _power(degree: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    """degree ** exponent, with 0 where the degree is 0."""
    result = np.zeros_like(degree)
    np.power(degree, exponent, out=result, where=degree > 0)
    return result


def _is_symmetric(matrix: sp.csr_array) -> bool:
    # Up to rounding, entry by entry: d_i^{-1/2} a d_j^{-1/2} is multiplied from the left, so that
    # (i, j) and (j, i) may differ in their last digits.
    transpose = matrix.T.tocsr()
    tolerance = 4 * np.finfo(np.float64).eps * abs(matrix).maximum(abs(transpose))
    return bool((abs(matrix - transpose) > tolerance).nnz == 0)
