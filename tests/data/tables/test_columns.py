from __future__ import annotations

import pytest

from kryograph.data.tables import read_tables
from kryograph.errors import UsageError

EDGES = {"source": ["a", "b"], "target": ["b", "c"], "when": ["2024-01-01", "2024-02-01"]}
NODES = {"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0]}


def test_a_column_may_be_named_for_either_table() -> None:
    tables = read_tables(EDGES, NODES, category=["when"], ignore=["x"])
    assert str(tables.plan).splitlines() == [
        "edges  source -> source (by its name)",
        "edges  target -> target (by its name)",
        "edges  when -> category (2 values, counted at each node)",
        "nodes  id -> id (by its name)",
        "nodes  x -> not used (--ignore)",
    ]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"number": ["y"]}, "nodes and edges have no column 'y' for --number"),
        ({"edge_type": "kind"}, "no column 'kind' for --edge-type"),
        ({"date": ["wehn=day-first"]}, "no column 'wehn' for --date: did you mean 'when'"),
    ],
)
def test_columns_of_no_table_are_faults(flags: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read_tables(EDGES, NODES, **flags)


def test_a_weight_tells_how_repeated_edges_are_merged() -> None:
    tables = read_tables({**EDGES, "weight": [2.0, 3.0]}, NODES, repeat="mean")
    assert "weight -> weight (by its name; repeated edges: mean)" in str(tables.plan)
    named = read_tables({**EDGES, "kg": [2.0, 3.0]}, NODES, weight="kg")
    assert "kg -> weight (repeated: sum)" in str(named.plan)
