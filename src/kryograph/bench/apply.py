"""exp(L)X on 100,000 nodes by block Lanczos, against SciPy.

The graph is random with ten neighbours per node. All ways start from the same SciPy matrix and
NumPy array, and their times include all preparation. Errors are relative to the power series with
tolerance 1e-14, in the Frobenius norm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse import linalg as sparse_linalg

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.bench.spmm import random_operator
from kryograph.krylov import applied
from kryograph.krylov.inner_products import INNER_PRODUCTS

APPLY_NODES, QUICK_APPLY_NODES = 100_000, 5_000
APPLY_COLUMNS = 32
TOLERANCE, REFERENCE_TOLERANCE = 1e-8, 1e-14
BLOCK_LANCZOS, EXPM_MULTIPLY = "lanczos, classical", "expm_multiply"

Product: TypeAlias = npt.NDArray[np.float64]
Way: TypeAlias = Callable[[], tuple[Product, int | None]]
"""Function that returns exp(L)X and its number of products with L; None if that is not known."""


@benchmark(
    {
        "ways": (
            ColumnFormat("way", "way"),
            ColumnFormat("seconds", "seconds", "{:.3f}".format),
            ColumnFormat(EXPM_MULTIPLY, "speedup", "{:.1f}×".format),
            ColumnFormat("products", "steps"),
            ColumnFormat("error", "error", "{:.0e}".format),
        )
    }
)
def measure_apply(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Seconds, products with L and error of each way; with `quick`, on a small graph."""
    n = QUICK_APPLY_NODES if quick else APPLY_NODES
    on_case(f"{n:,} nodes, {APPLY_COLUMNS} columns")
    matrix = random_operator(n)
    x = np.random.default_rng(0).standard_normal((n, APPLY_COLUMNS))
    reference = applied("exp", matrix, x, tolerance=REFERENCE_TOLERANCE, method="power-series")
    works = ways(matrix, x)
    rows: list[dict[str, Any]] = []
    for name, work in works.items():
        on_case(f"{name}: error")
        value, steps = work()
        error = np.linalg.norm(value - reference.value) / np.linalg.norm(reference.value)
        rows.append({"way": name, "steps": steps, "error": float(error)})
    on_case("time, taking turns")
    times = interleaved(works, at_least=1 if quick else 3, budget=0)
    for row in rows:
        row["seconds"] = times[row["way"]]
        row["speedup"] = times[EXPM_MULTIPLY] / times[row["way"]]
    return {
        "nodes": n,
        "nnz": int(matrix.nnz),
        "columns": APPLY_COLUMNS,
        "tolerance": TOLERANCE,
        "ways": rows,
    }


def ways(matrix: sp.csr_array, x: Product) -> dict[str, Way]:
    """Functions that compute exp(L)X, by name.

    `expm_multiply` has no tolerance: its error is that of rounding. `funm_multiply_krylov` takes
    one column at a time.
    """

    def by_kryograph(**options: Any) -> tuple[Product, int]:
        result = applied("exp", matrix, x, tolerance=TOLERANCE, **options)
        return result.value, result.steps

    def by_columns() -> tuple[Product, None]:
        columns = [
            sparse_linalg.funm_multiply_krylov(
                scipy.linalg.expm, matrix, column, assume_a="her", rtol=TOLERANCE
            )
            for column in x.T
        ]
        return np.stack(columns, axis=1), None

    works: dict[str, Way] = {
        f"lanczos, {product}": partial(by_kryograph, product=product) for product in INNER_PRODUCTS
    }
    works["power series"] = partial(by_kryograph, method="power-series")
    works[EXPM_MULTIPLY] = lambda: (sparse_linalg.expm_multiply(matrix, x), None)
    if hasattr(sparse_linalg, "funm_multiply_krylov"):  # SciPy 1.15
        works["funm_multiply_krylov"] = by_columns
    return works
