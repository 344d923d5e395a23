"""Features: X in the order of some hops, sparse or dense, its first rows times a matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from kryograph.engine.cost import Cost, gemm, spmm
from kryograph.nn.functional import Matrix
from kryograph.sparse import SparseMatrix


class Features:
    """Rows of X, of which a product takes the first few.

    Args:
        x: Features of every node.
        nodes: Which rows, in which order.
    """

    def __init__(self, x: Matrix, nodes: Tensor) -> None:
        every = len(nodes) == x.shape[0] and torch.equal(
            nodes, torch.arange(len(nodes), device=nodes.device)
        )
        self.x: Matrix = x if every else x.rows(nodes) if isinstance(x, SparseMatrix) else x[nodes]
        self.width = x.shape[1]
        self._first: dict[int, SparseMatrix] = {}

    def _rows(self, rows: int) -> SparseMatrix:
        assert isinstance(self.x, SparseMatrix)
        if rows == self.x.shape[0]:
            return self.x
        if rows not in self._first:
            self._first[rows] = self.x.corner(rows, self.width)
        return self._first[rows]

    def product(self, rows: int, weight: Tensor) -> Tensor:
        """X[:rows] W."""
        if isinstance(self.x, Tensor):
            return self.x[:rows] @ weight
        return self._rows(rows).product(weight)

    def transposed(self, y: Tensor) -> Tensor:
        """X[:rows]ᵀ Y, with as many rows as Y has."""
        if isinstance(self.x, Tensor):
            return self.x[: len(y)].T @ y
        return self._rows(len(y)).T.product(y)

    def dense(self) -> Tensor:
        """All rows."""
        return self.x if isinstance(self.x, Tensor) else self.x.to_dense()

    def cost(self, rows: int, columns: int) -> Cost:
        """Of either product."""
        if isinstance(self.x, Tensor):
            return gemm(rows, self.width, columns)
        return spmm(self._rows(rows).nnz, rows, columns)
