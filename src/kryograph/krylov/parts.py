"""Parts: the components of a graph, and sums over each of them by constant sparse products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Parts:
    """Sets of nodes that no entry of a matrix connects, in the order of their size.

    Attributes:
        indicator: P × N; row p has ones at the nodes of part p.
        order: All nodes, part by part.
        place: Where each node is in that order.
        groups: How many parts there are of each size, and the size.

    >>> two = Parts.of(sp.csr_array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> two.groups, two.order.tolist()
    (((1, 1), (1, 2)), [1, 0, 2])
    """

    indicator: SparseMatrix
    order: Tensor
    place: Tensor
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device | str = "cpu") -> Parts:
        """The components of a matrix."""
        n = matrix.shape[0]
        count, found = sp.csgraph.connected_components(matrix, directed=False)
        sizes = np.bincount(found, minlength=count)
        # Parts of one size lie side by side, so that they are a batch without padding.
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(sizes, kind="stable")] = np.arange(count)
        part = rank[found]
        ones = sp.csr_array((np.ones(n), (part, np.arange(n))), shape=(count, n))
        size, times = np.unique(sizes, return_counts=True)
        order = np.argsort(part, kind="stable")
        return cls(
            SparseMatrix.from_scipy(ones, dtype=torch.float64, device=device),
            torch.from_numpy(order).to(device),
            torch.from_numpy(np.argsort(order)).to(device),
            tuple(zip(times.tolist(), size.tolist(), strict=True)),
        )

    @property
    def count(self) -> int:
        """P, the number of parts."""
        return self.indicator.shape[0]

    def sum(self, values: Tensor) -> Tensor:
        """The sum of the nodes' rows in each part, in float64: N × d → P × d."""
        return self.indicator @ values

    def spread(self, values: Tensor) -> Tensor:
        """Each part's row for all of its nodes: P × d → N × d."""
        return self.indicator.T @ values

    def project(self, q: Tensor, z: Tensor) -> Tensor:
        """Qᵀ Z in each part: (N × K), (N × d) → P × K × d."""
        pairs = zip(self._batches(q), self._batches(z), strict=True)
        return torch.cat([one.mT @ other for one, other in pairs])

    def expand(self, q: Tensor, c: Tensor) -> Tensor:
        """Q C in each part: (N × K), (P × K × d) → N × d."""
        counts = [count for count, _ in self.groups]
        pairs = zip(self._batches(q), torch.split(c, counts), strict=True)
        return self._moved(torch.cat([(one @ other).flatten(0, 1) for one, other in pairs]), False)

    def _batches(self, x: Tensor) -> list[Tensor]:
        lengths = [count * size for count, size in self.groups]
        pieces = torch.split(self._moved(x, True), lengths)
        shapes = zip(pieces, self.groups, strict=True)
        return [piece.view(count, size, -1) for piece, (count, size) in shapes]

    def _moved(self, x: Tensor, there: bool) -> Tensor:
        if self.count == 1:
            return x
        pair = (self.order, self.place) if there else (self.place, self.order)
        moved: Tensor = _Permuted.apply(x, *pair)  # type: ignore[no-untyped-call]
        return moved


class _Permuted(torch.autograd.Function):
    """Rows in another order. torch's own gradient would add them up one by one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(order, inverse)
        return x[order]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        back: Tensor = _Permuted.apply(gradient, inverse, order)  # type: ignore[no-untyped-call]
        return back, None, None
