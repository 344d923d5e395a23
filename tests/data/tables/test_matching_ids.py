"""Ids that nearly match, nodes without a row, and ids with leading zeros."""

from __future__ import annotations

import re

import pytest

from kryograph.data.tables import read_tables
from kryograph.errors import UsageError
from tests.data.tables.examples import pairs

EDGES = {"source": ["7", "8"], "target": ["8", "9"]}


@pytest.mark.parametrize(
    ("ids", "edges", "expected"),
    [
        (
            ["007", "008", "009"],
            EDGES,
            r"^All 2 edges of edges miss their nodes in nodes\. Row 1, column 'source', names "
            r"'7'\. Ids in nodes are padded with zeros \('007'\), in edges not \('7'\): add "
            r"--id-pad strip\.$",
        ),
        (
            ["7", "8", "9"],
            {"source": ["07"], "target": ["08"]},
            r"^The only edge of edges misses its nodes in nodes\. .*Ids in edges are padded with "
            r"zeros \('07'\), in nodes not \('7'\): add --id-pad strip\.$",
        ),
        (
            ["Ann", "Bob", "Cem"],
            {"source": ["ann", "bob"], "target": ["bob", "cem"]},
            r"differ in upper and lower case \('Ann' and 'ann'\): write them alike\.$",
        ),
        (
            ["a  b", "c d"],
            {"source": ["ab"], "target": ["cd"]},
            r"differ in white space \('a  b' and 'ab'\): write them alike\.$",
        ),
        (
            ["A b", "C d"],
            {"source": ["ab"], "target": ["cd"]},
            r"differ in upper and lower case and white space \('A b' and 'ab'\)",
        ),
        (
            ["7", "8", "x"],
            EDGES,
            r"^edges, row 2, column 'target': there is no node '9' in nodes\. Add --absent-nodes "
            r"add to read them as nodes without attributes, or --absent-nodes drop to leave the "
            r"edges out\.$",
        ),
    ],
)
def test_near_misses_are_named(ids: list[str], edges: dict[str, list[str]], expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_tables(edges, {"id": ids, "x": range(len(ids))})
    assert re.search(expected, str(raised.value)), raised.value


def test_zeros_are_stripped_on_request() -> None:
    nodes = {"id": ["007", "08", "000"], "x": [1.0, 2.0, 4.0]}
    edges = {"source": ["7", "8"], "target": ["8", "0"]}
    tables = read_tables(edges, nodes, id_pad="strip")
    assert tables.graph.names == ("7", "8", "0")
    assert pairs(tables) == [("0", "8"), ("7", "8")]
    alone = read_tables({"source": ["07", "7"], "target": ["8", "09"]}, id_pad="strip")
    assert alone.graph.names == ("7", "8", "9")
    with pytest.raises(UsageError, match="--id-pad strip makes one id of '7', on row 1, and '007'"):
        read_tables(edges, {"id": ["7", "8", "007"], "x": [1, 2, 3]}, id_pad="strip")


def test_nodes_without_a_row_can_be_added_or_their_edges_left_out() -> None:
    nodes = {"id": ["7", "8"], "x": [1.0, 3.0], "kind": ["u", "v"], "born": ["2024-01-01", None]}
    edges = {"source": ["7", "8", "z"], "target": ["8", "9", "y"]}
    added = read_tables(edges, nodes, absent_nodes="add")
    assert added.graph.names == ("7", "8", "9", "z", "y")
    assert pairs(added) == [("7", "8"), ("8", "9"), ("y", "z")]
    assert "3 nodes without a row in nodes added, without attributes." in added.notes
    dropped = read_tables(edges, nodes, absent_nodes="drop")
    assert dropped.graph.names == ("7", "8")
    assert pairs(dropped) == [("7", "8")]
    assert any("2 edges of edges left out" in note for note in dropped.notes)


def test_ids_that_differ_in_case_only_are_different_nodes_and_noted() -> None:
    tables = read_tables({"source": ["Ann"], "target": ["ann"]}, {"id": ["Ann", "ann", "bob"]})
    assert tables.graph.n == 3
    assert any("such as 'Ann' and 'ann'; they are different nodes" in n for n in tables.notes)


def test_several_repeated_and_empty_ids_are_one_fault_each() -> None:
    nodes = {"id": ["a", "a", "b", "b", None, "NA"], "x": range(6)}
    with pytest.raises(UsageError) as raised:
        read_tables(None, nodes)
    lines = str(raised.value).splitlines()
    assert lines == [
        "2 faults:",
        "- nodes, row 5, column 'id': the id is empty (1 more cell like this).",
        "- nodes, row 2, column 'id': the node id 'a' occurs twice, first on row 1; keep one "
        "row of each node (1 more cell like this).",
    ]
    with pytest.raises(UsageError, match="'NA' counts as empty, unless you say --missing"):
        read_tables(None, {"id": ["a", "NA"], "x": [1, 2]})
    assert read_tables(None, {"id": ["a", "NA"], "x": [1, 2]}, missing=[]).graph.n == 2


def test_ids_that_a_spreadsheet_rounded_are_named() -> None:
    with pytest.raises(UsageError, match=r"'1.5E\+15' occurs twice, .* that a spreadsheet rounded"):
        read_tables(None, {"id": ["1.5E+15", "1.5E+15"], "x": [1, 2]})
