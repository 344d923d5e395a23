"""`kryograph.bench.tables`: the tables that are written, and what is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.bench.tables import measure_tables, parse_by_arrow, timed, write_large_tables
from kryograph.data.tables import read_tables


def test_the_tables_have_columns_of_all_kinds(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    write_large_tables(edges, nodes, 3000, 600)
    tables = read_tables(edges, nodes, label="topic")
    assert tables.graph.n == 600
    assert len([line for line in tables.plan.lines if line.table == "nodes.csv"]) == 20
    uses = {line.use for line in tables.plan.lines if line.table == "nodes.csv"}
    assert uses == {"id", "number", "category", "date", "boolean", "text", "not used", "label"}
    seconds, memory = timed(parse_by_arrow, edges, nodes)
    assert seconds > 0
    assert memory >= 0


@pytest.mark.slow
def test_both_ways_are_measured() -> None:
    cases: list[str] = []
    result = measure_tables(quick=True, on_case=cases.append)
    assert [way["way"] for way in result["ways"]] == ["pyarrow", "read_tables"]
    assert cases[1:] == ["pyarrow", "read_tables"]
