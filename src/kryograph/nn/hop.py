"""Hop: one diffusion as message passing, where PyTorch Geometric's explainers put their masks."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn.conv import MessagePassing

from kryograph.operators import EdgeOperator


class Hop(MessagePassing):  # type: ignore[misc]
    """One product L x with one message per edge; loops that L adds send no message.

    A mask therefore concerns the edges of the edge list, as in `GCNConv`.

    Args:
        width: Number of columns of x.
    """

    def __init__(self, width: int) -> None:
        super().__init__(aggr="add")
        self.in_channels = self.out_channels = width  # for explainers that learn from messages

    def forward(self, x: Tensor, L: EdgeOperator) -> Tensor:
        received: Tensor = self.propagate(L.edge_index, x=x, entries=L.values.to(x.dtype))
        return received + L.diagonal.to(x.dtype)[:, None] * x

    def message(self, x_j: Tensor, entries: Tensor) -> Tensor:
        return entries[:, None] * x_j
