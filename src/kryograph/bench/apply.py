"""exp(L)X by block Lanczos against SciPy's two ways, in time and in error.

On a random graph with ten neighbours per node, from the same SciPy matrix and NumPy array, with
everything that has to be prepared inside the time. Errors are relative, in the Frobenius norm,
against the power series to 1e-14.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse import linalg as sparse_linalg

from kryograph.bench.benchmark import interleaved
from kryograph.bench.spmm import random_operator
from kryograph.krylov import applied
from kryograph.krylov.inner_products import INNER_PRODUCTS

NODES, QUICK_NODES = 100_000, 5_000
APPLY_COLUMNS = 32
TOLERANCE, TIGHTER = 1e-8, 1e-14
OURS, THEIRS = "lanczos, classical", "expm_multiply"


def measure_apply(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """A row for each way: seconds, products with L, error, and how it compares in time.

    Args:
        quick: A small graph.
        on_case: Told what is done next.
    """
    n = QUICK_NODES if quick else NODES
    on_case(f"{n:,} nodes, {APPLY_COLUMNS} columns")
    matrix = random_operator(n)
    x = np.random.default_rng(0).standard_normal((n, APPLY_COLUMNS))
    reference = applied("exp", matrix, x, tolerance=TIGHTER, method="power-series")
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
        row["speedup"] = times[THEIRS] / times[row["way"]]
    return {
        "nodes": n,
        "nnz": int(matrix.nnz),
        "columns": APPLY_COLUMNS,
        "tolerance": TOLERANCE,
        "ways": rows,
    }


def ways(
    matrix: sp.csr_array, x: npt.NDArray[np.float64]
) -> dict[str, Callable[[], tuple[npt.NDArray[np.float64], int | None]]]:
    """exp(L)X in several ways, each with the number of its products with L, if it tells.

    `expm_multiply` always goes to the last digit. `funm_multiply_krylov` takes one column at a
    time.
    """

    def lanczos(product: str) -> tuple[npt.NDArray[np.float64], int]:
        found = applied("exp", matrix, x, tolerance=TOLERANCE, product=product)
        return found.value, found.steps

    def series() -> tuple[npt.NDArray[np.float64], int]:
        found = applied("exp", matrix, x, tolerance=TOLERANCE, method="power-series")
        return found.value, found.steps

    def expm_multiply() -> tuple[npt.NDArray[np.float64], None]:
        return sparse_linalg.expm_multiply(matrix, x), None

    def funm_multiply_krylov() -> tuple[npt.NDArray[np.float64], None]:
        columns = [
            sparse_linalg.funm_multiply_krylov(
                scipy.linalg.expm, matrix, column, assume_a="her", rtol=TOLERANCE
            )
            for column in x.T
        ]
        return np.stack(columns, axis=1), None

    works: dict[str, Callable[[], tuple[npt.NDArray[np.float64], int | None]]] = {
        f"lanczos, {product}": lambda product=product: lanczos(product)  # type: ignore[misc]
        for product in INNER_PRODUCTS
    }
    works |= {"power series": series, THEIRS: expm_multiply}
    if hasattr(sparse_linalg, "funm_multiply_krylov"):  # SciPy 1.15
        works["funm_multiply_krylov"] = funm_multiply_krylov
    return works
