from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.data.tables import read_tables
from kryograph.data.tables.json_lines import read_json_lines
from kryograph.data.tables.sheet import Sheet
from kryograph.errors import UsageError


def read(folder: Path, text: str) -> Sheet:
    path = folder / "nodes.jsonl"
    path.write_text(text, "utf-8")
    return read_json_lines(path)


def test_objects_are_rows(tmp_path: Path) -> None:
    sheet = read(tmp_path, '{"id": 7, "x": 1.5}\n\n{"id": 8, "tags": [1, 2]}\n')
    assert sheet.names == ("id", "x", "tags")
    assert sheet.keys("id").to_pylist() == ["7", "8"]
    assert sheet.place(1) == "line 3"


def test_text_that_looks_like_a_date_stays_text(tmp_path: Path) -> None:
    sheet = read(tmp_path, '{"x": 1, "id": "2024-01-01"}\n{"x": 2, "id": "2024-01-02"}\n')
    assert sheet.names == ("x", "id")
    assert sheet.keys("id").to_pylist() == ["2024-01-01", "2024-01-02"]


def test_mixed_columns_become_text(tmp_path: Path) -> None:
    sheet = read(tmp_path, '{"id": 7, "x": 1}\n{"id": "8", "x": 2.5}\n{"x": null}\n')
    assert sheet.keys("id").to_pylist() == ["7", "8", ""]
    numbers = sheet.numbers("x")
    assert numbers is not None
    assert numbers.dense()[:2].tolist() == [1, 2.5]
    odd = read(tmp_path, '{"id": "\\ud800"}\n{"id": [1]}\n')
    assert odd.rows == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]\n", r"nodes.jsonl, line 1: a line must hold a JSON object"),
        ('{"id": 7}\n{"id": \n', r"nodes.jsonl, line 2, byte 8: it is not JSON"),
        ('{"id": 7}\n[1]\n', r"nodes.jsonl, line 2: it holds no JSON object"),
        ('{"id": 7} {"id": 8}\n', r"nodes.jsonl, line 1, byte 11: it is not JSON \(Extra data\)"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read(tmp_path, text)


def test_edges_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "edges.ndjson"
    path.write_text('{"from": "a", "to": "b", "amount": 3}\n{"from": "b", "to": "c"}\n')
    tables = read_tables(path)
    assert tables.graph.names == ("a", "b", "c")
    assert "amount -> number" in str(tables.plan)
