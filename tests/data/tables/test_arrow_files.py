from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from kryograph.data.tables import read_tables
from kryograph.data.tables.arrow_files import numbered_row, read_arrow, sheet_of_arrow
from kryograph.errors import UsageError

TABLE = pa.table({"id": ["a", "b"], "x": [1.5, 2.5], "kind": pa.array(["u", "v"])})


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_files(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "nodes.feather"
    feather.write_feather(TABLE, path, compression=compression)
    sheet = read_arrow(path)
    assert (sheet.names, sheet.rows, sheet.place(1)) == (("id", "x", "kind"), 2, "row 2")
    renamed = path.rename(tmp_path / "nodes.data")  # recognised by its first bytes
    assert read_tables(None, renamed).graph.names == ("a", "b")


def test_streams(tmp_path: Path) -> None:
    path = tmp_path / "nodes.arrow"
    with pa.ipc.new_stream(str(path), TABLE.schema) as stream:
        stream.write_table(TABLE)
    assert read_arrow(path).keys("id").to_pylist() == ["a", "b"]
    path.write_bytes(path.read_bytes()[:-40])
    path.write_bytes(b"ARROW1" + b"\0" * 40)
    with pytest.raises(UsageError, match=r"nodes.arrow is damaged or not Arrow"):
        read_arrow(path)


def test_text_of_all_types_becomes_one() -> None:
    table = pa.table(
        {
            "large": pa.array(["a", "b"], pa.large_string()),
            "view": pa.array(["a", "b"], pa.string_view()),
            "words": pa.array(["a", None]).dictionary_encode(),
            "numbers": pa.array([7, 8]).dictionary_encode(),
        }
    )
    sheet = sheet_of_arrow(table, "nodes")
    types = [str(sheet.arrow_type(name)) for name in sheet.names]
    assert types == ["string", "string", "string", "int64"]
    assert sheet.text("words").to_pylist() == ["a", ""]
    assert sheet.title == "nodes"


def test_names_and_rows_of_tables() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["", "__index_level_0__"])
    assert sheet_of_arrow(table, "nodes").names == ("column 1", "column 2")
    with pytest.raises(UsageError, match="nodes has a header but no rows"):
        sheet_of_arrow(TABLE.slice(0, 0), "nodes")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(UsageError, match="nodes has the column 'a' more than once"):
        sheet_of_arrow(twice, "nodes")
    assert numbered_row(0) == "row 1"
