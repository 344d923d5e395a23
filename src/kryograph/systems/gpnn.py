"""Graph partition networks: messages inside clusters, then across the edges between them.

Clusters are filled from the nodes with the most neighbours, one ring after the other. Which nodes
these are, and who takes a node that several clusters reach at once, is decided by the edges alone
as long as they decide it, not by the order of the nodes.

GPNN: gated states that change by messages inside clusters and across the cut (Liao et al.).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from torch import Tensor, nn

from kryograph.graph import Graph
from kryograph.nn.functional import Diffusion
from kryograph.nn.gated import Gated
from kryograph.operators import Operator
from kryograph.systems.base import register
from kryograph.systems.ggnn import CHOSEN, GatedSettings, GatedSystem
from kryograph.systems.settings import SearchRange, inherited, setting

WALKS = 5
"""Up to this length walks are counted to tell nodes with equally many neighbours apart."""


def hubs(adjacency: sp.csr_array, count: int) -> npt.NDArray[np.int64]:
    """The nodes with the most neighbours; of equals, those with more walks of length 2, 3, …

    >>> from kryograph.data import toy
    >>> hubs(toy.star(5).adjacency, 1).tolist()
    [0]
    """
    edges = (adjacency != 0).astype(np.float64)
    walks = [np.ones(edges.shape[0])]
    for _ in range(WALKS):
        walks.append(edges @ walks[-1])
    return np.lexsort([-each for each in reversed(walks)])[:count]


def flood_fill(adjacency: sp.csr_array, seeds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The cluster of every node: that of the nearest seed; -1 if none can be reached.

    A node that several clusters reach at the same time goes to the one with more edges to it, then
    to the earlier one.
    """
    edges = (adjacency != 0).astype(np.float64)
    cluster = np.full(edges.shape[0], -1)
    cluster[seeds] = np.arange(len(seeds))
    while True:
        taken = np.flatnonzero(cluster >= 0)
        members = sp.csr_array(
            (np.ones(taken.size), (taken, cluster[taken])), shape=(len(cluster), len(seeds))
        )
        reach = (edges @ members).toarray()
        new = (cluster < 0) & (reach.max(axis=1) > 0)
        if not new.any():
            return cluster
        cluster[new] = reach[new].argmax(axis=1)


@dataclass(frozen=True, eq=False)
class Partitioned(Operator):
    """An operator in two parts: `inside` clusters, with the diagonal, and `across` them."""

    inside: Operator | None = None
    across: Operator | None = None


def partitioned(L: Operator, clusters: int, *, means: bool = False) -> Partitioned:
    """The operator with its entries told apart by that many clusters.

    Args:
        L: The whole.
        clusters: How many.
        means: Whether each part's rows are scaled to sum to one, so that a node with few edges in a
            part hears of them as loudly as one with many; if not, the parts sum to L.
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
    """A gated network whose messages go further: what clusters gathered is sent across the cut.

    In each pass a node receives what others in its cluster send, and what those beyond the cut have
    just received. With a single cluster this is the gated network itself.

    Args:
        clusters: How many.
        means: As for `partitioned`.
        arguments: As for `Gated`; `steps` is the number of passes.
        options: As for `Gated`.
    """

    def __init__(
        self, *arguments: Any, clusters: int = 10, means: bool = False, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.clusters, self.means = clusters, means

    def parts(self, L: Diffusion) -> Sequence[Operator]:
        """The operator inside clusters, and between them; one that has these already keeps them."""
        assert isinstance(L, Operator)
        if not isinstance(L, Partitioned):
            L = partitioned(L, self.clusters, means=self.means)
        assert L.inside is not None
        assert L.across is not None
        return [L.inside, L.across]

    def step(self, h: Tensor, parts: Sequence[Diffusion]) -> Tensor:
        """The states after a pass."""
        inside, across = parts
        gathered = self.message(h, inside)
        return self.changed(h, gathered + across @ gathered)


@dataclass(frozen=True)
class GPNNSettings(GatedSettings):
    """Settings of GPNN."""

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
    """Linear messages; clusters by flood fill."""

    def network(self, features: int, classes: int) -> nn.Module:
        """The network of the settings."""
        s = self.settings
        size = (features, s.hidden, classes, s.layers)
        return Partition(*size, clusters=s.clusters, means=s.means, **self.options())

    def diffusion(self, graph: Graph) -> Operator:
        """L in two parts: inside clusters, and between them."""
        return partitioned(
            super().diffusion(graph), self.settings.clusters, means=self.settings.means
        )
