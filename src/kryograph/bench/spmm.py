"""The sparse product against those of other libraries.

These are torch, SciPy and PyTorch Geometric. The speed is also compared with the machine's copy
rate. On random graphs the neighbours of a node lie anywhere in memory, which is the hardest case
for a cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch_geometric.utils as pyg
from torch import Tensor

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.engine import cost
from kryograph.engine.machine import measure_rates
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.threads import on_free_cores

SPMM_NODES, QUICK_SPMM_NODES = (20_000, 200_000), (20_000,)
WIDTHS, QUICK_WIDTHS = (8, 64, 256), (8, 64)
MEAN_DEGREE = 10
OURS = "kryograph"
THEIRS = ("csr", "coo", "scipy", "pyg", "messages")
MOST_MESSAGES = 2**27
"""Numbers (half a GiB of them) above which a message for every edge is not measured."""


@benchmark(
    {
        "products": (
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("width", "width"),
            ColumnFormat("ours s", "kryograph_seconds", "{:.4f}".format),
            *(ColumnFormat(name, f"speedup_{name}", "{:.1f}×".format) for name in THEIRS),
            ColumnFormat("of copy rate", "copy_fraction", "{:.2f}".format),
        )
    }
)
def measure_spmm(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Seconds and speed-ups for each graph and width; with `quick`, for the smaller ones."""
    rows = []
    for n in QUICK_SPMM_NODES if quick else SPMM_NODES:
        on_case(f"{n:,} nodes")
        matrix = random_operator(n)
        for width in QUICK_WIDTHS if quick else WIDTHS:
            rows.append(compare_products(matrix, width, budget=0.5 if quick else 1.0))
    return {"products": rows}


def random_operator(n: int, seed: int = 0) -> sp.csr_array:
    """The operator `sym` of a graph whose edges join nodes drawn at random."""
    pairs = np.random.default_rng(seed).integers(0, n, (2, n * MEAN_DEGREE // 2))
    return operator(Graph.from_edges(pairs, n)).matrix


@on_free_cores()
def compare_products(matrix: sp.csr_array, width: int, *, budget: float) -> dict[str, object]:
    """Measure the product of a square matrix and a dense one with `width` columns.

    Values of a product that was left out are None. `budget` is the time for timing in seconds.
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
    """Functions that compute A X in float32, by name; the matrices are converted beforehand.

    `csr` and `coo` are torch's layouts with their usual 64-bit indices. `pyg` is the sparse product
    of PyTorch Geometric, and `messages` what its layers do with an `edge_index`.
    """
    ours = SparseMatrix.from_scipy(matrix)
    single = matrix.astype(np.float32)
    entries, dense = single.tocoo(), x.numpy()
    values = torch.from_numpy(entries.data)
    target, source = (torch.from_numpy(i.astype(np.int64)) for i in (entries.row, entries.col))
    coo = torch.sparse_coo_tensor(
        torch.stack([target, source]), values, matrix.shape, check_invariants=False
    ).coalesce()
    with warnings.catch_warnings():
        # torch announces once per process that its CSR layout is in beta.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        csr = coo.to_sparse_csr()

    def messages() -> Tensor:
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
