from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.tables.examples import (
    block,
    pairs,
    read,
)

NUMBERED = "id,x\n1,5\n2,6\n3,7\n"


@pytest.mark.parametrize(
    ("edges", "nodes", "expected"),
    [
        # Without a header: the first row is data where it can be.
        ("1,2\n2,3\n", NUMBERED, [("1", "2"), ("2", "3")]),
        ("1,2\n2,3\n", None, [("1", "2"), ("2", "3")]),
        ("a,b\nb,c\n", None, [("a", "b"), ("b", "c")]),
        ("from,b\nb,c\n", None, [("b", "c"), ("b", "from")]),
        # With one: well-known names, words above numbers, or ids that nobody has.
        ("from,to\n1,2\n", NUMBERED, [("1", "2")]),
        ("Paper_1,Paper_2\n1,2\n", None, [("1", "2")]),
        ("citing,cited\na,b\n", None, [("a", "b")]),
        ("who,whom\na,b\n", "id,x\na,1\nb,2\n", [("a", "b")]),
        ("a,b,times\nu,v,3\nv,w,4\n", None, [("u", "v"), ("v", "w")]),
        # Columns by name, wherever they stand; a data frame's index is none.
        ("year,target,source\n5,2,1\n5,3,1\n", NUMBERED, [("1", "2"), ("1", "3")]),
        (",source,target\n0,1,2\n1,2,3\n", NUMBERED, [("1", "2"), ("2", "3")]),
        (",a,b\n0,1,2\n1,2,3\n", None, [("1", "2"), ("2", "3")]),
        # Lists of edges.
        ("# FromNodeId ToNodeId\n1\t2\n2\t3\n", None, [("1", "2"), ("2", "3")]),
        ("1 2\n2  3\n", NUMBERED, [("1", "2"), ("2", "3")]),
        ("a b {'weight': 3.0}\n# none\nb c {'colour': 'x'}\n", None, [("a", "b"), ("b", "c")]),
        ('"a", "b"\n"b", "c"\n', None, [("a", "b"), ("b", "c")]),
        ("a,b,\nb,c,\n", None, [("a", "b"), ("b", "c")]),
        # Without a header in the node table.
        ("1,2\n2,3\n", "1,5\n2,6\n3,7\n", [("1", "2"), ("2", "3")]),
        ("a,b\nb,c\n", "a,red\nb,red\nc,blue\n", [("a", "b"), ("b", "c")]),
        ("user,friend\nu,v\n", "user,city\nu,Ulm\nv,Bonn\n", [("u", "v")]),
        # The ids are where the edges' ends are found.
        ("a,b\n", "number,title,x\n1,a,5\n2,b,6\n", [("a", "b")]),
        ("a,b\n", "id,key,x\n1,a,5\n2,b,6\n", [("a", "b")]),
        ("a,b\n", ",name,0,1\n0,a,5,6\n1,b,6,7\n", [("a", "b")]),
    ],
)
def test_headers_and_columns_are_recognised(
    tmp_path: Path, edges: str, nodes: str | None, expected: list[tuple[str, str]]
) -> None:
    assert pairs(read(tmp_path, edges, nodes)) == expected


def test_an_edge_that_could_be_a_header_is_one_only_if_it_cannot_be_data(tmp_path: Path) -> None:
    nodes = "id,x\nsource,1\ntarget,2\n"
    assert pairs(read(tmp_path, "source,target\ntarget,source\n", nodes)) == [("source", "target")]
    assert read(tmp_path, "source,target\ntarget,source\n", nodes).graph.cleaning.one_way == 0
    guessed = read(tmp_path, "who,whom\na,b\n", "id,x\na,1\nb,2\n")
    assert any("('who', 'whom') was taken as its header" in note for note in guessed.notes)


@pytest.mark.parametrize(
    ("edges", "weight"),
    [
        ("source,target,weight\na,b,3\n", 3),
        ("source,target,year,Weight\na,b,1999,3\n", 3),
        ("a,b,2.5\nb,c,1\n", 2.5),
        ("source,target,kind\na,b,likes\n", 1),
        ("source,target\na,b\n", 1),
        ("a b 4\nb c 5\n", 4),
        ("from;to;weight\na;b;1,5\n", 1.5),
        ("a b {'weight': 3.0}\nb c {}\n", 3),
        ("a b {'weight': 3, 'x': (1, 2)}\n", 3),
    ],
)
def test_weights(tmp_path: Path, edges: str, weight: float) -> None:
    tables = read(tmp_path, edges, None)
    assert tables.graph.adjacency[0, 1] == weight
    uses = {line.use for line in tables.plan.lines}
    assert ("weight" in uses) == (weight != 1)


def test_a_column_that_is_no_weight_can_be_ignored(tmp_path: Path) -> None:
    tables = read(tmp_path, "source,target,year\na,b,1999\n", None, ignore=["year"])
    assert tables.graph.adjacency[0, 1] == 1


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    tables = read(tmp_path, "2,3\n3,4\n", "2,5,x\n3,6,\n4,3,y\n", label="3")
    assert tables.graph.names == ("2", "3", "4")
    assert tables.classes == ("x", "y")
    assert block(tables.columns, "numbers")["names"] == ["2"]


def test_a_counting_column_without_a_name_is_no_feature(tmp_path: Path) -> None:
    tables = read(tmp_path, None, ",id,x\n0,a,5\n1,b,7\n")
    assert block(tables.columns, "numbers")["names"] == ["x"]
    assert tables.columns.unused == ("column 1",)


def test_a_second_column_of_ids_is_no_feature(tmp_path: Path) -> None:
    nodes = "id,key,x\n1,a,5\n2,b,6\n"
    tables = read(tmp_path, "a,b\n", nodes)
    assert tables.graph.names == ("a", "b")
    assert tables.columns.used == ("x",)
    assert "nodes.csv  id -> not used (it only names the rows)" in str(tables.plan)
    again = read(tmp_path, "a,b\n", nodes, columns=tables.columns)
    assert again.graph.fingerprint == tables.graph.fingerprint
    repeated = read(tmp_path, "a,b\n", "key,name,x\na,Kim,5\nb,Kim,6\nc,Lee,7\n")
    assert repeated.columns.used == ("x", "name")
