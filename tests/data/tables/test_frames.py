"""The same tables from a path, pandas, polars, DuckDB and Arrow, and the traps of frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import csv, feather, parquet

import kryograph as kg
from kryograph.data.tables import Tables, read_tables
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import pairs
from tests.helpers.own_tables import write_tables


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    write_tables(folder, seed=0)
    return folder


def arrow_table(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)


def feather_file(path: Path) -> Path:
    target = path.with_name(path.name + ".feather")
    feather.write_feather(arrow_table(path), target)
    return target


def dictionary(path: Path) -> dict[str, Any]:
    table = arrow_table(path)
    return {name: table[name].combine_chunks() for name in table.column_names}


OPENERS: dict[str, Callable[[Path], object]] = {
    "text": str,
    "pandas": lambda path: arrow_table(path).to_pandas(),
    "pandas with types of its own": lambda path: (
        pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    ),
    "polars": lambda path: (pl.read_parquet if path.suffix == ".parquet" else pl.read_csv)(path),
    "polars from Arrow": lambda path: pl.from_arrow(arrow_table(path)),
    "duckdb": lambda path: duckdb.from_arrow(arrow_table(path)),
    "arrow": arrow_table,
    "stream": lambda path: arrow_table(path).to_reader(max_chunksize=100),
    "feather": feather_file,
    "dictionary": dictionary,
}


def assert_same(tables: Tables, expected: Tables) -> None:
    assert tables.graph.fingerprint == expected.graph.fingerprint
    assert tables.graph.names == expected.graph.names
    assert tables.classes == expected.classes
    assert tables.labels.tobytes() == expected.labels.tobytes()
    ours, theirs = tables.columns, expected.columns
    assert ours.to_json()["blocks"] == theirs.to_json()["blocks"]
    assert ours.factors == theirs.factors
    uses = [[(line.column, line.use) for line in t.plan.lines] for t in (tables, expected)]
    assert uses[0] == uses[1]


@pytest.mark.parametrize("form", OPENERS)
@pytest.mark.parametrize(
    ("edges", "nodes", "label"),
    [
        ("tx.csv", "accounts.csv", "is_fraud"),
        ("cites.csv", "papers.csv", "field"),
        ("follows.parquet", "users.parquet", "community"),
        ("e4.csv", "n10.csv", "community"),
    ],
)
def test_the_same_tables_in_any_form(
    own: Path, form: str, edges: str, nodes: str, label: str
) -> None:
    open_path = OPENERS[form]
    expected = read_tables(own / edges, own / nodes, label=label)
    assert_same(read_tables(open_path(own / edges), open_path(own / nodes), label=label), expected)


def test_labels_of_their_own_in_any_form(own: Path) -> None:
    expected = read_tables(own / "e4.csv", own / "n4.csv", own / "labels4.csv", label="community")
    assert (expected.labels >= 0).sum() == 60
    for open_path in OPENERS.values():
        files = [open_path(own / name) for name in ("e4.csv", "n4.csv", "labels4.csv")]
        assert_same(read_tables(*files, label="community"), expected)


EDGES = {"source": ["a", "b"], "target": ["b", "c"]}


def test_a_named_index_of_pandas_is_a_column() -> None:
    """Consecutive numbers as an index are dropped by the export to Arrow, without a word."""
    edges = {"source": [5, 6], "target": [6, 7]}
    frame = pd.DataFrame({"user": [5, 6, 7], "x": [1.0, 2.0, 4.0]}).set_index("user")
    assert isinstance(frame.index, pd.Index)
    assert read_tables(edges, frame).graph.names == ("5", "6", "7")
    frame = pd.DataFrame({"user": range(5, 8), "x": [1.0, 2.0, 4.0]}).set_index("user")
    tables = read_tables(edges, frame)
    assert tables.graph.names == ("5", "6", "7")
    assert tables.columns.features == ("x",)
    ranged = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=pd.RangeIndex(5, 8, name="user"))
    assert_same(read_tables(edges, ranged), tables)


def test_an_index_of_pandas_without_a_name_holds_the_ids_if_they_are_there() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=["a", "b", "c"])
    tables = read_tables(EDGES, frame)
    assert tables.graph.names == ("a", "b", "c")
    plain = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0]}).iloc[[2, 0, 1]]
    shuffled = read_tables(EDGES, plain)
    assert shuffled.graph.names == ("c", "a", "b")
    assert shuffled.columns.features == ("x",)


def test_a_stream_is_read_once() -> None:
    """A second read gives no rows and no error."""

    class Stream:
        """A stream that counts how often it is read."""

        def __init__(self, table: pa.Table) -> None:
            self.table, self.reads = table, 0

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            self.reads += 1
            return self.table.__arrow_c_stream__(requested_schema)

    edges = Stream(pa.table(EDGES))
    nodes = Stream(pa.table({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0]}))
    labels = Stream(pa.table({"id": ["a", "b"], "y": ["k", "m"]}))
    read_tables(edges, nodes, labels)
    assert (edges.reads, nodes.reads, labels.reads) == (1, 1, 1)
    reader = pa.table(EDGES).to_reader()
    read_tables(reader)
    with pytest.raises(UsageError, match=r"edges .* have 0 rows.*only once: was it read before\?"):
        read_tables(reader)


def test_a_lazy_frame_is_to_be_collected() -> None:
    lazy = pl.DataFrame(EDGES).lazy()
    with pytest.raises(UsageError, match=r"The edges are a LazyFrame of polars: \.collect\(\) it"):
        read_tables(lazy)
    assert read_tables(lazy.collect()).graph.edges == 2


def test_categoricals_are_decoded() -> None:
    """Polars exports them as dictionaries of string views, which Arrow's functions refuse."""
    columns = {"id": ["a", "b", "c"], "kind": ["u", "v", None], "topic": ["x", None, "y"]}
    expected = read_tables(EDGES, columns, label="topic")
    kinds = [pl.col(name).cast(pl.Categorical) for name in columns]
    ends = [pl.col(name).cast(pl.Categorical) for name in EDGES]
    frame = pl.DataFrame(columns).with_columns(kinds)
    assert_same(read_tables(pl.DataFrame(EDGES).with_columns(ends), frame, label="topic"), expected)
    assert_same(
        read_tables(EDGES, pd.DataFrame(columns).astype("category"), label="topic"), expected
    )


