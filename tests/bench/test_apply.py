"""`kryograph.bench.apply`: all ways compute one thing, and the result says how fast."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.bench import apply as bench
from kryograph.bench.spmm import random_operator


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that takes no time."""
    monkeypatch.setattr(bench, "QUICK_APPLY_NODES", 200)
    monkeypatch.setattr(bench, "APPLY_COLUMNS", 3)


def test_ways_compute_the_exponential() -> None:
    matrix, x = random_operator(60), np.random.default_rng(0).standard_normal((60, 2))
    values, vectors = np.linalg.eigh(matrix.toarray())
    expected = vectors @ (np.exp(values)[:, None] * (vectors.T @ x))
    works = bench.ways(matrix, x)
    assert {bench.BLOCK_LANCZOS, bench.EXPM_MULTIPLY, "power series"} <= set(works)
    for name, work in works.items():
        value, steps = work()
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-7, err_msg=name)
        assert steps is None or 5 <= steps <= 15


def test_measure_apply_gives_error_and_speedup_of_each_way() -> None:
    cases: list[str] = []
    result = bench.measure_apply(quick=True, on_case=cases.append)
    assert cases[0] == "200 nodes, 3 columns"
    assert (result["nodes"], result["columns"]) == (200, 3)
    rows = {row["way"]: row for row in result["ways"]}
    theirs = rows[bench.EXPM_MULTIPLY]["seconds"]
    for row in rows.values():
        assert row["error"] < 2 * bench.TOLERANCE
        assert row["speedup"] == pytest.approx(theirs / row["seconds"])
    assert rows[bench.EXPM_MULTIPLY]["error"] < 1e-12
    assert rows[bench.EXPM_MULTIPLY]["speedup"] == 1
