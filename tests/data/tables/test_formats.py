"""Formats of files: what cannot be opened, plug-ins, and thousands of mutations of good files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from kryograph.data import load
from kryograph.data.tables import read_tables
from kryograph.data.tables.arrow_files import read_parquet
from kryograph.data.tables.formats import (
    FILE_FORMATS,
    FileFormat,
    contents,
    format_of,
)
from kryograph.errors import UsageError
from kryograph.registry import Registry
from tests.data.tables.examples import EDGES, NODES, block


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
    assert block(tables.columns, "numbers")["names"] == ["price"]
    uses = {line.column: (line.use, line.detail) for line in tables.plan.lines}
    assert uses == {
        "id": ("id", "by its name"),
        "flag": ("boolean", ""),
        "day": ("date", ""),
        "kind": ("category", "2 values"),
        "price": ("number", ""),
        "nothing": ("not used", "every cell is empty"),
    }


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    def said(edges: Path | None, nodes: Path | None = None) -> str:
        with pytest.raises(UsageError) as raised:
            read_tables(edges, nodes, label=None)
        return str(raised.value)

    (tmp_path / "sheet.xlsx").write_bytes(b"PK\x03\x04")
    assert re.search("There is no file .*none.csv", said(tmp_path / "none.csv"))
    assert re.search("is a folder, not a file", said(tmp_path))
    assert re.search("is a spreadsheet: save the sheet as CSV", said(tmp_path / "sheet.xlsx"))
    assert re.search("is not a regular file", said(Path("/dev/zero")))
    assert re.search("There is no file", said(Path("a\0b")))
    assert re.search("Cannot read|There is no file", said(tmp_path / ("x" * 5000)))
    assert re.search("Pass a table of edges", said(None))
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "graph.npz").write_bytes(b"PK")
    both = said(tmp_path / "graph.npz", tmp_path / "edges.csv")
    assert re.search("graph.npz holds nodes and edges: pass it alone, without", both)


def test_parquet_says_the_row(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    table = pa.table({"id": [1, 2, 3], "age": [1.0, float("inf"), None]})
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match=r"nodes.parquet, row 2, column 'age': 'inf' is not a fin"):
        read_tables(None, path, label=None)
    parquet.write_table(pa.table({"id": [1, 2], "tags": [["a"], ["b"]]}), path)
    with pytest.raises(UsageError, match=r"column 'tags': it holds list.*--ignore tags"):
        read_tables(None, path, label=None)
    parquet.write_table(table.slice(0, 0), path)
    with pytest.raises(UsageError, match=r"no rows"):
        read_tables(None, path, label=None)


def test_zeros_are_not_unpacked_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20), 9))
    assert len(contents(path)) == 1 << 20
    with pytest.raises(UsageError, match="line 1, byte 1: a zero byte"):
        read_tables(path, None, label=None)


def test_text_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" * (1 << 20), 9, mtime=0))
    assert len(contents(path)) == 4 << 20  # below the limit any ratio is allowed
    monkeypatch.setattr("kryograph.data.tables.formats.UNPACKED_BYTES", 2 << 20)
    with pytest.raises(UsageError, match=r"unpacks to more than 2,097,152 bytes, over 200 times"):
        read_tables(path, None, label=None)


def test_a_file_that_is_packed_well_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.data.tables.formats.UNPACKED_BYTES", 1 << 10)
    whole = "".join(f"{i},{i + 1}\n" for i in range(5000)).encode()
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(whole, 9, mtime=0))
    assert contents(path) == whole


PLUGIN = """
import json

from kryograph.data.tables import FileFormat, RawGraph, Sheet, contents, text_column
import numpy as np

def read_gml(path):
    import networkx
    from kryograph.data.tables import from_networkx_graph
    return from_networkx_graph(networkx.parse_gml(contents(path).decode()), path)

def read_lines(path):
    rows = [json.loads(line) for line in contents(path).splitlines()]
    columns = {name: text_column([str(row.get(name, "")) for row in rows]) for name in rows[0]}
    return Sheet(path, columns, len(rows), lambda row: f"line {row + 1}")

