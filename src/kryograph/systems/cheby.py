"""Chebyshev networks: filters that are polynomials of the Laplacian."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from torch import nn

from kryograph.graph import Graph
from kryograph.nn.cheby import ChebyNet
from kryograph.operators import Operator, operator
from kryograph.systems.base import register
from kryograph.systems.network import NetworkSettings, NetworkSystem
from kryograph.systems.settings import inherited, setting

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
