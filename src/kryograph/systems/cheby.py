r"""Cheby: filters that are Chebyshev polynomials of the Laplacian.

.. math::
    H_{l+1} = f\Big(\sum_{k=0}^{K-1} T_k(M) H_l W_{l,k} + b_l\Big), \quad
    T_0 = I, \; T_1 = M, \; T_k = 2 M T_{k-1} - T_{k-2}

H_0 = X are the features, K is the number of terms, M the Laplacian, shifted and scaled or not; the
logits come without f. Clenshaw's recurrence computes the sum from the last term to the first, so
that M multiplies matrices that are as wide as the output, and sparse features stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor

from kryograph.graph import Graph
from kryograph.nn.functional import Diffusion, Layer, NodeFeatures
from kryograph.nn.network import Network, Stack
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import DecaySettings, NetworkSystem
from kryograph.systems.settings import setting


class ChebyConv(Layer):
    r"""One Chebyshev layer, :math:`\sum_k T_k(M) X W_k + b`, of `order` K.

    The weight holds W_0, W_1, … side by side, (F, K out_channels).
    """

    def __init__(
        self, in_channels: int, out_channels: int, order: int, *, bias: bool = True
    ) -> None:
        if order < 1:
            raise ValueError(f"a Chebyshev layer has 1 term or more, not {order}")
        super().__init__(in_channels, out_channels, columns=order, bias=bias)
        self.order = order

    def forward(self, x: NodeFeatures, M: Diffusion) -> Tensor:
        first, *rest = torch.split(x @ self.weight, self.out_channels, dim=1)
        # B_k = X W_k + 2 M B_{k+1} - B_{k+2}; the sum is X W_0 + M B_1 - B_2.
        after: Tensor | None = None
        last: Tensor | None = None
        for term in reversed(rest):
            b = term if after is None else term + 2 * (M @ after)
            last, after = after, b if last is None else b - last
        out = first if after is None else first + M @ after
        return self.plus_bias(out if last is None else out - last)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, order={self.order}"


LAPLACIANS = ("unscaled", "scaled", "two")

LARGEST_DENSE = 32
"""Up to this many nodes all eigenvalues are computed: Lanczos needs more nodes than vectors."""


@dataclass(frozen=True)
class ChebySettings(DecaySettings):
    """Settings of Chebyshev networks: those of Kipf and Welling's comparison."""

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
class ChebySystem(NetworkSystem[ChebySettings]):
    """A stack of Chebyshev layers.

    With the operator `rw`, the Laplacian is I - D^{-1} A, whose eigenvalues are the same.
    """

    def network(self, features: int, classes: int) -> Network:
        conv = partial(ChebyConv, order=self.settings.order)
        return Stack(conv, *self.sizes(features, classes), dropout=self.settings.dropout)

    def diffusion(self, graph: Graph) -> Operator:
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


def largest_eigenvalue(L: Operator) -> float:
    """Largest eigenvalue of a symmetric operator."""
    if L.n <= LARGEST_DENSE:
        return float(np.linalg.eigvalsh(L.matrix.toarray())[-1])
    # A fixed start vector, because SciPy draws another one in every call.
    start = np.random.default_rng(0).standard_normal(L.n)
    [largest] = eigsh(L.matrix, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(largest)
