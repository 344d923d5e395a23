from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from kryograph.data.tables.delimited import read_delimited
from kryograph.data.tables.formats import contents, format_of
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import block, read

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


@pytest.mark.parametrize("nodes", FORMS)
@pytest.mark.parametrize("edges", FORMS)
def test_every_form_gives_the_same_graph(tmp_path: Path, edges: str, nodes: str) -> None:
    tables = read(tmp_path, FORMS[edges](EDGES), FORMS[nodes](NODES), label="topic")
    assert tables.graph.names == ("c c", "7", "b", "d")
    expected = [[0, 1, 2.5, 0], [1, 0, 1, 0], [2.5, 1, 0, 0], [0, 0, 0, 0]]
    assert tables.graph.adjacency.toarray().tolist() == expected
    assert tables.labels.tolist() == [0, UNKNOWN, 1, UNKNOWN]
    assert tables.classes == ("x", "y")
    assert block(tables.columns, "numbers")["names"] == ["age"]
    assert "1 node without an edge." in tables.notes


def test_a_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    nodes = f'id,title\na,"{"word " * 2_000_000}"\nb,other\n'
    path = tmp_path / "nodes.csv"
    path.write_text(nodes)
    assert len(contents(path)) > 8 << 20
    assert read_delimited(path).rows == 3
    assert format_of(path).title == "table of text"
