"""Hops: the nodes within 0, 1, 2 … steps of some, and the operator between them.

A layer that diffuses once and is needed on the rows T₀ needs its input on T₁, the nodes within one
hop of T₀, and so on. With the nodes in the order of their distance each T_k is the first few rows,
and L[T_k, T_{k+1}] the first rows of one matrix: restricting a layer costs a slice.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.engine.cost import Cost, gemm_cost, spmm_cost
from kryograph.nn.functional import NodeFeatures
from kryograph.operators import Operator
from kryograph.sparse import SparseMatrix


class Hops:
    """Nodes by their distance from the nodes of T₀, each of which is listed once.

    Node i is one hop from node j if L_ij ≠ 0; `hops` is the largest distance, `dtype` the type of
    the numbers in products.

    >>> from kryograph.data import toy
    >>> from kryograph.operators import operator
    >>> hops = Hops(operator(toy.path(5)), torch.tensor([1]), 3, torch.float64)
    >>> hops.order.tolist(), hops.sizes
    ([1, 0, 2, 3, 4], [1, 3, 4, 5])
    """

    def __init__(self, L: Operator, nodes: Tensor, hops: int, dtype: torch.dtype) -> None:
        self.L, self.dtype, self.device = L, dtype, nodes.device
        levels = [nodes.cpu().numpy()]
        reached = np.zeros(L.n, dtype=bool)
        reached[levels[0]] = True
        for _ in range(hops):
            if levels[-1].size == 0 or reached.all():
                break
            before = reached.copy()
            reached[L.matrix[levels[-1]].indices] = True
            levels.append(np.flatnonzero(reached & ~before))
        self.sizes: list[int] = np.cumsum([level.size for level in levels]).tolist()
        self.sizes += [self.sizes[-1]] * (hops + 1 - len(self.sizes))
        self._order = np.concatenate(levels)
        self._natural = bool(levels[0].size == L.n and np.all(np.diff(self._order) == 1))
        self.order = torch.from_numpy(self._order).to(nodes.device)
        self._steps: dict[tuple[int, int], SparseMatrix] = {}

    def nodes(self, k: int) -> Tensor:
        """The nodes of T_k, the nearest first."""
        return self.order[: self.sizes[k]]

    def places(self, nodes: Tensor) -> Tensor:
        """The index in `order` of each of these nodes, which lie within the largest distance."""
        place = torch.empty(self.L.n, dtype=torch.int64, device=nodes.device)
        place[self.order] = torch.arange(len(self.order), device=nodes.device)
        return place[nodes]

    def nnz(self, k: int) -> int:
        """Number of entries of L[T_k, T_{k+1}]."""
        return int(self._starts[self.sizes[k]])

    def step(self, k: int) -> SparseMatrix:
        """The matrix L[T_k, T_{k+1}], which maps rows of T_{k+1} to rows of T_k."""
        rows, columns = self.sizes[k], self.sizes[k + 1]
        if (rows, columns) not in self._steps:
            # If a step reaches no new node, rows and columns are the same nodes.
            symmetric = self.L.symmetric and rows == columns
            self._steps[rows, columns] = self._whole.corner(rows, columns, symmetric=symmetric)
        return self._steps[rows, columns]

    def release(self) -> None:
        """Give the memory of all steps back; they are made again if they are needed."""
        self._steps.clear()
        self.__dict__.pop("_whole", None)

    @property
    def _inner(self) -> npt.NDArray[np.int64]:
        """All nodes but the farthest."""
        return self._order[: self.sizes[-2] if len(self.sizes) > 1 else 0]

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        """Number of entries of L in the rows of the first 0, 1, 2 … nodes."""
        lengths = np.diff(self.L.matrix.indptr)[self._inner]
        return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    @cached_property
    def _whole(self) -> SparseMatrix:
        """The rows of all nodes but the farthest, with rows and columns in the new order."""
        if self._natural:
            return self.L.tensor(self.dtype, self.device)
        L = self.L.matrix
        values = L.data.astype(torch.empty(0, dtype=self.dtype).numpy().dtype, copy=False)
        rows = sp.csr_array((values, L.indices, L.indptr), shape=L.shape)[self._inner]
        place = np.full(self.L.n, -1, dtype=rows.indices.dtype)
        place[self._order] = np.arange(self._order.size)
        parts = (rows.data, place[rows.indices], rows.indptr)
        matrix = sp.csr_array(parts, shape=(self._inner.size, self._order.size))
        matrix.sort_indices()
        return SparseMatrix.from_scipy(matrix, dtype=self.dtype, device=self.device)


class FeatureRows:
    """The rows of X that belong to `nodes`, in their order; a product takes the first few."""

    def __init__(self, x: NodeFeatures, nodes: Tensor) -> None:
        self._all, self._nodes, self.width = x, nodes, x.shape[1]
        self._first: dict[int, SparseMatrix] = {}

    @cached_property
    def x(self) -> NodeFeatures:
        """The rows in the order of the nodes."""
        x, nodes = self._all, self._nodes
        if torch.equal(nodes, torch.arange(x.shape[0], device=nodes.device)):
            return x
        return x.rows(nodes) if isinstance(x, SparseMatrix) else x[nodes]

    def release(self) -> None:
        """Give the memory of the rows back; they are made again if they are needed."""
        self._first.clear()
        self.__dict__.pop("x", None)

    def _rows(self, rows: int) -> SparseMatrix:
        assert isinstance(self.x, SparseMatrix)
        if rows == self.x.shape[0]:
            return self.x
        if rows not in self._first:
            self._first[rows] = self.x.corner(rows, self.width)
        return self._first[rows]

    def product(self, rows: int, weight: Tensor) -> Tensor:
        """Compute the product X[:rows] W."""
        if isinstance(self.x, Tensor):
            return self.x[:rows] @ weight
        return self._rows(rows).product(weight)

    def transposed(self, y: Tensor) -> Tensor:
        """Compute X[:rows]ᵀ Y, with as many rows as Y has."""
        if isinstance(self.x, Tensor):
            return self.x[: len(y)].T @ y
        return self._rows(len(y)).T.product(y)

    def dense(self) -> Tensor:
        """All rows as a dense tensor."""
        return self.x if isinstance(self.x, Tensor) else self.x.to_dense()

    def cost(self, rows: int, columns: int) -> Cost:
        """Cost of a product with the first rows, or with their transpose."""
        x = self._all if isinstance(self._all, Tensor) else self._rows(rows)
        return feature_product_cost(x, rows, columns)


def feature_product_cost(x: NodeFeatures, rows: int, columns: int) -> Cost:
    """Cost of the product of that many rows of features with a matrix of that many columns."""
    if isinstance(x, Tensor):
        return gemm_cost(rows, x.shape[1], columns)
    return spmm_cost(x.nnz, rows, columns)
