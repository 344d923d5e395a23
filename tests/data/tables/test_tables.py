from __future__ import annotations

import ast
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import csv, parquet

import kryograph.data
from kryograph.data import Dataset, load
from kryograph.data.tables import Tables, read_tables
from kryograph.data.tables.formats import read_parquet
from kryograph.data.tables.matching import ColumnRequest
from kryograph.data.tables.roles import plain
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph

EDGES = [("source", "target", "weight"), ("7", "b", "1"), ("b", "c c", "2.5"), ("c c", "7", "1")]
NODES = [("id", "age", "topic"), ("c c", "1", "x"), ("7", "2", ""), ("b", "3", "y"), ("d", "6", "")]


def written(rows: list[tuple[str, ...]], delimiter: str = ",") -> bytes:
    return "".join(delimiter.join(row) + "\n" for row in rows).encode()


def as_parquet(rows: list[tuple[str, ...]]) -> bytes:
    """With types as a data frame has them: numbers where all cells are."""
    sink = pa.BufferOutputStream()
    options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""])
    table = csv.read_csv(pa.BufferReader(written(rows)), convert_options=options)
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


FORMS: dict[str, Callable[[list[tuple[str, ...]]], bytes]] = {
    "comma": written,
    "tab": lambda rows: written(rows, "\t"),
    "semicolon": lambda rows: written(rows, ";"),
    "gzip": lambda rows: gzip.compress(written(rows)),
    "byte order mark": lambda rows: b"\xef\xbb\xbf" + written(rows),
    "windows": lambda rows: written(rows).replace(b"\n", b"\r\n"),
    "quoted": lambda rows: b'"' + written(rows, '","').replace(b"\n", b'"\n"')[:-1],
    "no end of line": lambda rows: written(rows)[:-1],
    "blank lines": lambda rows: b"\n" + written(rows).replace(b"\n", b"\n\n"),
    "spaces": lambda rows: written(rows, " , "),
    "parquet": as_parquet,
}


def read(
    folder: Path, edges: bytes | str | None, nodes: bytes | str | None, **how: object
) -> Tables:
    paths: list[Path | None] = []
    for name, content in (("edges", edges), ("nodes", nodes)):
        path = folder / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(None if content is None else path)
    return read_tables(*paths, **{"label": None, **how})  # type: ignore[arg-type]


def pairs(tables: Tables) -> list[tuple[str, str]]:
    """The edges by name, each in alphabetical order."""
    names = tables.graph.names
    assert names is not None
    upper = sp.triu(tables.graph.adjacency).tocoo()
    return sorted(
        (min(names[a], names[b]), max(names[a], names[b]))
        for a, b in zip(upper.row, upper.col, strict=True)
    )


@pytest.mark.parametrize("nodes", FORMS)
@pytest.mark.parametrize("edges", FORMS)
def test_every_form_gives_the_same_graph(tmp_path: Path, edges: str, nodes: str) -> None:
    tables = read(tmp_path, FORMS[edges](EDGES), FORMS[nodes](NODES), label="topic")
    assert tables.graph.names == ("c c", "7", "b", "d")
    expected = [[0, 1, 2.5, 0], [1, 0, 1, 0], [2.5, 1, 0, 0], [0, 0, 0, 0]]
    assert tables.graph.adjacency.toarray().tolist() == expected
    assert tables.labels.tolist() == [0, UNKNOWN, 1, UNKNOWN]
    assert tables.classes == ("x", "y")
    assert tables.columns.numbers == ("age",)
    assert "1 node without an edge." in tables.notes


def test_ids_match_whatever_their_type(tmp_path: Path) -> None:
    def packed(**columns: object) -> bytes:
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table(columns), sink)
        return bytes(sink.getvalue())

    as_text = "id,x\n7,1\n8,2\n"
    for source in (
        packed(source=pa.array([7], pa.int64()), target=pa.array([8], pa.int32())),
        packed(source=pa.array([7.0]), target=pa.array([8.0])),
        packed(source=pa.array(["7"]), target=pa.array(["8"], pa.large_string())),
        packed(source=pa.array(["7"]).dictionary_encode(), target=pa.array([8], pa.uint8())),
        "source,target\n7.0,8.0\n",
        '"source","target"\n"7","8"\n',
    ):
        assert pairs(read(tmp_path, source, as_text)) == [("7", "8")]
    floats = packed(id=pa.array([7.0, 8.0]), x=pa.array([1.0, 2.0]))
    assert pairs(read(tmp_path, "7,8\n", floats)) == [("7", "8")]
    # Where not all are whole, they are names: version 1.0 is not version 1.
    versions = read(tmp_path, "source,target\n1.0,1.10\n", None)
    assert versions.graph.names == ("1.0", "1.10")
    versions = read(tmp_path, "source,target\n1.0,2.0\n", "id\n1.0\n2.0\n1.10\n")
    assert versions.graph.names == ("1.0", "2.0", "1.10")


