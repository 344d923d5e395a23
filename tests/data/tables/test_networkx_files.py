from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from kryograph.data.tables import Tables, read_tables
from kryograph.data.tables.networkx_files import is_edge_list, read_edge_list
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import block


def example() -> nx.Graph:
    graph = nx.Graph()
    graph.add_node("ann", age=30.0, colour="red", topic="x")
    graph.add_node("bob", age=40.0, colour="blue")
    graph.add_node("cem", age=50.5, colour="red", topic="y")
    graph.add_edge("ann", "bob", weight=2.0)
    graph.add_edge("bob", "cem")
    return graph


@pytest.fixture(params=["graphml", "gexf"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    path = tmp_path / f"graph.{request.param}"
    write = {"graphml": nx.write_graphml, "gexf": nx.write_gexf}[request.param]
    write(example(), path)
    return read_tables(path, None, label="topic")


def test_a_file_brings_everything_with_it(tables: Tables) -> None:
    assert tables.graph.names == ("ann", "bob", "cem")
    assert tables.graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert block(tables.columns, "numbers")["names"] == ["age"]
    assert block(tables.columns, "numbers")["means"] == [pytest.approx(40.1666667)]
    assert block(tables.columns, "categories")["values"] == [["colour", ["blue", "red"]]]
    assert tables.labels.tolist() == [0, UNKNOWN, 1]


def test_directed_graphs_and_number_ids(tmp_path: Path) -> None:
    graph = nx.DiGraph([(3, 1), (1, 3), (1, 2)])
    nx.write_graphml(graph, tmp_path / "graph.graphml")
    tables = read_tables(tmp_path / "graph.graphml", None, label=None)
    assert tables.graph.names == ("3", "1", "2")
    assert tables.graph.edges == 2
    assert str(tables.graph.cleaning) == "1 one-way edge made two-way"


def test_lists_of_edges_as_networkx_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "graph.edgelist"
    nx.write_edgelist(example(), path)
    assert is_edge_list(path)
    assert read_edge_list(path).rows == 2
    tables = read_tables(path, None, label=None)
    assert tables.graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    nx.write_weighted_edgelist(nx.Graph([("a", "b", {"weight": 3})]), path)
    assert read_tables(path, None, label=None).graph.adjacency[0, 1] == 3
    nx.write_edgelist(nx.path_graph(4), path, data=False)
    assert read_tables(path, None, label=None).graph.edges == 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a b {'weight': -1}\n", r"line 1, column 'weight': the weight -1 is not positive"),
        ("a b {}\n\nc\n", r"line 3, column 1: an edge has two ends"),
        ("a b {}\nb c {'weight'\n", r"line 2, column 3: .* is not a dictionary"),
        ("a b {}\nb c __import__('os')\n", r"line 2, column 3: .* is not a dictionary"),
        ("a b {'weight': 'x'}\nb c {'weight': 1}\n", r"line 1, column 'weight': 'x' is not a num"),
    ],
)
def test_bad_lists_of_edges(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "graph.edgelist"
    path.write_text(content)
    with pytest.raises(UsageError, match=expected):
        read_tables(path, None, label=None)


LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml><graph><node id="&b;"/></graph></graphml>
"""
HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (LAUGHS, r"line 2: it declares a document type or entities.*it was not read"),
        (LAUGHS.replace("DOCTYPE", "doctype"), r"line 2: it declares a document type"),
        (LAUGHS.encode("utf-16"), r"UTF-16"),
        (LAUGHS.encode("utf-16-le"), r"zero byte"),
        ("<graphml>\n<graph", r"line 2, column \d+: it is damaged or not GraphML"),
        ("<other/>", r"is damaged or not GraphML"),
        ("no xml", r"line 1, column 1: it is damaged or not GraphML"),
        (f"{HEAD}<graph edgedefault='undirected'/></graphml>", r"has no nodes"),
        (f"{HEAD}<graph edgedefault='undirected'><node id=' '/></graph></graphml>", r"empty id"),
        (
            f"{HEAD}<graph edgedefault='directed'><node id='a'/><node id='a '/></graph></graphml>",
            r"the node id 'a' occurs twice",
        ),
        (
            f"{HEAD}<key id='d0' for='node' attr.name='age' attr.type='double'/>"
            "<graph edgedefault='undirected'><node id='a'><data key='d0'>old</data></node>"
            "</graph></graphml>",
            r"is damaged or not GraphML \(could not convert",
        ),
    ],
)
def test_bad_graphml(tmp_path: Path, content: str | bytes, expected: str) -> None:
    path = tmp_path / "graph.graphml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=expected):
        read_tables(path, None, label=None)


def test_bad_values_in_graphml_are_found_at_their_node(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    graph = example()
    graph.nodes["bob"]["age"] = float("nan")
    nx.write_graphml(graph, path)
    with pytest.raises(UsageError, match=r"node 'bob', column 'age': 'nan' is not a finite"):
        read_tables(path, None, label="topic")
    graph = example()
    graph.edges["ann", "bob"]["weight"] = -2.0
    nx.write_graphml(graph, path)
    with pytest.raises(
        UsageError, match=r"edge 'ann' – 'bob', column 'weight': '-2.0' is not a number"
    ):
        read_tables(path, None, label="topic")
    nx.write_graphml(example(), path)
    with pytest.raises(UsageError, match=r"no column 'topics' of labels: did you mean 'topic'"):
        read_tables(path, None, label="topics")
