r"""Chebyshev networks (Defferrard, Bresson, Vandergheynst): polynomials of a Laplacian as filters.

.. math::
    H_{l+1} = f\Big(\sum_{k=0}^{K-1} T_k(M) H_l W_{l,k} + b_l\Big), \quad
    T_0 = I, \; T_1 = M, \; T_k = 2 M T_{k-1} - T_{k-2}

M is a Laplacian, moved and scaled or not; logits come without f. The sum is taken by Clenshaw's
recurrence, from the last term to the first, so that M meets matrices as wide as the output only,
and sparse features stay sparse.

Chebyshev networks: filters that are polynomials of the Laplacian.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Diffusion, NodeFeatures, glorot_
from kryograph.nn.stack import Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting


class ChebyConv(nn.Module):
    r"""One Chebyshev layer, :math:`\sum_k T_k(M) X W_k + b`.

    Args:
        in_channels: Size F of each node's features.
        out_channels: Size of each node's output.
        order: Number K of terms: order 1 is a linear layer.
        bias: Whether to add b.

    Shapes:
        - **input:** features (N, F) dense or sparse, and M
        - **output:** (N, out_channels)
        - **weight:** W_0, W_1, … side by side, (F, K out_channels)
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        if order < 1:
            raise ValueError(f"a Chebyshev layer has 1 term or more, not {order}")
        self.in_channels, self.out_channels, self.order = in_channels, out_channels, order
        self.weight = nn.Parameter(torch.empty(in_channels, order * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights anew, each term's like a layer's of its own."""
        for term in torch.split(self.weight, self.out_channels, dim=1):
            glorot_(term, self.bias, generator)

    def forward(self, x: NodeFeatures, M: Diffusion) -> Tensor:
        """The layer's output for every node."""
        first, *rest = torch.split(x @ self.weight, self.out_channels, dim=1)
        # B_k = X W_k + 2 M B_{k+1} - B_{k+2}; the sum is X W_0 + M B_1 - B_2.
        after: Tensor | None = None
        last: Tensor | None = None
        for term in reversed(rest):
            b = term if after is None else term + 2 * (M @ after)
            last, after = after, b if last is None else b - last
        out = first if after is None else first + M @ after
        out = out if last is None else out - last
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{self.in_channels}, {self.out_channels}, order={self.order}"


class ChebyNet(Stack):
    """A stack of Chebyshev layers.

    Args:
        in_channels: Size of each node's features.
        hidden_channels: Width of every hidden layer.
        out_channels: Number of classes.
        order: Number of terms.
        layers: Number of hidden layers.
        bias: Whether layers have biases.
        options: Activation, dropout and operator, as for `Stack`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        order: int,
        layers: int = 1,
        *,
        bias: bool = True,
        **options: Any,
    ) -> None:
        conv = partial(ChebyConv, order=order, bias=bias)
        super().__init__(conv, in_channels, hidden_channels, out_channels, layers, **options)


LAPLACIANS = ("unscaled", "scaled", "two")


DENSE = 32
"""Up to this many nodes all eigenvalues are computed: Lanczos needs more nodes than vectors."""


@dataclass(frozen=True)
class ChebySettings(NetworkSettings):
    """Settings of Chebyshev networks: those of Kipf and Welling's comparison."""

    hidden: int = inherited(NetworkSettings, "hidden", 16)
    dropout: float = inherited(NetworkSettings, "dropout", 0.5, "rate, on every layer's input")
    lr: float = inherited(NetworkSettings, "lr", 0.01)
    weight_decay: float = inherited(NetworkSettings, "weight_decay", 5e-4, "L2")
    optimizer: str = inherited(NetworkSettings, "optimizer", "adam")
    decay_all: bool = setting(
        False, "L2 on all parameters (Li, Han, Wu 2018), not the first layer's alone (Kipf)"
    )
    order: int = setting(
        2,
        "number of terms T_0, T_1, …, by validation; 3 and 4 in Kipf, Welling 2017",
        low=1,
        below=1000,
        search=(2, 3, 4),
    )
    laplacian: str = setting(
        "scaled",
        "M: the Laplacian itself (unscaled: Li, Han, Wu 2018), or moved to the interval -1 to 1 "
        "by its largest eigenvalue (scaled: Kipf, Welling 2017) or by 2 (two: the original)",
        choices=LAPLACIANS,
        search=LAPLACIANS,
    )


@register(
    "cheby",
    summary="Polynomials of the Laplacian as filters, ReLU.",
    paper="Defferrard, Bresson, Vandergheynst: CNNs on Graphs with Fast Localized Spectral "
    "Filtering. NeurIPS 2016",
    equation="H_{l+1} = ReLU(Σ_k T_k(M) H_l W_{l,k} + b_l), M = 2/λ (I - D^{-1/2} A D^{-1/2}) - I",
    settings=ChebySettings,
)
class ChebySystem(NetworkSystem):
    """With the operator `rw`, the Laplacian is I - D^{-1} A, whose eigenvalues are the same."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        return ChebyNet(features, s.hidden, classes, s.order, s.layers, dropout=s.dropout)

    def diffusion(self, graph: Graph) -> Operator:
        """M."""
        normalised = operator(graph, "normalised-laplacian")
        laplacian = operator(graph, "walk-laplacian") if self.operator == "rw" else normalised
        if self.settings.laplacian == "unscaled":
            return laplacian
        largest = 2.0
        # A graph without edges has no eigenvalue but 0.
        if self.settings.laplacian == "scaled" and graph.adjacency.nnz:
            largest = largest_eigenvalue(normalised)
        moved = 2 / largest * laplacian.matrix - sp.eye_array(graph.n)
        return Operator("chebyshev", sp.csr_array(moved), laplacian.symmetric)

    def decayed(self, network: nn.Module) -> Collection[nn.Parameter] | None:
        """The first layer's weights, as in Kipf's code, or all."""
        assert isinstance(network, ChebyNet)
        return None if self.settings.decay_all else [network.convs[0].weight]  # type: ignore[list-item]


def largest_eigenvalue(L: Operator) -> float:
    """That of a symmetric operator."""
    if L.n <= DENSE:
        return float(np.linalg.eigvalsh(L.matrix.toarray())[-1])
    # A start of our own, since SciPy's is another one each time.
    start = np.random.default_rng(0).standard_normal(L.n)
    [largest] = eigsh(L.matrix, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(largest)
