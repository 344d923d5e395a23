from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.data.tables import read_tables
from kryograph.data.tables.labels import Labels, read_labels
from kryograph.data.tables.node_labels import NodeLabels, same_cells
from kryograph.data.tables.options import TableOptions
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import sheet

EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}
NODES = {"id": ["a", "b", "c", "d"], "x": [1.0, 2.0, 3.0, 5.0]}
JOURNAL = {"id": ["a", "b", "a"], "label": ["p", "q", "q"], "by": ["ann", "ann", "bob"]}


def test_labels_of_their_own() -> None:
    tables = read_tables(EDGES, NODES, JOURNAL)
    assert tables.classes == ("q",)
    assert tables.labels.tolist() == [0, 0, UNKNOWN, UNKNOWN]
    assert tables.label_source == "column 'label' of labels"
    assert tables.columns.label == "label"
    assert str(tables.plan).splitlines()[-3:] == [
        "labels  id -> id",
        "labels  label -> label (q 2, unknown 2)",
        "labels  by -> not used (only ids and labels are read here)",
    ]


def test_labels_of_their_own_stand_over_those_of_the_nodes() -> None:
    nodes = {**NODES, "topic": ["p", "p", "p", "q"]}
    labels = {"id": ["a", "d"], "topic": ["q", "p"]}
    tables = read_tables(EDGES, nodes, labels, label="topic")
    assert tables.labels.tolist() == [1, UNKNOWN, UNKNOWN, 0]
    assert tables.columns.features == ("x",)
    assert "topic -> not used (the labels are column 'topic' of labels)" in str(tables.plan)


def test_labels_without_a_table_of_nodes() -> None:
    tables = read_tables(EDGES, None, {"node": ["a", "d"], "label": ["p", "q"]})
    assert tables.labels.tolist() == [0, UNKNOWN, UNKNOWN, 1]


def test_labels_of_nodes_that_there_are_not() -> None:
    labels = {"id": ["a", "z", "b"], "label": ["p", "q", "q"]}
    with pytest.raises(UsageError, match=r"labels, row 2, column 'id': there is no node 'z' in no"):
        read_tables(EDGES, NODES, labels)
    dropped = read_tables(EDGES, NODES, labels, absent_nodes="drop")
    assert dropped.labels.tolist() == [0, 1, UNKNOWN, UNKNOWN]
    assert "1 row of labels left out: nodes has no such node." in dropped.notes
    added = read_tables(EDGES, NODES, labels, absent_nodes="add")
    assert added.graph.names == ("a", "b", "c", "d", "z")
    assert added.labels.tolist() == [0, 1, UNKNOWN, UNKNOWN, 1]


def test_a_graph_is_no_table_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"graph.npz holds a graph, not a table of labels"):
        read_tables(EDGES, NODES, path)


def test_labels_need_a_table() -> None:
    with pytest.raises(UsageError, match="must be in a table of nodes or of labels, and there is"):
        read_tables(EDGES, label="topic")


def test_a_column_that_repeats_the_labels_is_refused() -> None:
    topics = ["p", "q"] * 6 + ["", ""]
    nodes = {
        "id": [f"n{at}" for at in range(14)],
        "topic": topics,
        "copy": [*topics[:12], "p", "q"],
        "x": list(range(14)),
    }
    with pytest.raises(UsageError, match=r"column 'copy': it repeats the labels.*--ignore copy"):
        read_tables(None, nodes, label="topic")
    assert read_tables(None, nodes, label="topic", ignore=["copy"]).columns.features == ("x",)
    kept = read_tables(None, nodes, label="topic", category=["copy"])
    assert "copy = p" in kept.columns.features


def test_equal_cells_of_labelled_nodes() -> None:
    table = sheet(topic=["p", "q", ""], copy=["p", "q", "p"], other=["q", "p", "p"])
    labels = NodeLabels(read_labels(table, "topic", TableOptions()), "", "topic", table)
    assert same_cells(table, "copy", labels)
    assert not same_cells(table, "other", labels)
    assert not same_cells(table, "copy", NodeLabels(Labels(labels.labels.numbers, ()), ""))


def test_a_model_needs_no_labels() -> None:
    model = read_tables(EDGES, {**NODES, "topic": ["p", "q", "", ""]}, label="topic").columns
    ids = [f"n{at}" for at in range(60)]
    other = {"id": ids, "x": list(range(60)), "topic": [f"new {name}" for name in ids]}
    tables = read_tables(None, other, columns=model)
    assert set(tables.labels.tolist()) == {UNKNOWN}
    with pytest.raises(UsageError, match="more than 50 different values"):
        read_tables(None, other, columns=model, label="topic")