GML = FileFormat("GML", read_gml, whole=True)
LINES = FileFormat("JSON lines", read_lines)
WRONG = FileFormat("wrong", read_lines, whole=True)
CSV = FileFormat("a format that must not replace ours", read_lines)
TEXT = "no format"
"""


GRAPH = """graph [
  node [ id 0 label "ann" age 31 topic "maths" ]
  node [ id 1 label "bob" age 28 topic "art" ]
  edge [ source 0 target 1 weight 2.0 ]
]"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[FileFormat]:
    """A distribution with formats, as a folder on the path; returns a registry that can see it."""
    folder = tmp_path / "site-packages"
    about = folder / "more_formats-2.0.dist-info"
    about.mkdir(parents=True)
    (folder / "more_formats.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: more-formats\nVersion: 2.0\n")
    names = {
        "gml": "GML",
        "jsonl": "LINES",
        "www": "WRONG",
        "csv": "CSV",
        "zzz": "TEXT",
        "yyy": "MISSING",
    }
    points = "".join(f"{ending} = more_formats:{name}\n" for ending, name in names.items())
    (about / "entry_points.txt").write_text(f"[kryograph.formats]\n{points}")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "more_formats", raising=False)
    fresh: Registry[FileFormat] = Registry(
        FILE_FORMATS.kind, FILE_FORMATS.group, FILE_FORMATS._check
    )
    for ending in ("csv", "npz", "parquet"):
        fresh.add(ending, FILE_FORMATS[ending])
    monkeypatch.setattr("kryograph.data.tables.formats.FILE_FORMATS", fresh)
    return fresh


def test_a_format_of_whole_graphs_can_be_a_plug_in(
    plugin: Registry[FileFormat], tmp_path: Path
) -> None:
    path = tmp_path / "graph.gml"
    path.write_text(GRAPH)
    tables = read_tables(path, None, label="topic")
    assert tables.graph.names == ("ann", "bob")
    assert tables.graph.adjacency.toarray().tolist() == [[0, 2], [2, 0]]
    packed = tmp_path / "packed.gml.gz"
    packed.write_bytes(gzip.compress(GRAPH.replace("topic", "class").encode()))
    assert load(packed).classes == ("art", "maths")
    assert plugin.distribution("gml") == ("more-formats", "2.0")


def test_a_format_of_tables_can_be_a_plug_in(plugin: Registry[FileFormat], tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.jsonl"
    nodes.write_text('{"id": "a", "topic": "x"}\n{"id": "b", "topic": ""}\n')
    edges = tmp_path / "edges.csv"
    edges.write_text("a,b\n")
    tables = read_tables(edges, nodes, label="topic")
    assert (tables.graph.names, tables.labels.tolist()) == (("a", "b"), [0, -1])
    nodes.write_text('{"id": "a", "topic": "x"}\n{"id": "a", "topic": ""}\n')
    with pytest.raises(UsageError, match=r"nodes\.jsonl, line 2, column 'id': .* occurs twice"):
        read_tables(edges, nodes, label="topic")


def test_a_reader_of_a_plug_in_that_returns_something_else_is_refused(
    plugin: Registry[FileFormat], tmp_path: Path
) -> None:
    path = tmp_path / "graph.www"
    path.write_text('{"id": "a"}\n')
    with pytest.raises(UsageError, match=r"The reader of wrong must return a RawGraph"):
        read_tables(path, None, label=None)
    graph = tmp_path / "nodes.jsonl"
    graph.write_text('{"id": "a"}\n')
    plugin.add("jsonl", FileFormat("lines", lambda path: [], whole=False))  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"The reader of lines must return a Sheet"):
        read_tables(None, graph, label=None)


def test_a_plug_in_does_not_replace_a_built_in_format(
    plugin: Registry[FileFormat], tmp_path: Path
) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n")
    assert format_of(path) is FILE_FORMATS["csv"]
    assert "more_formats" not in sys.modules


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("zzz", "'zzz' must be a FileFormat, not a str"),
        ("yyy", "AttributeError: .*repair or uninstall more-formats"),
    ],
)
def test_a_broken_plug_in_is_named_when_its_format_is_needed(
    plugin: Registry[FileFormat], tmp_path: Path, ending: str, expected: str
) -> None:
    path = tmp_path / f"edges.{ending}"
    path.write_text("a,b\n")
    with pytest.raises(UsageError, match=rf"edges\.{ending} cannot be read\. .*{expected}"):
        read_tables(path, None, label=None)
    other = tmp_path / "edges.unknown"
    other.write_text("a,b\n")
    assert read_tables(other, None, label=None).graph.edges == 1


