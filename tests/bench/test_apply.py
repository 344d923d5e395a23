"""`kryograph.bench.apply`: all ways compute one thing, and the table says how fast."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kryograph.bench import apply as bench
from kryograph.bench.spmm import random_operator
from kryograph.cli.bench import app


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that takes no time."""
    monkeypatch.setattr(bench, "QUICK_NODES", 200)
    monkeypatch.setattr(bench, "APPLY_COLUMNS", 3)


def test_all_ways_compute_the_exponential() -> None:
    matrix, x = random_operator(60), np.random.default_rng(0).standard_normal((60, 2))
    values, vectors = np.linalg.eigh(matrix.toarray())
    expected = vectors @ (np.exp(values)[:, None] * (vectors.T @ x))
    works = bench.ways(matrix, x)
    assert {bench.OURS, bench.THEIRS, "power series"} <= set(works)
    for name, work in works.items():
        value, steps = work()
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-7, err_msg=name)
        assert steps is None or 5 <= steps <= 15


def test_a_row_by_its_own_numbers() -> None:
    told: list[str] = []
    found = bench.measure_apply(quick=True, on_case=told.append)
    assert told[0] == "200 nodes, 3 columns"
    assert (found["nodes"], found["columns"]) == (200, 3)
    rows = {row["way"]: row for row in found["ways"]}
    theirs = rows[bench.THEIRS]["seconds"]
    for row in rows.values():
        assert row["error"] < 2 * bench.TOLERANCE
        assert row["speedup"] == pytest.approx(theirs / row["seconds"])
    assert rows[bench.THEIRS]["error"] < 1e-12
    assert rows[bench.THEIRS]["speedup"] == 1


def test_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, ["apply", "--quick"])
    assert result.exit_code == 0, result.output
    assert "lanczos, classical" in result.stdout
    answer = CliRunner().invoke(app, ["apply", "--quick", "--json"])
    assert {row["way"] for row in json.loads(answer.stdout)["ways"]} >= {bench.OURS, bench.THEIRS}