@pytest.mark.parametrize("build", [pd.DataFrame, dict])
def test_a_column_of_numbers_and_text_names_its_row(build: Callable[[Any], object]) -> None:
    columns = {"id": ["a", "b", "c"], "x": [1, None, "2"]}
    with pytest.raises(
        UsageError,
        match=r"nodes.*row 3, column 'x': '2' is of the type str, but .* of the type (int|float)",
    ):
        read_tables(EDGES, build(columns))


def test_missing_values_of_pandas_are_empty() -> None:
    frame = pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "x": [1.0, np.nan, 3.0],
            "n": pd.array([1, None, 3], "Int64"),
            "topic": pd.array(["k", pd.NA, "m"], "string"),
        }
    )
    tables = read_tables(EDGES, frame, label="topic")
    assert tables.labels.tolist() == [0, UNKNOWN, 1]
    details = {line.column: line.detail for line in tables.plan.lines}
    assert details["x"] == details["n"] == "1 empty"


def test_a_dictionary_may_hold_arrays_of_objects() -> None:
    topics = np.array(["art", np.nan, "law"], dtype=object)
    tables = read_tables(None, {"id": np.arange(3), "topic": topics}, label="topic")
    assert tables.labels.tolist() == [0, -1, 1]


def test_a_dictionary_of_labels_by_node_is_refused() -> None:
    with pytest.raises(UsageError, match=r"column 'ann' is no list .* has columns: {'id': \["):
        read_tables(None, {"id": ["ann"], "x": [1]}, {"ann": "art", "bob": "law"})


def test_a_dictionary_may_hold_a_matrix() -> None:
    nodes = {"id": np.array([0, 1, 2]), "embedding": np.arange(6.0).reshape(3, 2)}
    tables = read_tables({"source": np.array([0, 1]), "target": np.array([1, 2])}, nodes)
    assert "embedding -> vector (2 numbers)" in str(tables.plan)
    with pytest.raises(UsageError, match="3 rows in column 'id', but 2 in column 'x'"):
        read_tables(EDGES, {"id": ["a", "b", "c"], "x": [1, 2]})


def test_matrices() -> None:
    matrix = sp.coo_array(([2.0, 3.0, 0.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    alone = read_tables(matrix)
    assert alone.graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]
    assert alone.graph.names == ("0", "1", "2")
    nodes = {"number": [2, 1, 0], "x": [5.5, 6.5, 9.5]}
    joined = read_tables(matrix, nodes)
    assert joined.graph.names == ("2", "1", "0")
    assert joined.graph.adjacency[1, 2] == 2
    with pytest.raises(UsageError, match="must be square"):
        read_tables(sp.csr_array((2, 3)))


def test_a_graph_and_labels_of_their_own() -> None:
    graph = kg.Graph.from_edges([[0, 1], [1, 2]], 3, features=[[1.0], [2], [4]], names="abc")
    tables = read_tables(graph, None, {"id": ["a", "c"], "label": ["k", "m"]})
    assert tables.labels.tolist() == [0, UNKNOWN, 1]
    assert pairs(tables) == [("a", "b"), ("b", "c")]
    bare = kg.Graph.from_edges([[0, 1], [1, 2]], 3, names=["a", "b", "c"])
    joined = read_tables(bare, {"key": ["c", "b", "a"], "x": [1.0, 2.0, 4.0]})
    assert joined.graph.names == ("c", "b", "a")
    assert pairs(joined) == [("a", "b"), ("b", "c")]


def test_a_graph_of_networkx_has_its_attributes() -> None:
    graph = nx.Graph()
    graph.add_node("a", age=31, topic="x", place={"x": 1})
    graph.add_node("b", age=45)
    graph.add_node("c", age=28, topic="y")
    graph.add_edge("a", "b", weight=2.0, kind="friend")
    graph.add_edge("b", "c", kind="family")
    tables = read_tables(graph, label="topic")
    assert tables.labels.tolist() == [0, UNKNOWN, 1]
    assert tables.graph.adjacency[0, 1] == 2
    uses = {line.column: line.use for line in tables.plan.lines}
    edge_uses = {"weight": "weight", "kind": "category"}
    assert uses == edge_uses | {"age": "number", "topic": "label", "place": "not used"}
    assert "kind = friend (out)" in tables.columns.features


def test_what_is_no_table() -> None:
    with pytest.raises(UsageError, match="The edges are a int: pass a path, a data frame"):
        read_tables(7)
    with pytest.raises(UsageError, match="There is no file nothing"):
        read_tables("nothing.csv")
    assert read_tables(EDGES).graph.names == ("a", "b", "c")
