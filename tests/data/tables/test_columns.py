from __future__ import annotations

import networkx as nx
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


def test_dates_and_lists_of_edges_are_not_used_whatever_they_hold() -> None:
    others = {"day": ["01/02/2024", "03/04/2024"], "list": [[1.0], [1.0, 2.0]], "when": ["", "x"]}
    tables = read_tables({**EDGES, **others}, NODES, date=["when"])
    assert str(tables.plan).splitlines()[2:5] == [
        "edges  when -> not used (date of an edge is no feature of nodes)",
        "edges  day -> not used (date of an edge is no feature of nodes)",
        "edges  list -> not used (vector of an edge is no feature of nodes)",
    ]


def test_weights_of_a_whole_graph_are_in_the_plan() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.0)])
    title = "edges (networkx Graph), edges"
    assert str(read_tables(graph).plan) == f"{title}  weight -> weight (repeated: sum)"


def test_a_weight_tells_how_repeated_edges_are_merged() -> None:
    tables = read_tables({**EDGES, "weight": [2.0, 3.0]}, NODES, repeat="mean")
    assert "weight -> weight (by its name; repeated edges: mean)" in str(tables.plan)
    named = read_tables({**EDGES, "kg": [2.0, 3.0]}, NODES, weight="kg")
    assert "kg -> weight (repeated: sum)" in str(named.plan)