def _csv() -> dict[str, bytes]:
    return {"edges.csv": EDGES.encode(), "nodes.csv": NODES.encode()}


def _gzip() -> dict[str, bytes]:
    return {name + ".gz": gzip.compress(data, mtime=0) for name, data in _csv().items()}


def _parquet() -> dict[str, bytes]:
    def packed(**columns: list[object]) -> bytes:
        stream = io.BytesIO()
        parquet.write_table(pa.table(columns), stream)
        return stream.getvalue()

    return {
        "edges.parquet": packed(source=[1, 2, 3], target=[2, 3, 4], weight=[1.0, 2.0, 0.5]),
        "nodes.parquet": packed(
            id=[1, 2, 3, 4],
            age=[1.5, None, 2.0, 3.0],
            title=["one two", "two", None, "three"],
            topic=["x", "y", None, None],
        ),
    }


def _saved(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _arrow() -> dict[str, bytes]:
    return {name.replace("parquet", "feather"): _feather(data) for name, data in _parquet().items()}


def _feather(data: bytes) -> bytes:
    stream = io.BytesIO()
    feather.write_feather(parquet.read_table(io.BytesIO(data)), stream)
    return stream.getvalue()


def _json_lines() -> dict[str, bytes]:
    return {
        name.replace("csv", "jsonl"): "".join(
            json.dumps(row) + "\n" for row in csv.DictReader(io.StringIO(text))
        ).encode()
        for name, text in (("edges.csv", EDGES), ("nodes.csv", NODES))
    }


def _npz_pieces() -> dict[str, bytes]:
    pieces = {}
    for name, matrix in (
        ("adj", sp.csr_array(np.eye(4, k=1))),
        ("attr", sp.csr_array(np.eye(4, 6))),
    ):
        pieces |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices")}
        pieces |= {f"{name}_indptr": matrix.indptr, f"{name}_shape": np.array(matrix.shape)}
    return {"graph.npz": _saved(**pieces, labels=np.array([0, 1, -1, 1]))}


def _npz_edges() -> dict[str, bytes]:
    return {
        "graph.npz": _saved(
            edges=np.array([[0, 1], [1, 2]]),
            node_features=np.arange(12.0).reshape(4, 3),
            node_labels=np.array([0, 1, 0, 1]),
            train_masks=np.ones((2, 4), dtype=bool),
        )
    }


def _xml(kind: str) -> dict[str, bytes]:
    graph = nx.Graph()
    graph.add_nodes_from((f"n{i}", {"age": i / 2, "topic": "xy"[i % 2]}) for i in range(4))
    graph.add_edges_from([("n0", "n1", {"weight": 2.0}), ("n1", "n2", {"weight": 1.0})])
    stream = io.BytesIO()
    (nx.write_graphml if kind == "graphml" else nx.write_gexf)(graph, stream)
    return {f"graph.{kind}": stream.getvalue()}


def _edge_list() -> dict[str, bytes]:
    return {"graph.edgelist": b"a b {'weight': 2.0}\nb c {}\nc d {'weight': 0.5}\n"}


FORMS: dict[str, Callable[[], dict[str, bytes]]] = {
    "csv": _csv,
    "gzip": _gzip,
    "parquet": _parquet,
    "arrow": _arrow,
    "json lines": _json_lines,
    "npz pieces": _npz_pieces,
    "npz edges": _npz_edges,
    "graphml": lambda: _xml("graphml"),
    "gexf": lambda: _xml("gexf"),
    "edge list": _edge_list,
}


TRIES = 320


PIECES = [
    b'"',
    b",",
    b"\n",
    b"\t",
    b";",
    b"\r",
    b"\0",
    b"\xff",
    b"nan",
    b"-1",
    b"1e999",
    b"{",
    b"<",
]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, a piece put in, taken out, doubled or cut off."""
    data_bytes = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(data_bytes) + 1))
        end = min(len(data_bytes), at + int(rng.integers(1, 12)))
        match int(rng.integers(0, 6)):
            case 0:
                data_bytes[at:end] = rng.bytes(end - at)
            case 1:
                data_bytes[at:at] = PIECES[int(rng.integers(0, len(PIECES)))]
            case 2:
                del data_bytes[at:end]
            case 3:
                data_bytes[at:at] = data_bytes[at:end]
            case 4:
                del data_bytes[at:]
            case 5 if at < len(data_bytes):
                data_bytes[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(data_bytes)


def outcome(folder: Path, files: dict[str, bytes], text: list[str]) -> str:
    """What reading came to: "" if it went well; anything but a sentence is a failure."""
    paths = [folder / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.write_bytes(data)
    edges, nodes = paths if len(paths) == 2 else (paths[0], None)
    try:
        tables = read_tables(edges, nodes, label="topic" if nodes else None, text=text)
    except UsageError as error:
        said = str(error)
        assert all(line.endswith((".", "?", ":")) for line in said.splitlines())
        assert said.strip()
        return said
    assert tables.labels.size == tables.graph.n == len(tables.graph.names or ())
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_mutations_read_well_or_say_why_not(form: str, tmp_path: Path) -> None:
    good = FORMS[form]()
    text = ["title"] if len(good) == 2 else []
    assert outcome(tmp_path, good, text) == ""
    rng = np.random.default_rng(len(form))
    refused = 0
    for _ in range(TRIES):
        name = list(good)[int(rng.integers(0, len(good)))]
        bad = {**good, name: mutated(good[name], rng)}
        try:
            refused += outcome(tmp_path, bad, text) != ""
        except Exception as error:
            raise AssertionError(f"{name}: {bad[name]!r}") from error
    assert refused > TRIES / 5


@pytest.mark.slow
@pytest.mark.parametrize("form", ["npz pieces", "npz edges"])
def test_arrays_mutated_inside_a_sound_archive(form: str, tmp_path: Path) -> None:
    """Past the archive's checksums: headers that lie, numbers that cannot be."""
    with zipfile.ZipFile(io.BytesIO(FORMS[form]()["graph.npz"])) as archive:
        good = {name: archive.read(name) for name in archive.namelist()}
    rng = np.random.default_rng(len(form))
    for _ in range(TRIES // 2):
        name = list(good)[int(rng.integers(0, len(good)))]
        raw = bytearray(good[name])
        start = int(rng.choice([0, 128]))  # the header, or what comes after it
        raw[int(rng.integers(start, len(raw)))] ^= 1 << int(rng.integers(0, 8))
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for member, data in {**good, name: bytes(raw)}.items():
                archive.writestr(member, data)
        try:
            outcome(tmp_path, {"graph.npz": stream.getvalue()}, [])
        except Exception as error:
            raise AssertionError(f"{name}: {bytes(raw)!r}") from error


CELL = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", "a", "b", "1", "-1", "nan", "1e400", '"', "source", "id", "{}", "#", "0.0"]
    ),
)


TABLE = st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=6)


@pytest.mark.slow
@seed(5)
@settings(
    max_examples=250,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(edges=TABLE, nodes=TABLE, delimiter=st.sampled_from(",\t; "))
def test_any_table_reads_well_or_says_why_not(
    tmp_path: Path, edges: list[list[str]], nodes: list[list[str]], delimiter: str
) -> None:
    def written(table: list[list[str]]) -> bytes:
        rows = (delimiter.join(row) for row in table)
        return "\n".join(rows).encode(errors="surrogatepass")

    outcome(tmp_path, {"edges.csv": written(edges), "nodes.csv": written([["id"], *nodes])}, [])
    outcome(tmp_path, {"edges.csv": written(edges)}, [])


@pytest.mark.slow
def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", stream.getvalue())
    with pytest.raises(UsageError, match=r"claims the shape \(1000000000000,\).*room for 0"):
        read_tables(path, None, label=None)
