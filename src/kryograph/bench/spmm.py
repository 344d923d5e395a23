"""The sparse product against other libraries' and against the machine's copy rate.

On random graphs, whose nodes' neighbours lie anywhere in memory: the hardest case for a cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
import torch_geometric.utils as pyg
from torch import Tensor

from kryograph.bench.benchmark import interleaved
from kryograph.engine import cost
from kryograph.engine.machine import measure_rates
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix

NODES, QUICK_NODES = (20_000, 200_000), (20_000,)
WIDTHS, QUICK_WIDTHS = (8, 64, 256), (8, 64)
MEAN_DEGREE = 10
OURS = "kryograph"
THEIRS = ("csr", "coo", "scipy", "pyg", "messages")
MOST_MESSAGES = 2**27
"""Numbers, half a GiB of them: beyond it, a message for every edge is not worth waiting for."""


def measure_spmm(*, quick: bool = False) -> list[dict[str, object]]:
    """One row for each graph and width: seconds, speed-ups, and how near the copy rate comes.

    Args:
        quick: The small graph and two widths only.
    """
    return [
        compare_products(matrix, width, budget=0.5 if quick else 1.0)
        for matrix in map(random_operator, QUICK_NODES if quick else NODES)
        for width in (QUICK_WIDTHS if quick else WIDTHS)
    ]


def random_operator(n: int, seed: int = 0) -> sp.csr_array:
    """The operator `sym` of a graph whose edges join any two nodes alike."""
    pairs = np.random.default_rng(seed).integers(0, n, (2, n * MEAN_DEGREE // 2))
    return operator(Graph.from_edges(pairs, n)).matrix


def compare_products(matrix: sp.csr_array, width: int, *, budget: float) -> dict[str, object]:
    """The row of one matrix and width; what was not tried is None.

    Args:
        matrix: Square.
        width: Columns of the dense factor.
        budget: Seconds for timing.
    """
    n = matrix.shape[0]
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0))
    works = products(matrix, x)
    times = interleaved(works, budget=budget)
    exact = torch.from_numpy(matrix @ x.double().numpy())
    difference = (works[OURS]() - exact).abs().max() / exact.abs().max()
    moved = cost.spmm_cost(matrix.nnz, n, width).kernels[0].bytes
    return {
        "nodes": n,
        "nnz": int(matrix.nnz),
        "width": width,
        **{f"{name}_seconds": times.get(name) for name in (OURS, *THEIRS)},
        **{
            f"speedup_{name}": times[name] / times[OURS] if name in times else None
            for name in THEIRS
        },
        "copy_fraction": moved / times[OURS] / measure_rates().bytes,
        "difference": difference.item(),
    }


def products(matrix: sp.csr_array, x: Tensor) -> dict[str, Callable[[], Tensor]]:
    """A X in float32, by us and by others, everything prepared that can be.

    `csr` and `coo` are torch's layouts with its usual 64-bit indices. `pyg` is the sparse product
    of PyTorch Geometric, and `messages` its way with an `edge_index`.
    """
    ours = SparseMatrix.from_scipy(matrix)
    single = matrix.astype(np.float32)
    both, dense = single.tocoo(), x.numpy()
    values = torch.from_numpy(both.data)
    target, source = (torch.from_numpy(i.astype(np.int64)) for i in (both.row, both.col))
    coo = torch.sparse_coo_tensor(
        torch.stack([target, source]), values, matrix.shape, check_invariants=False
    ).coalesce()
    with warnings.catch_warnings():
        # torch announces once per process that its CSR layout is in beta.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        csr = coo.to_sparse_csr()

    def messages() -> Tensor:
        # What PyTorch Geometric's layers do with an edge_index: one for every edge, then sums.
        sent = values[:, None] * x.index_select(0, source)
        sums: Tensor = pyg.scatter(sent, target, dim_size=len(x), reduce="sum")
        return sums

    works: dict[str, Callable[[], Tensor]] = {
        OURS: lambda: ours.product(x),
        "csr": lambda: csr @ x,
        "coo": lambda: coo @ x,
        "scipy": lambda: torch.from_numpy(single @ dense),
        "pyg": lambda: pyg.spmm(csr, x),
    }
    if matrix.nnz * x.shape[1] <= MOST_MESSAGES:
        works["messages"] = messages
    return works
