"""Krylov blocks of large graphs against three other libraries.

These are SciPy, torch's CSR layout, and the transform `SIGN` of PyTorch Geometric. Graphs are
random with sixteen neighbours per node, features dense in float32. SciPy and torch get the matrix
ready; `SIGN` normalises the edges itself and is compared with kryograph including its operator.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import SIGN, AddSelfLoops, Compose

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.engine import cost
from kryograph.engine.machine import measure_rates
from kryograph.graph import Graph
from kryograph.nn import krylov_blocks
from kryograph.operators import operator
from kryograph.threads import on_free_cores

BLOCK_NODES, QUICK_BLOCK_NODES = (100_000, 1_000_000), (20_000,)
BLOCK_ORDER, BLOCK_COLUMNS, BLOCK_DEGREE = 12, 64, 16
OTHERS = ("scipy", "csr", "sign")


@benchmark(
    {
        "graphs": (
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("ours s", "blocks_seconds", "{:.2f}".format),
            ColumnFormat("with operator s", "operator_seconds", "{:.2f}".format),
            *(ColumnFormat(name, f"speedup_{name}", "{:.1f}×".format) for name in OTHERS),
            ColumnFormat("of copy rate", "copy_fraction", "{:.2f}".format),
            ColumnFormat("difference", "difference", "{:.0e}".format),
        )
    }
)
@on_free_cores()
def measure_blocks(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """A row for each graph, or for a small one."""
    rows = []
    for n in QUICK_BLOCK_NODES if quick else BLOCK_NODES:
        on_case(f"{n:,} nodes")
        rows.append(compare_blocks(n))
    return {"graphs": rows, "order": BLOCK_ORDER, "columns": BLOCK_COLUMNS}


def compare_blocks(n: int) -> dict[str, Any]:
    """Seconds of each way for a graph with n nodes; the ways take turns."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, BLOCK_COLUMNS), dtype=np.float32)
    pairs = rng.integers(0, n, (2, n * BLOCK_DEGREE // 2))
    works = block_ways(Graph.from_edges(pairs, n, features=x))
    ours, exact = works["blocks"](), works["scipy"]()
    difference = (ours - exact).abs().max() / exact.abs().max()
    times = interleaved(works, at_least=1, budget=0)
    entries = operator(Graph.from_edges(pairs, n)).matrix.nnz
    moved = cost.spmm_cost(entries, n, BLOCK_COLUMNS).kernels[0].bytes * (BLOCK_ORDER - 1)
    return {
        "nodes": n,
        "entries": int(entries),
        **{f"{name}_seconds": duration for name, duration in times.items()},
        "speedup_scipy": times["scipy"] / times["blocks"],
        "speedup_csr": times["csr"] / times["blocks"],
        "speedup_sign": times["sign"] / times["operator"],
        "copy_fraction": moved / times["blocks"] / measure_rates().bytes,
        "difference": difference.item(),
    }


def block_ways(graph: Graph) -> dict[str, Callable[[], Tensor]]:
    """Functions that compute all blocks and return the last one, by name."""
    L, x = operator(graph), torch.from_numpy(np.asarray(graph.features).copy())
    L.tensor(torch.float32)
    single, dense = L.matrix.astype(np.float32), x.numpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        # SciPy has checked the arrays.
        csr = torch.sparse_csr_tensor(
            torch.from_numpy(single.indptr.astype(np.int64)),
            torch.from_numpy(single.indices.astype(np.int64)),
            torch.from_numpy(single.data),
            size=single.shape,
            check_invariants=False,
        )
    entries = graph.adjacency.tocoo()
    edges = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    weights = torch.from_numpy(entries.data.astype(np.float32))

    def by_kryograph(A: Any = L) -> Tensor:
        *_, last = list(krylov_blocks(A, x, BLOCK_ORDER))
        return last

    def by_products(multiply: Callable[[Any], Any], first: Any) -> Any:
        blocks = [first]
        for _ in range(BLOCK_ORDER - 1):
            blocks.append(multiply(blocks[-1]))
        return blocks[-1]

    def by_sign() -> Tensor:
        data = Data(x=x, edge_index=edges, edge_attr=weights, edge_weight=weights)
        loops = AddSelfLoops(attr="edge_weight", fill_value=1.0)
        with warnings.catch_warnings():
            # SIGN makes a sparse tensor: torch announces that these are in beta and not checked.
            warnings.filterwarnings("ignore", message="Sparse (CS[CR] tensor|invariant)")
            last: Tensor = Compose([loops, SIGN(BLOCK_ORDER - 1)])(data)[f"x{BLOCK_ORDER - 1}"]
        return last

    return {
        "blocks": by_kryograph,
        "operator": lambda: by_kryograph(operator(graph)),
        "scipy": lambda: torch.from_numpy(by_products(lambda block: single @ block, dense)),
        "csr": lambda: by_products(lambda block: csr @ block, x),
        "sign": by_sign,
    }
