"""Toy graphs whose answers can be said aloud.

Each family's docstring gives the eigenvalues of its Laplacian D − A, and `laplacian_spectrum`
computes them. Every node has a feature column of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from kryograph.errors import UsageError, unknown
from kryograph.graph import Features, Graph


def isolated(n: int) -> Graph:
    """Graph of n nodes without an edge; eigenvalue 0, n times."""
    return _graph("isolated", [], n, at_least=1)


def path(n: int) -> Graph:
    """Path of n nodes; eigenvalues 2 − 2 cos(πk/n) for k = 0 … n − 1."""
    return _graph("path", [(i, i + 1) for i in range(n - 1)], n, at_least=1)


def cycle(n: int) -> Graph:
    """Cycle of n nodes; eigenvalues 2 − 2 cos(2πk/n) for k = 0 … n − 1."""
    return _graph("cycle", [(i, (i + 1) % n) for i in range(n)], n, at_least=3)


def complete(n: int) -> Graph:
    """Complete graph of n nodes; eigenvalue 0 once and n for the others."""
    return _graph("complete", _clique(0, n), n, at_least=1)


def star(n: int) -> Graph:
    """Node 0 joined to n − 1 others; eigenvalues 0, 1 (n − 2 times) and n."""
    return _graph("star", [(0, i) for i in range(1, n)], n, at_least=2)


def two_cliques(k: int) -> Graph:
    """Two complete graphs of k nodes, joined by one edge from node k − 1 to node k.

    Eigenvalues 0, k (2k − 3 times), and (k + 2 ± √((k + 2)² − 8)) / 2.
    """
    edges = [*_clique(0, k), *_clique(k, 2 * k), (k - 1, k)]
    return _graph("two_cliques", edges, 2 * k, at_least=4)


def disjoint(*graphs: Graph) -> Graph:
    """Union of graphs without edges between them; its eigenvalues are all of theirs.

    Each graph keeps its features, in columns of its own.

    >>> disjoint(path(2), cycle(3))
    Graph(5 nodes, 4 edges, 5 sparse features)
    """
    if not graphs:
        raise UsageError("A disjoint union needs at least one graph.")

    def side_by_side(matrices: list[Features]) -> sp.csr_array:
        return sp.csr_array(sp.block_diag([sp.csr_array(matrix) for matrix in matrices]))

    return Graph(
        adjacency=side_by_side([graph.adjacency for graph in graphs]),
        features=side_by_side([graph.features for graph in graphs]),
    )


def laplacian_spectrum(family: str, n: int) -> npt.NDArray[np.float64]:
    """The eigenvalues of D − A for a family of toy graphs, in increasing order.

    The argument n is that of the function of the same name.

    >>> laplacian_spectrum("star", 5)
    array([0., 1., 1., 1., 5.])
    """
    if family not in _SPECTRA:
        raise unknown("toy graph", family, _SPECTRA)
    return np.sort(np.asarray(_SPECTRA[family](n), dtype=np.float64))


def _two_cliques_spectrum(k: int) -> list[float]:
    root = np.sqrt((k + 2) ** 2 - 8)
    return [0, *[k] * (2 * k - 3), (k + 2 - root) / 2, (k + 2 + root) / 2]


_SPECTRA: Mapping[str, Callable[[int], npt.ArrayLike]] = MappingProxyType(
    {
        "isolated": lambda n: [0] * n,
        "path": lambda n: 2 - 2 * np.cos(np.pi * np.arange(n) / n),
        "cycle": lambda n: 2 - 2 * np.cos(2 * np.pi * np.arange(n) / n),
        "complete": lambda n: [0, *[n] * (n - 1)],
        "star": lambda n: [0, *[1] * (n - 2), n],
        "two_cliques": _two_cliques_spectrum,
    }
)


def _clique(start: int, stop: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(start, stop) for j in range(i + 1, stop)]


def _graph(family: str, edges: list[tuple[int, int]], n: int, at_least: int) -> Graph:
    if n < at_least:
        raise UsageError(f"The toy graph {family!r} needs {at_least} nodes or more; got {n}.")
    return Graph.from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2).T, n)
