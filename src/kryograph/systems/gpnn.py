"""GPNN: gated states and messages inside clusters, then across the edges between clusters.

h ← GRU(m + L_cut m, h), m = L_in h W, logits = h W_out, where h starts as X W_in; L_in and L_cut
are the entries of the operator inside clusters and between them.

Clusters grow from the nodes with the most neighbours, ring by ring. As far as the edges decide it,
the result does not depend on the order of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from torch import Tensor

from kryograph.graph import Graph
from kryograph.nn.gated import Gated
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.ggnn import CHOSEN, GatedSettings, GatedSystem
from kryograph.systems.settings import SearchRange, inherited, setting

LONGEST_WALK = 5
"""Walks up to this length are counted to rank nodes with equally many neighbours."""


def hubs(adjacency: sp.csr_array, count: int) -> npt.NDArray[np.int64]:
    """Find the nodes with the most neighbours; ties are broken by walks of length 2, 3, ….

    >>> from kryograph.data import toy
    >>> hubs(toy.star(5).adjacency, 1).tolist()
    [0]
    """
    edges = (adjacency != 0).astype(np.float64)
    walks = [np.ones(edges.shape[0])]
    for _ in range(LONGEST_WALK):
        walks.append(edges @ walks[-1])
    return np.lexsort([-counts for counts in reversed(walks)])[:count]


def flood_fill(adjacency: sp.csr_array, seeds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Assign every node to the cluster of the nearest seed; -1 if it can reach no seed.

    A node that several clusters reach at the same time goes to the one with more edges to it, then
    to the earlier one.
    """
    edges = (adjacency != 0).astype(np.float64)
    cluster = np.full(edges.shape[0], -1)
    cluster[seeds] = np.arange(len(seeds))
    while True:
        assigned = np.flatnonzero(cluster >= 0)
        members = sp.csr_array(
            (np.ones(assigned.size), (assigned, cluster[assigned])),
            shape=(len(cluster), len(seeds)),
        )
        edges_to_clusters = (edges @ members).toarray()
        new = (cluster < 0) & (edges_to_clusters.max(axis=1) > 0)
        if not new.any():
            return cluster
        cluster[new] = edges_to_clusters[new].argmax(axis=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Partitioned(Operator):
    """An operator in two parts: `inside` clusters, with the diagonal, and `across` them."""

    inside: Operator
    across: Operator


def partitioned(L: Operator, clusters: int, *, means: bool = False) -> Partitioned:
    """Divide the entries of an operator by a partition of the nodes into clusters.

    With `means` the rows of each part are scaled to sum to one, so that a node with few edges in a
    part weighs them as much as one with many. Otherwise the parts sum to L.
    """
    off_diagonal = sp.csr_array(L.matrix - sp.diags_array(L.matrix.diagonal()))
    off_diagonal.eliminate_zeros()
    cluster = flood_fill(off_diagonal, hubs(off_diagonal, clusters))
    entries = L.matrix.tocoo()
    same = cluster[entries.row] == cluster[entries.col]

    def part(name: str, kept: npt.NDArray[np.bool_]) -> Operator:
        rows, columns, values = entries.row[kept], entries.col[kept], entries.data[kept]
        if means:
            values = values / np.bincount(rows, values, minlength=L.n)[rows]
        matrix = sp.csr_array((values, (rows, columns)), L.matrix.shape)
        return Operator(f"{L.name} {name}", matrix, L.symmetric and not means)

    inside, across = part("inside", same), part("across", ~same)
    return Partitioned(L.name, L.matrix, L.symmetric, inside=inside, across=across)


class Partition(Gated):
    """A gated network that sends what clusters gathered across the edges between them.

    In each step a node receives the messages of its own cluster, and what nodes beyond the cut have
    just received. With a single cluster this is the gated network itself. `clusters` and `means`
    are those of `partitioned`, other arguments those of `Gated`.
    """

    def __init__(
        self, *arguments: Any, clusters: int = 10, means: bool = False, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.clusters, self.means = clusters, means

    def diffusions(self, L: Operator) -> Sequence[Operator]:
        """Operators inside clusters and between them; an operator in parts is not divided again."""
        if not isinstance(L, Partitioned):
            L = partitioned(L, self.clusters, means=self.means)
        return [L.inside, L.across]

    def step(self, h: Tensor, diffusions: Sequence[Operator]) -> Tensor:
        inside, across = diffusions
        gathered = self.message(h, inside)
        return self.updated(h, gathered + across @ gathered)


@dataclass(frozen=True)
class GPNNSettings(GatedSettings):
    """Settings of GPNN, beside those of gated networks."""

    layers: int = inherited(
        GatedSettings, "layers", 2, f"number of passes (the authors: 3 to 5); {CHOSEN}"
    )
    lr: float = inherited(GatedSettings, "lr", 0.01)
    clusters: int = setting(
        10,
        "number of clusters (the authors: 5 to 20)",
        low=1,
        below=100_000,
        search=SearchRange(2, 50),
    )
    means: bool = setting(
        False,
        "rows of each part of L scaled to means (the authors: averages), or the parts as they are",
        search=(True, False),
    )


@register(
    "gpnn",
    summary="Gated states that travel inside clusters of the graph and across their borders.",
    paper="Liao et al.: Graph Partition Neural Networks. ICLR workshop 2018",
    equation="h ← GRU(m + L_cut m, h), m = L_in h W, L = L_in + L_cut; logits = h W_out",
    settings=GPNNSettings,
)
class GPNNSystem(GatedSystem):
    """Graph partition network with linear messages and clusters by flood fill."""

    network_type = Partition

    def gated_options(self) -> dict[str, Any]:
        return super().gated_options() | self.options("clusters", "means")

    def diffusion(self, graph: Graph) -> Operator:
        return partitioned(super().diffusion(graph), **self.options("clusters", "means"))
