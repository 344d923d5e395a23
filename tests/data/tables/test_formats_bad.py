"""Whatever is wrong with a person's files: one sentence that says where, and nothing else."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from kryograph.data.tables import Tables, check_for_fit, read_tables
from kryograph.data.tables.delimited import read_delimited
from kryograph.data.tables.formats import contents, kind_of
from kryograph.errors import UsageError

EDGES = "source,target,weight\na,b,1\nb,c,2.5\nc,d,1\n"
NODES = "id,age,colour,title,topic\na,1,red,one two,x\nb,2,blue,two three,\nc,,red,,y\nd,4,,four,\n"


def read(
    folder: Path, edges: str | bytes | None, nodes: str | bytes | None, **how: object
) -> Tables:
    paths: list[Path | None] = []
    for name, content in (("edges.csv", edges), ("nodes.csv", nodes)):
        if content is None:
            paths.append(None)
            continue
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    options: dict[str, object] = {"label": "topic", "text": ["title"], **how}
    if nodes is None:
        options = {"label": None, **how}
    return read_tables(*paths, **options)  # type: ignore[arg-type]


def sentence(
    folder: Path, edges: str | bytes | None, nodes: str | bytes | None, **how: object
) -> str:
    with pytest.raises(UsageError) as raised:
        read(folder, edges, nodes, **how)
    said = str(raised.value)
    assert "\n" not in said
    assert said.endswith((".", "?"))
    return said


def test_what_all_these_files_were_before_they_were_broken(tmp_path: Path) -> None:
    tables = read(tmp_path, EDGES, NODES)
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
        (EDGES + "q,a,1\n", r"line 5, column 'source': there is no node 'q' in [^(]*nodes.csv\.$"),
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
            r"line 5, column 'weight': the weight -1 is not positive.*--ignore weight",
        ),
        (EDGES + "a,b,0\n", r"line 5, column 'weight': the weight 0 is not positive"),
        (EDGES + "a,b,\n", r"line 5, column 'weight': the weight is empty"),
        ("\n\n" + EDGES + '"a\n",b,0\n', r"line 7, column 'weight': the weight 0 is not positive"),
        ("# one\n# two\n" + EDGES + "a,b,0\n", r"line 7, column 'weight'"),
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


@pytest.mark.parametrize(
    ("nodes", "how", "expected"),
    [
        (
            NODES + "b,1,red,x,y\n",
            {},
            r"nodes.csv, line 6, column 'id': the node id 'b' occurs twice, first on line 3",
        ),
        (NODES + ",1,red,x,y\n", {}, r"nodes.csv, line 6, column 'id': the id is empty"),
        (
            NODES + "e,old,red,x,y\n" + "".join(f"{i},{i},red,,\n" for i in range(50)),
            {},
            r"nodes.csv, line 6, column 'age': 'old' is not a number; leave the cell empty",
        ),
        (
            NODES + "e,NaN,red,x,y\n",
            {},
            r"nodes.csv, line 6, column 'age': 'NaN' is not a finite number",
        ),
        (NODES + "e,inf,red,x,y\n", {}, r"line 6, column 'age': 'inf' is not a finite"),
        (NODES + "e,1e999,red,x,y\n", {}, r"line 6, column 'age': '1e999' is not a finite"),
        (NODES + "e,1,red\n", {}, r"nodes.csv, line 6, column 3: .*but line 1 has 5"),
        (
            NODES,
            {"label": "topics"},
            r"has no column 'topics' of labels: did you mean 'topic'\? There are: 'id', 'age'",
        ),
        (
            NODES,
            {"text": ["titel"]},
            r"nodes.csv has no column 'titel' of text: did you mean 'title'",
        ),
        (
            NODES,
            {"ignore": ["agee"]},
            r"nodes.csv has no column 'agee' to ignore: did you mean 'age'",
        ),
        (NODES, {"id": "ids"}, r"nodes.csv has no column 'ids' of ids: did you mean 'id'"),
        ("a,x\nb,y\n", {"label": "Y", "text": []}, r"has no column 'Y' of labels"),
        ("who,topic\na,x\n", {"label": "Topic", "text": []}, r"did you mean 'topic'"),
        (NODES, {"id": "topic"}, r"'topic' cannot be the labels and something else"),
        (NODES, {"label": "title"}, r"'title' cannot be the labels and something else"),
        (NODES, {"text": ["empty"]}, r"no column 'empty'"),
        (
            NODES.replace("one two", "").replace("two three", "").replace("four", ""),
            {},
            r"nodes.csv: there is no word in the text of 'title'",
        ),
        (
            "id,kind\n" + "".join(f"n{i},x{i}\n" for i in range(60)),
            {"label": None, "text": []},
            r"column 'kind': it has more than 50 different values.*--text kind.*--ignore kind",
        ),
        (
            "id,topic\n" + "".join(f"n{i},x{i}\n" for i in range(60)),
            {"text": []},
            r"column 'topic': more than 50 different values, too many for classes",
        ),
        (NODES.encode("utf-16"), {}, r"UTF-16"),
        (
            NODES.encode() + b"e,1,\xff,x,y\n",
            {},
            r"nodes.csv, line 6, byte 5: the byte 0xFF is not UTF-8",
        ),
        ("", {}, r"nodes.csv is empty"),
        ("id,age,colour,title,topic\n", {}, r"nodes.csv has a header, line 1, but no rows"),
        ("id,age,age,title,topic\na,1,2,x,y\n", {}, r"line 1: 'age' stands more than once"),
    ],
)
def test_bad_nodes(
    tmp_path: Path, nodes: str | bytes, how: dict[str, object], expected: str
) -> None:
    assert re.search(expected, sentence(tmp_path, None, nodes, **how))


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
    assert re.search("Give a table of edges", said(None))
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "graph.npz").write_bytes(b"PK")
    both = said(tmp_path / "graph.npz", tmp_path / "edges.csv")
    assert re.search("graph.npz brings nodes and edges with it: give it alone, without", both)


def test_parquet_says_the_row(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    table = pa.table({"id": [1, 2, 3], "age": [1.0, float("inf"), None]})
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match=r"nodes.parquet, row 2, column 'age': 'inf' is not a fin"):
        read_tables(None, path, label=None)
    parquet.write_table(pa.table({"id": [1, 2], "tags": [["a"], ["b"]]}), path)
    with pytest.raises(UsageError, match=r"column 'tags': it holds list.*--ignore"):
        read_tables(None, path, label=None)
    parquet.write_table(table.slice(0, 0), path)
    with pytest.raises(UsageError, match=r"no rows"):
        read_tables(None, path, label=None)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            "x,,x,",
            r"All labels in column 'topic' of .*nodes.csv are 'x': there must be two classes",
        ),
        (",,,", r"There are no labels in column 'topic' of .*nodes.csv"),
        ("x,y,x,y", r"All 4 nodes have a label in .*nothing is left to predict"),
    ],
)
def test_nothing_to_learn(tmp_path: Path, labels: str, expected: str) -> None:
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels.split(",")))
    tables = read(tmp_path, None, "id,topic\n" + rows, text=[])
    with pytest.raises(UsageError, match=expected):
        check_for_fit(tables)


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
    monkeypatch.setattr("kryograph.data.tables.formats._ANY_RATIO", 2 << 20)
    with pytest.raises(UsageError, match=r"unpacks to more than 2,097,152 bytes, over 200 times"):
        read_tables(path, None, label=None)


def test_a_file_that_is_packed_well_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.data.tables.formats._ANY_RATIO", 1 << 10)
    whole = "".join(f"{i},{i + 1}\n" for i in range(5000)).encode()
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(whole, 9, mtime=0))
    assert contents(path) == whole


def test_something_to_learn(tmp_path: Path) -> None:
    check_for_fit(read(tmp_path, EDGES, NODES))


def test_ten_million_categories_cost_little(tmp_path: Path) -> None:
    """A tenth of that here: the column is given up after its first rows."""
    rows = 1_000_000
    table = pa.table({"id": np.arange(rows), "kind": [f"k{i}" for i in range(rows)]})
    path = tmp_path / "nodes.parquet"
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match=r"'kind': it has more than 10,000 different values"):
        read_tables(None, path, label=None)


def test_a_row_longer_than_a_block_is_read(tmp_path: Path) -> None:
    nodes = f'id,title\na,"{"word " * 2_000_000}"\nb,other\n'
    path = tmp_path / "nodes.csv"
    path.write_text(nodes)
    assert len(contents(path)) > 8 << 20
    assert read_delimited(path).rows == 3
    assert kind_of(path).value == "a table of text"


def test_no_warning_escapes(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path, EDGES, NODES.replace("4", "1e99"))
