"""Graphs, random numbers and dense matrices that the tests of the layers share.

Those tests run in float64 (the fixture `double`), and so do these functions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kryograph.data import toy
from kryograph.graph import Graph

OPERATORS = ["sym", "rw"]
MIXED = toy.disjoint(toy.two_cliques(4), toy.isolated(1), toy.star(4))
"""Thirteen nodes in three components, one of them a node on its own."""
WEIGHTED = Graph.from_edges([[0, 1, 2, 0], [1, 2, 3, 3]], 6, weights=[0.5, 2.0, 1.0, 3.0])
"""A weighted ring of four nodes, and two nodes on their own."""


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def dense(graph: Graph, name: str) -> Tensor:
    """D̃^{-1/2} Ã D̃^{-1/2} or D̃^{-1} Ã, from the adjacency."""
    affinity = torch.from_numpy(graph.adjacency.toarray()) + torch.eye(graph.n)
    degree = affinity.sum(dim=1)
    if name == "rw":
        return affinity / degree[:, None]
    return affinity / torch.sqrt(degree[:, None] * degree[None, :])


def edge_index_of(graph: Graph) -> tuple[Tensor, Tensor]:
    both = graph.adjacency.tocoo()
    pairs = torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64))
    return pairs, torch.from_numpy(both.data.copy())


def directed(n: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """Weighted one-way edges, some of them repeated, without loops."""
    source = torch.randint(n, (edges,), generator=seeded(seed))
    target = (source + torch.randint(1, n, (edges,), generator=seeded(seed + 1))) % n
    return torch.stack([source, target]), torch.rand(edges, generator=seeded(seed + 2)) + 0.1


def close(found: Tensor, expected: Tensor, atol: float = 1e-13) -> bool:
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=0, atol=atol)
