"""Operators that some published networks have of their own, made from those of `operators`."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from kryograph.graph import Graph
from kryograph.operators import Operator, operator

DENSE = 32
"""Up to this many nodes all eigenvalues are computed: Lanczos needs more nodes than vectors."""


def walk_laplacian(graph: Graph) -> Operator:
    """I - D^{-1} A, similar to the normalised Laplacian; zero rows for nodes on their own."""
    laplacian = operator(graph, "laplacian").matrix
    degree = laplacian.diagonal()
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    matrix = sp.csr_array(sp.diags_array(inverse) @ laplacian)
    return Operator("walk-laplacian", matrix, symmetric=False)


def neighbour_mean(graph: Graph) -> Operator:
    """D^{-1} A: the mean over a node's neighbours; zero for nodes on their own."""
    laplacian = walk_laplacian(graph).matrix
    matrix = sp.csr_array(sp.diags_array(laplacian.diagonal()) - laplacian)
    matrix.eliminate_zeros()
    return Operator("neighbour-mean", matrix, symmetric=False)


def largest_eigenvalue(L: Operator) -> float:
    """That of a symmetric operator."""
    if L.n <= DENSE:
        return float(np.linalg.eigvalsh(L.matrix.toarray())[-1])
    # A start of our own, since SciPy's is another one each time.
    start = np.random.default_rng(0).standard_normal(L.n)
    [largest] = eigsh(L.matrix, k=1, which="LA", v0=start, return_eigenvectors=False)
    return float(largest)
