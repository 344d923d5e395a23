"""Graphs from networkx, SciPy and tables, and back."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import Graph


def test_networkx_and_back() -> None:
    graph = nx.karate_club_graph()
    found = Graph.from_networkx(graph)
    assert found.names == tuple(str(at) for at in range(34))
    back = nx.from_scipy_sparse_array(found.adjacency)
    weights = {edge: graph.edges[edge]["weight"] for edge in graph.edges}
    assert {edge: back.edges[edge]["weight"] for edge in back.edges} == weights


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 5)), max_size=30),
    st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]),
)
def test_any_networkx_graph_is_its_symmetric_matrix(
    edges: list[tuple[int, int, int]], kind: type[nx.Graph]
) -> None:
    graph = kind()
    graph.add_nodes_from(range(9))
    graph.add_weighted_edges_from(edges)
    found = Graph.from_networkx(graph)
    expected = np.zeros((9, 9))
    for a, b, weight in graph.edges(data="weight"):
        if a != b:
            expected[a, b] = expected[b, a] = max(expected[a, b], weight)
    np.testing.assert_array_equal(found.adjacency.toarray(), expected)


def test_networkx_nodes_keep_their_order_and_names() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["z", 3, ("a", 1)])
    graph.add_edge(3, "z", cost=7)
    graph.add_edge(3, ("a", 1))
    found = Graph.from_networkx(graph, weight="cost", features=np.eye(3))
    assert found.names == ("z", "3", "('a', 1)")
    assert found.adjacency.toarray().tolist() == [[0, 7, 0], [7, 0, 1], [0, 1, 0]]
    assert Graph.from_networkx(nx.empty_graph(2)).edges == 0
    with pytest.raises(UsageError, match="no nodes"):
        Graph.from_networkx(nx.Graph())


def test_scipy_and_back() -> None:
    graph = toy.two_cliques(4)
    for kind in (sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_matrix):
        found = Graph.from_scipy(kind(graph.adjacency), features=graph.features)
        assert found.fingerprint == graph.fingerprint


def test_a_matrix_that_is_not_symmetric_is_made_so() -> None:
    found = Graph.from_scipy(sp.csr_array([[5, 2, 0], [0, 0, 3], [0, 4, 0]]), names=["a", "b", "c"])
    assert found.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 4], [0, 4, 0]]
    assert found.names == ("a", "b", "c")
    assert str(found.cleaning) == "1 self-loop removed, 1 one-way edge made two-way"


def test_matrices_that_are_no_graphs() -> None:
    with pytest.raises(UsageError, match=r"must be square; it is \(2, 3\)"):
        Graph.from_scipy(sp.csr_array((2, 3)))
    with pytest.raises(UsageError, match="weights must be positive"):
        Graph.from_scipy(sp.csr_array([[0, -1.0], [-1.0, 0]]))


def test_tables_and_back(tmp_path: Path) -> None:
    graph = toy.two_cliques(3)
    upper = sp.triu(graph.adjacency).tocoo()
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(f"{a},{b}\n" for a, b in zip(upper.row, upper.col, strict=True)))
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,topic\n" + "".join(f"{at},x\n" for at in range(graph.n)))
    found = Graph.from_tables(edges, str(nodes), ignore=["topic"])
    assert found.fingerprint == Graph.from_scipy(graph.adjacency).fingerprint
    assert Graph.from_tables(str(edges)).edges == graph.edges
    assert Graph.from_tables(edges, nodes, label="topic").names == tuple("012345")
