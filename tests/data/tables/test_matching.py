from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import parquet

from kryograph.data.tables.roles import plain
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import EDGES, NODES, pairs, read, read_people, sentence


def test_what_all_these_files_were_before_they_were_broken(tmp_path: Path) -> None:
    tables = read_people(tmp_path, EDGES, NODES)
    assert tables.graph.names == ("a", "b", "c", "d")
    assert tables.graph.adjacency[1, 2] == 2.5


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (
            EDGES + "d,zz,1\nq,a,1\na,q,1\n",
            r"edges.csv, line 5, column 'target': there is no node 'zz' in .*nodes.csv "
            r"\(2 more edges like this\)",
        ),
        (
            EDGES + "q,a,1\n",
            r"line 5, column 'source': there is no node 'q' in [^(]*nodes.csv\. Add --absent-nodes "
            r"add to read them as nodes without attributes, or --absent-nodes drop to leave the "
            r"edges out\.$",
        ),
        (EDGES + ",a,1\n", r"edges.csv, line 5, column 'source': the id of a node is empty"),
        (
            EDGES + "a,b\n",
            r"edges.csv, line 5, column 2: it ends after 2 columns \('b'\), but line 1 has 3; "
            r"is the file cut off\?",
        ),
        (EDGES + "a,b,1,7\nb,c,1\n", r"edges.csv, line 5, column 4: it ends after 4 columns"),
        (
            EDGES + "a,b,two\n" + "a,b,2\n" * 30,
            r"edges.csv, line 5, column 'weight': 'two' is not a number",
        ),
        (EDGES + "a,b,nan\n", r"edges.csv, line 5, column 'weight': 'nan' is not a finite number"),
        (EDGES + "a,b,-inf\n", r"line 5, column 'weight': '-inf' is not a finite"),
        (EDGES + "a,b,1e300\n", r"line 5, column 'weight': '1e300' is too large"),
        (
            EDGES + "a,b,-1\n",
            r"line 5, column 'weight': the weight -1 is not positive.*--weight none",
        ),
        (EDGES + "a,b,-2\na,b,-2\n", r"line 5, .*the weight -2 is .* \(1 more cell like this\)"),
        (EDGES + "a,b,\n", r"line 5, column 'weight': the weight is empty"),
        ("\n\n" + EDGES + '"a\n",b,-2\n', r"line 7, column 'weight': the weight -2 is not"),
        ("# one\n# two\n" + EDGES + "a,b,-2\n", r"line 7, column 'weight'"),
        ("source\na\n", r"edges.csv has 1 column; edges need two"),
        ("", r"edges.csv is empty\.$"),
        ("\n \n\n", r"edges.csv is empty: .*blank"),
        ("# nothing\n", r"edges.csv has 1 lines? of comment, but no rows"),
        ("source,target\n", r"edges.csv has a header, line 1, but no rows"),
        (
            "source,source,target\na,b,c\n",
            r"edges.csv, line 1: 'source' stands more than once",
        ),
        (
            'source,target\na,"b\nb,c\n',
            r"edges.csv, line 2: a quotation mark is opened here and never closed",
        ),
        (
            b"\x00\x01\x02\x03" * 99,
            r"edges.csv, line 1, byte 1: a zero byte; this is not a text file",
        ),
        (EDGES.encode("utf-16"), r"edges.csv is in UTF-16.*save it as UTF-8"),
        (
            EDGES.encode() + "a,Zoë,1\n".encode("latin-1"),
            r"edges.csv, line 5, byte 5: the byte 0xEB is not UTF-8; save the file as UTF-8",
        ),
        (
            gzip.compress(EDGES.encode() * 50, mtime=0)[:-20],
            r"edges.csv is cut off: its gzip data end too early",
        ),
        (b"\x1f\x8b" + b"junk" * 9, r"edges.csv is damaged: its gzip data are wrong"),
        (gzip.compress(b"", mtime=0), r"edges.csv is empty"),
        (b"PAR1" + b"\0" * 40, r"edges.csv is cut off or not Parquet"),
        (b"PAR1" + b"\7" * 40 + b"PAR1", r"edges.csv is damaged or not Parquet"),
        (b"PK\x03\x04" + b"\7" * 40, r"edges.csv is a zip archive: unpack it first"),
    ],
)
def test_bad_edges(tmp_path: Path, edges: str | bytes, expected: str) -> None:
    assert re.search(expected, sentence(tmp_path, edges, NODES))


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


def test_without_a_node_table_nodes_come_in_order_of_appearance(tmp_path: Path) -> None:
    tables = read(tmp_path, "z,y\nb,z\na,b\n", None)
    assert tables.graph.names == ("z", "y", "b", "a")
    assert isinstance(tables.graph.features, sp.csr_array)
    np.testing.assert_array_equal(tables.graph.features.toarray(), np.eye(4))
    assert tables.labels.tolist() == [UNKNOWN] * 4
    assert tables.classes == ()


def test_without_edges_every_node_stands_alone(tmp_path: Path) -> None:
    tables = read(tmp_path, None, "id,x\n1,5\n2,6\n3,7\n")
    assert tables.graph.edges == 0
    assert "There are no edges: every node stands alone." in tables.notes


def test_names_of_columns_are_reduced() -> None:
    assert plain("From_Node Id") == "fromnodeid"