def test_other_types_of_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2]),
            "flag": pa.array([True, False]),
            "day": pa.array([1, 2], pa.date32()),
            "kind": pa.array(["u", "v"]).dictionary_encode(),
            "price": pa.array([1, 2]).cast(pa.decimal128(38, 2)),
            "nothing": pa.nulls(2),
        }
    )
    path = tmp_path / "nodes.parquet"
    parquet.write_table(table, path)
    assert read_parquet(path).rows == 2
    tables = read_tables(None, path, label=None)
    assert tables.columns.numbers == ("price",)
    assert tables.columns.categories == {
        "flag": ("False", "True"),
        "day": ("1970-01-02", "1970-01-03"),
        "kind": ("u", "v"),
    }
    assert any("'nothing'" in note and "empty" in note for note in tables.notes)


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
    assert any("weights" in note for note in tables.notes) == (weight != 1)


def test_a_column_that_is_no_weight_can_be_ignored(tmp_path: Path) -> None:
    tables = read(tmp_path, "source,target,year\na,b,1999\n", None, ignore=["year"])
    assert tables.graph.adjacency[0, 1] == 1


def test_without_a_node_table_nodes_come_in_order_of_appearance(tmp_path: Path) -> None:
    tables = read(tmp_path, "z,y\nb,z\na,b\n", None)
    assert tables.graph.names == ("z", "y", "b", "a")
    assert isinstance(tables.graph.features, sp.csr_array)
    np.testing.assert_array_equal(tables.graph.features.toarray(), np.eye(4))
    assert tables.labels.tolist() == [UNKNOWN] * 4
    assert tables.classes == ()


def test_without_edges_every_node_stands_alone(tmp_path: Path) -> None:
    tables = read(tmp_path, None, NUMBERED)
    assert tables.graph.edges == 0
    assert "There are no edges: every node stands alone." in tables.notes


def test_classes_are_sorted_as_numbers_if_they_are(tmp_path: Path) -> None:
    def classes(*labels: str) -> tuple[tuple[str, ...], list[int]]:
        rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
        found = read(tmp_path, None, "id,y\n" + rows, label="y")
        return found.classes, found.labels.tolist()

    assert classes("10", "9", "", "10") == (("9", "10"), [1, 0, UNKNOWN, 1])
    assert classes("10", "9", "x") == (("10", "9", "x"), [0, 1, 2])
    assert classes("2.0", "", "1.0") == (("1", "2"), [1, UNKNOWN, 0])
    assert classes(" b ", "a", "b") == (("a", "b"), [1, 0, 1])


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    tables = read(tmp_path, "2,3\n3,4\n", "2,5,x\n3,6,\n4,3,y\n", label="3")
    assert tables.graph.names == ("2", "3", "4")
    assert tables.classes == ("x", "y")
    assert tables.columns.numbers == ("2",)


def test_a_label_that_looks_like_none_is_noted(tmp_path: Path) -> None:
    tables = read(tmp_path, None, "id,y\n1,x\n2,NA\n", label="y")
    assert tables.classes == ("NA", "x")
    assert any("'NA' counts as a class" in note for note in tables.notes)


def test_what_was_done_to_the_edges_is_noted(tmp_path: Path) -> None:
    tables = read(tmp_path, "source,target\na,a\na,b\na,b\n", None)
    assert tables.notes == ("1 self-loop removed, 1 repeated edge merged.",)


def test_a_counting_column_without_a_name_is_no_feature(tmp_path: Path) -> None:
    tables = read(tmp_path, None, ",id,x\n0,a,5\n1,b,7\n")
    assert tables.columns.numbers == ("x",)
    assert tables.columns.ignored == ("column 1",)


def test_a_second_column_of_ids_is_no_feature(tmp_path: Path) -> None:
    nodes = "id,key,x\n1,a,5\n2,b,6\n"
    tables = read(tmp_path, "a,b\n", nodes)
    assert tables.graph.names == ("a", "b")
    assert tables.columns.used == ("x",)
    assert "The column 'id' only names the nodes and was ignored." in tables.notes
    again = read(tmp_path, "a,b\n", nodes, columns=tables.columns)
    assert again.graph.fingerprint == tables.graph.fingerprint
    repeated = read(tmp_path, "a,b\n", "key,name,x\na,Kim,5\nb,Kim,6\n")
    assert repeated.columns.used == ("x", "name")


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    read(
        tmp_path, written(EDGES), written(NODES), label="topic", progress=lambda *a: told.append(a)
    )
    assert {stage for stage, _ in told} == {"edges", "nodes", "features"}
    assert told[-1] == ("features", 1.0)
    assert all(0 <= fraction <= 1 for _, fraction in told)


def write_out(data: Dataset, graph: Graph, folder: Path) -> tuple[Path, Path]:
    """A data set as two tables, with the public training labels."""
    assert isinstance(graph.features, sp.csr_array)
    assert data.public is not None
    upper = sp.triu(graph.adjacency).tocoo()
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    edges.write_text("".join(f"p{a},p{b}\n" for a, b in zip(upper.row, upper.col, strict=True)))
    train = set(data.public.train.tolist())
    with nodes.open("w") as stream:
        words = ",".join(f"w{at}" for at in range(graph.features.shape[1]))
        stream.write(f"id,{words},topic\n")
        for at, row in enumerate(graph.features.toarray().tolist()):
            label = data.classes[data.labels[at]] if at in train else ""
            stream.write(f"p{at},{','.join(f'{v:.17g}' for v in row)},{label}\n")
    return edges, nodes


