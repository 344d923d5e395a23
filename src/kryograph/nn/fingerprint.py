r"""Neural fingerprints (Duvenaud and others): sums over neighbours, weights chosen by the degree.

.. math:: h_i' = f\Big(h_i V_{d(i)} + \sum_{j \in N(i)} h_j W_{d(i)} + b_{d(i)}\Big)

where d(i) is the number of i's neighbours, or a largest one that has weights. PyTorch Geometric's
MFConv is the same function of dense features.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from kryograph.nn.functional import Matrix, glorot_
from kryograph.operators import Operator


class FingerprintConv(nn.Module):
    r"""One layer with weights by degree.

    All nodes meet the weights of all degrees, in one product, and each keeps what is its own: a few
    times the work, but features stay sparse and nothing is sorted.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        max_degree: Nodes with more neighbours share the weights of this degree.

    Shapes:
        - **input:** features (N, F) dense or sparse, the operator A + I
        - **output:** (N, out_channels)
        - **weight:** W_0, W_1, … side by side, then V_0, V_1, …
    """

    def __init__(self, in_channels: int, out_channels: int, max_degree: int) -> None:
        super().__init__()
        self.out_channels, self.max_degree = out_channels, max_degree
        degrees = max_degree + 1
        self.weight = nn.Parameter(torch.empty(in_channels, 2 * degrees * out_channels))
        self.bias = nn.Parameter(torch.empty(degrees, out_channels))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew."""
        for part in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(part, self.bias, generator)

    def forward(self, x: Matrix, L: Operator) -> Tensor:
        """The layer's output for every node."""
        neighbours, own = (x @ self.weight).chunk(2, dim=1)
        every = L @ neighbours.contiguous() - neighbours + own
        degree = np.minimum(np.diff(L.matrix.indptr) - 1, self.max_degree)
        mine = torch.from_numpy(degree.astype(np.int64)).to(every.device)
        by_degree = every.view(L.n, self.max_degree + 1, self.out_channels)
        return by_degree[torch.arange(L.n, device=mine.device), mine] + self.bias[mine]
