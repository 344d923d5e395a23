from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.tables import read_tables
from kryograph.data.tables.edge_tables import (
    EdgeTable,
    check_weights,
    drop_zero_weights,
    joined_tables,
    read_ends,
)
from kryograph.data.tables.faults import Faults
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError
from tests.data.tables.examples import pairs, sheet

CALLS = {"source": ["a", "a", "b"], "target": ["b", "b", "c"], "minutes": [3.0, 4.0, 5.0]}
LETTERS = {"from": ["c", "a"], "to": ["d", "b"], "weight": [2.0, 0.0], "kind": ["x", "y"]}


def edge_table(columns: dict[str, list[object]]) -> EdgeTable:
    table = read_ends(sheet(**columns), TableOptions(), None, Faults())
    assert table is not None
    return table


@pytest.mark.parametrize(
    ("flags", "weight"),
    [({}, 2), ({"repeat": "max"}, 1), ({"weight": "minutes"}, 7), ({"weight": "none"}, 2)],
)
def test_repeated_edges_count_or_add_up(flags: dict[str, str], weight: float) -> None:
    tables = read_tables(CALLS, **flags)
    assert tables.graph.adjacency[0, 1] == weight
    rule = flags.get("repeat", "sum" if flags.get("weight") == "minutes" else "count")
    assert f"1 repeated edge merged (weight: {rule})." in tables.notes


def test_edges_of_weight_zero_are_left_out_or_refused() -> None:
    tables = read_tables(LETTERS)
    assert pairs(tables) == [("c", "d")]
    assert tables.graph.names == ("c", "d", "a", "b")
    assert "1 edge of weight 0 left out; --zero-weight error refuses them." in tables.notes
    with pytest.raises(UsageError, match="row 2, column 'weight': the weight is 0; --zero-weight"):
        read_tables(LETTERS, zero_weight="error")
    with pytest.raises(UsageError, match=r"the weight -2 is not positive.*--weight none"):
        read_tables({**LETTERS, "weight": [-2.0, 1.0]})
    with pytest.raises(UsageError, match="the weight is empty; --weight none"):
        read_tables({**LETTERS, "weight": [None, 1.0]})


def test_weights_are_checked_one_by_one() -> None:
    faults = []

    def fault(row: int, what: str, more: int) -> UsageError:
        faults.append((row, more))
        return UsageError(what)

    with pytest.raises(UsageError, match="not positive"):
        check_weights(np.array([1.0, 0.0, -1.0, 1e-200]), TableOptions(), fault)
    assert faults == [(2, 1)]
    pairs = np.array([[0, 1], [1, 2]])
    notes: list[str] = []
    drop_zero_weights(np.array([0.0, 1.0]), pairs, notes)
    assert pairs.tolist() == [[-1, 1], [-1, 2]]
    drop_zero_weights(None, pairs, notes)
    assert len(notes) == 1


def test_several_tables_are_one_with_a_column_that_names_them() -> None:
    tables = read_tables([CALLS, LETTERS])
    assert tables.graph.names == ("a", "b", "c", "d")
    assert tables.graph.adjacency[0, 1] == 2  # the edge of weight 0 does not count
    assert tables.graph.adjacency[2, 3] == 2
    lines = str(tables.plan).splitlines()
    assert "edges            kind -> category (2 values, 3 empty, counted at each node)" in lines
    assert lines[-1].startswith("edges and edges  table -> not used")


def test_columns_of_several_tables_are_joined_by_name() -> None:
    first = edge_table({"source": ["a"], "target": ["b"], "x": [1], "y": ["u"]})
    second = edge_table({"source": ["c"], "target": ["d"], "x": ["2"], "z": [2.5]})
    second.sheet.path = "letters.csv"
    joined, weights = joined_tables([first, second])
    assert isinstance(joined, Sheet)
    assert weights is None
    assert joined.text("x").to_pylist() == ["1", "2"]
    assert joined.text("y").to_pylist() == ["u", ""]
    assert joined.columns["z"].to_pylist() == [None, 2.5]
    assert joined.text("table").to_pylist() == ["nodes", "letters"]
    assert str(joined.fault(1, "x", "bad")) == (
        "nodes.csv and letters.csv, line 2 of letters.csv, column 'x': bad."
    )


def test_types_of_edges_are_features_unless_that_is_off() -> None:
    edges = {**CALLS, "kind": ["x", "y", "x"], "when": ["2024-01-01"] * 2 + ["2024-02-01"]}
    tables = read_tables(edges, edge_type="kind")
    uses = {line.column: line.use for line in tables.plan.lines}
    assert uses["kind"] == "edge type"
    assert uses["when"] == "not used"
    assert {"kind = x (out)", "minutes (sum, in)"} <= set(tables.columns.features)
    off = read_tables(edges, edge_features=False)
    assert "minutes -> not used (--edge-features off)" in str(off.plan)
    assert off.columns.features == ("node a", "node b", "node c")


def test_empty_ends_are_one_fault() -> None:
    with pytest.raises(UsageError, match=r"column 'source': the id of a node is empty \(1 more"):
        read_tables({"source": ["a", None, None], "target": ["b", "c", "d"]})
