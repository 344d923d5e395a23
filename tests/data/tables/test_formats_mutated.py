"""Mutations of good files, thousands of them: each reads well, or says why not in a sentence."""

from __future__ import annotations

import gzip
import io
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
from pyarrow import parquet

from kryograph.data.tables import read_tables
from kryograph.errors import UsageError

pytestmark = pytest.mark.slow

EDGES = "source,target,weight\na,b,1\nb,c,2.5\nc,d,1\n"
NODES = "id,age,colour,title,topic\na,1,red,one two,x\nb,2,blue,two three,\nc,,red,,y\nd,4,,four,\n"


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
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(found) + 1))
        end = min(len(found), at + int(rng.integers(1, 12)))
        match int(rng.integers(0, 6)):
            case 0:
                found[at:end] = rng.bytes(end - at)
            case 1:
                found[at:at] = PIECES[int(rng.integers(0, len(PIECES)))]
            case 2:
                del found[at:end]
            case 3:
                found[at:at] = found[at:end]
            case 4:
                del found[at:]
            case 5 if at < len(found):
                found[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(found)


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
        assert said.strip()
        assert "\n" not in said
        return said
    assert tables.labels.size == tables.graph.n == len(tables.graph.names or ())
    return ""


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
