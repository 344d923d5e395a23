from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kryograph.data.tables.faults import TableFaults
from kryograph.data.tables.matching import NodeIds
from kryograph.data.tables.opening import Session
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.parts import match_tables, whole_graph, with_nodes
from kryograph.data.tables.sheet import RawGraph
from kryograph.text import ignore_progress
from tests.data.tables.examples import sheet


def session(**flags: str) -> Session:
    return Session(TableOptions(**flags), None, False, ignore_progress)  # type: ignore[arg-type]


def test_tables_are_matched_by_ids() -> None:
    current = session()
    edges = sheet(source=["b", "b"], target=["a", "b"], amount=[1.5, 2.5])
    parts = match_tables([edges], sheet(x=[1.5, 2.5], key=["a", "b"]), current)
    assert parts is not None
    assert (parts.id, parts.nodes.names) == ("key", ("a", "b"))
    assert parts.pairs.tolist() == [[1, 1], [0, 1]]
    assert parts.edges is edges
    assert not current.faults


def test_nodes_stand_alone_where_the_edges_could_not_be_read() -> None:
    current = session()
    parts = match_tables(None, sheet(id=["a", "b"]), current)
    assert parts is not None
    assert parts.pairs.shape == (2, 0)
    assert current.notes == []
    match_tables([], sheet(id=["a", "b"]), current)
    assert current.notes == ["There are no edges: every node stands alone."]
    assert match_tables([sheet(a=["x"])], None, current) is None
    assert current.faults


def test_weights_of_a_whole_graph_are_checked() -> None:
    pairs, ids = np.array([[0, 1], [1, 2]]), ("a", "b", "c")
    graph = RawGraph(ids, pairs, np.array([0.0, 2.0]), sheet(x=["1", "2", "3"]))
    current = session()
    assert whole_graph(graph, current).pairs.tolist() == [[-1, 1], [-1, 2]]
    assert pairs.tolist() == [[0, 1], [1, 2]]
    current = session(zero_weight="error")
    whole_graph(graph, current)
    with pytest.raises(TableFaults, match=r"nodes.csv, edge 'a' – 'b': the weight is 0"):
        current.faults.raise_if_any(current.plan)


def test_nodes_are_added_with_empty_cells() -> None:
    nodes = NodeIds(pa.array(["a"]), sheet(id=["a"], x=[1.5], y=[[1.0]]), "nodes.csv")
    assert with_nodes(nodes, []) is nodes
    more = with_nodes(nodes, ["b", "c"])
    assert more.names == ("a", "b", "c")
    assert more.sheet.text("id").to_pylist() == ["a", "", ""]
    assert more.sheet.columns["y"].to_pylist() == [[1.0], None, None]
    numbers = more.sheet.numbers("x")
    assert numbers is not None
    assert numbers.missing.tolist() == [1, 2]
    again = with_nodes(more, ["d"])
    assert [again.sheet.place(row) for row in (0, 2, 3)] == ["line 2", "node 'c'", "node 'd'"]
    numbers = again.sheet.numbers("x")
    assert numbers is not None
    assert numbers.missing.tolist() == [1, 2, 3]
