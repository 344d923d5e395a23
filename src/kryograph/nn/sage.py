r"""GraphSAGE (Hamilton, Ying, Leskovec): a node's own features beside the mean of its neighbours'.

.. math:: h_i' = f\Big(h_i V + \text{mean}_{j \in N(i)}(h_j) W + b\Big)

with f a ReLU whose result is scaled to unit length. With a root weight V it is PyTorch Geometric's
SAGEConv; LanczosNet's comparison has none, and i among its own neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kryograph.nn.functional import Diffusion, Matrix, glorot_


class SAGEConv(nn.Module):
    r"""One layer, :math:`X V + L X W + b`, where L takes a mean.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        root_weight: Whether there is a V.

    Shapes:
        - **input:** features (N, F) dense or sparse, an operator
        - **output:** (N, out_channels)
        - **weight:** W, or W and V side by side
    """

    def __init__(self, in_channels: int, out_channels: int, *, root_weight: bool = True) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(in_channels, (1 + root_weight) * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for part in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(part, self.bias, generator)

    def forward(self, x: Matrix, L: Diffusion) -> Tensor:
        """The layer's output for every node."""
        neighbours, *own = torch.split(x @ self.weight, self.out_channels, dim=1)
        out = L @ neighbours.contiguous()
        return sum(own, start=out) + self.bias


def unit_relu(z: Tensor) -> Tensor:
    """ReLU, and each row scaled to unit length; zero stays zero.

    >>> unit_relu(torch.tensor([[3.0, 4.0, -1.0], [-1.0, -2.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929, 0.0], [0.0, 0.0, 0.0]]
    """
    return nn.functional.normalize(torch.relu(z), dim=1)
