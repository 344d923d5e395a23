from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kryograph.data.tables import TableFaults, TableOptions, Tables, check_for_fit, read_tables
from kryograph.data.tables.recipe import Recipe
from kryograph.errors import UsageError

EDGES = {"payer": ["a", "b", "b"], "payee": ["b", "c", "c"], "amount": [5.0, 20.0, 7.0]}
NODES = {
    "user_id": ["a", "b", "c", "d"],
    "joined": ["01/02/2024", "15/02/2024", "", "03/04/2024"],
    "city": ["Oslo", "Rome", "?", "Rome"],
    "vector": ["[1 2]", "[3 4]", "[5 6]", "[1 1]"],
    "bio": ["one two three four", "five", "", "six seven"],
    "spare": [1, 2, 3, 4],
    "topic": ["x", "y", "", "unknown"],
}
FLAGS: dict[str, Any] = {
    "label": "topic",
    "date": ["joined=day-first"],
    "text": ["bio"],
    "ignore": ["spare"],
    "missing": ["?"],
    "unknown_label": ["unknown"],
    "repeat": "max",
    "weight": "amount",
}


def fitted() -> Tables:
    return read_tables(EDGES, NODES, **FLAGS)


def test_every_column_has_a_line() -> None:
    tables = fitted()
    columns = [(line.table, line.column) for line in tables.plan.lines]
    assert columns == [
        *(("edges", name) for name in EDGES),
        *(("nodes", name) for name in NODES),
    ]
    uses = {line.column: line.use for line in tables.plan.lines}
    assert uses == {
        **{"payer": "source", "payee": "target", "amount": "weight", "user_id": "id"},
        **{"joined": "date", "city": "category", "vector": "vector", "bio": "text"},
        **{"spare": "not used", "topic": "label"},
    }
    assert tables.graph.adjacency[1, 2] == 20
    assert tables.classes == ("x", "y")


def test_the_same_tables_give_the_same_features_whatever_was_set() -> None:
    tables = fitted()
    again = read_tables(EDGES, NODES, columns=Recipe.from_json(tables.columns.to_json()))
    assert again.graph.fingerprint == tables.graph.fingerprint
    uses = [[(line.column, line.use) for line in t.plan.lines] for t in (tables, again)]
    assert uses[0] == uses[1]
    renamed = {"from": EDGES["payer"], "to": EDGES["payee"], "amount": EDGES["amount"]}
    other = read_tables(renamed, NODES, columns=tables.columns)
    assert other.graph.fingerprint == tables.graph.fingerprint
    overruled = read_tables(EDGES, NODES, columns=tables.columns, repeat="sum")
    assert overruled.graph.adjacency[1, 2] == 27


def test_a_model_needs_its_columns() -> None:
    fewer = {name: cells for name, cells in NODES.items() if name not in ("city", "spare")}
    with pytest.raises(UsageError, match="nodes lacks the column 'city', which the model was"):
        read_tables(EDGES, fewer, columns=fitted().columns)
    amounts = read_tables(EDGES, NODES, **{**FLAGS, "weight": "none"}).columns
    plain = {name: EDGES[name] for name in ("payer", "payee")}
    with pytest.raises(UsageError, match="edges lacks the column 'amount', which the model was"):
        read_tables(plain, NODES, columns=amounts)


def test_all_faults_are_raised_at_once(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("source,target,weight\na,b,-1\nb,z,2\n,a,1\n")
    nodes.write_text("id,age,born,topic\na,1,1/2/2024,x\nb,2,3/4/2024,y\nb,3,,\n")
    with pytest.raises(TableFaults) as raised:
        read_tables(edges, nodes, label="topik", ignore=["agee"])
    lines = str(raised.value).splitlines()
    assert lines[0] == "7 faults:"
    for part in (
        "nodes.csv, line 4, column 'id': the node id 'b' occurs twice, first on line 3",
        "edges.csv, line 4, column 'source': the id of a node is empty",
        "edges.csv, line 2, column 'weight': the weight -1 is not positive",
        "edges.csv, line 3, column 'target': there is no node 'z' in",
        "nodes.csv has no column 'topik' of labels: did you mean 'topic'?",
        "nodes.csv and ",
        "no column 'agee' for --ignore: did you mean 'age' or",
        "nodes.csv, line 2, column 'born': '1/2/2024' may be day-first or month-first",
    ):
        assert [line for line in lines if part in line], part
    assert "nodes.csv  age -> number" in str(raised.value.plan)


def test_a_file_that_cannot_be_read_does_not_hide_the_faults_of_another(tmp_path: Path) -> None:
    nodes = {"id": ["a", "b"], "when": ["1/2/2024", "2/3/2024"]}
    with pytest.raises(TableFaults) as raised:
        read_tables(tmp_path / "none.csv", nodes)
    assert "There is no file" in str(raised.value)
    assert "may be day-first or month-first" in str(raised.value)


def test_options_may_be_one_object() -> None:
    tables = read_tables(EDGES, NODES, options=TableOptions(**FLAGS))
    assert tables.graph.fingerprint == fitted().graph.fingerprint
    with pytest.raises(TypeError):
        read_tables(EDGES, NODES, colour="red")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["x", "y", "unknown"], "If 'unknown' means that .* add --unknown-label unknown"),
        (["x", "y", "x"], "Leave the cells of nodes empty whose label is not known"),
        (["x", "", "x"], "All labels in column 'topic' of nodes are 'x': there must be two"),
        (["", None, "NA"], "There are no labels in column 'topic' of nodes"),
    ],
)
def test_what_cannot_be_fitted(labels: list[str | None], expected: str) -> None:
    tables = read_tables(None, {"id": ["a", "b", "c"], "topic": labels}, label="topic")
    with pytest.raises(UsageError, match=expected):
        check_for_fit(tables)


def test_a_fit_needs_a_column_of_labels() -> None:
    with pytest.raises(UsageError, match=r"Which column of nodes has the labels\? Say --label"):
        check_for_fit(read_tables(None, {"id": ["a", "b"], "x": [1, 2]}))


def test_nothing_to_read() -> None:
    with pytest.raises(UsageError, match="Pass a table of edges, a table of nodes, or both"):
        read_tables(None)