def test_cora_written_out_is_cora(cora: Dataset, tmp_path: Path) -> None:
    edges, nodes = write_out(cora, load("cora", normalise=False).graph, tmp_path)
    tables = read_tables(edges, nodes, label="topic")
    assert tables.graph.fingerprint == cora.graph.fingerprint
    assert len(tables.columns.counts) == 1433
    assert cora.public is not None
    train = cora.public.train
    np.testing.assert_array_equal(np.flatnonzero(tables.labels != UNKNOWN), train)
    found = [tables.classes[label] for label in tables.labels[train]]
    assert found == [cora.classes[label] for label in cora.labels[train]]


# Prediction: the same recipe on another table.


TRAIN = "id,age,colour,title,topic\na,1,red,one two,x\nb,3,blue,two,y\nc,5,red,three,\n"


@pytest.fixture
def trained(tmp_path: Path) -> Tables:
    return read(tmp_path, "a,b\nb,c\n", TRAIN, label="topic", text=["title"])


def test_the_recipe_gives_the_same_features_again(trained: Tables, tmp_path: Path) -> None:
    again = read(tmp_path, "a,b\nb,c\n", TRAIN, columns=trained.columns)
    assert again.graph.fingerprint == trained.graph.fingerprint
    assert again.classes == ("x", "y")
    assert again.columns is trained.columns


def test_a_table_of_another_order_and_one_row(trained: Tables, tmp_path: Path) -> None:
    other = "title,age,colour,id\ntwo,3,blue,zz\n"
    tables = read(tmp_path, None, other, columns=trained.columns)
    assert tables.graph.names == ("zz",)
    expected = sp.csr_array(trained.graph.features).toarray()[1]
    np.testing.assert_array_equal(sp.csr_array(tables.graph.features).toarray()[0], expected)
    assert tables.labels.tolist() == [UNKNOWN]


def test_missing_columns_are_named(trained: Tables, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lacks the columns 'colour', 'title', which the model"):
        read(tmp_path, None, "id,age\na,1\n", columns=trained.columns)
    with pytest.raises(UsageError, match=r"lacks the column 'title', which"):
        read(tmp_path, None, "id,age,colour\na,1,red\n", columns=trained.columns)


def test_extra_columns_and_unseen_categories_are_ignored_with_a_count(
    trained: Tables, tmp_path: Path
) -> None:
    nodes = "id,age,colour,title,mood,size\na,1,green,x y,good,1\nb,,pink,z,bad,2\nc,2,,z,bad,2\n"
    tables = read(tmp_path, None, nodes, columns=trained.columns)
    said = " ".join(tables.notes)
    assert "2 columns of" in said
    assert "'mood', 'size'" in said
    assert "2 cells in column 'colour' with a category that the model has not seen" in said
    assert "1 empty cell in column 'colour'" in said
    assert "1 empty cell in column 'age' filled with its mean" in said
    features = sp.csr_array(tables.graph.features).toarray()
    assert features.shape[1] == trained.graph.features.shape[1]
    assert not features[1].any()  # the mean age, no known colour, no known word


def test_a_number_that_was_text_is_refused_at_its_place(trained: Tables, tmp_path: Path) -> None:
    nodes = "id,age,colour,title\na,old,red,x\nb,older,red,x\n"
    with pytest.raises(UsageError, match=r"line 2, column 'age': 'old' is not a number"):
        read(tmp_path, None, nodes, columns=trained.columns)


def test_a_label_that_is_asked_for_must_be_there(trained: Tables, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no column 'topic' of labels"):
        read(
            tmp_path,
            None,
            "id,age,colour,title\na,1,red,x\n",
            label="topic",
            columns=trained.columns,
        )


def test_nodes_without_features_are_known_by_their_ids(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\nb,c\n", None)
    again = read(tmp_path, "c,b\nb,a\na,new\n", None, columns=first.columns)
    assert again.graph.names == ("c", "b", "a", "new")
    expected = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert sp.csr_array(again.graph.features).toarray().tolist() == expected
    assert any(note.startswith("1 node without features") for note in again.notes)


def test_options_are_checked_before_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be in a table of nodes, and there is none"):
        read(tmp_path, "a,b\n", None, label="topic")
    asked = ColumnRequest.by(None, "y", ["t"], ["i"], None)
    assert asked.names == {"y", "t", "i"}
    assert plain("From_Node Id") == "fromnodeid"


def test_readers_are_loaded_when_they_are_needed() -> None:
    """Training on a known data set must not wait for Arrow or networkx."""
    for path in Path(kryograph.data.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                said = ast.unparse(node)
                assert not any(name in said for name in ("pyarrow", "pandas", "networkx"))
