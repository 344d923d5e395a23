"""`kryograph.experiments.graph_rows`: what is written is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.experiments.graph_rows import GraphRow, append_row, read_rows
from tests.tiny_graphs import made_rows


def test_the_file_holds_every_kind_of_value(tmp_path: Path) -> None:
    rows = made_rows()
    for row in rows:
        append_row(tmp_path / "rows.csv", row)
    assert read_rows(tmp_path / "rows.csv", GraphRow) == rows
    assert read_rows(tmp_path / "none.csv", GraphRow) == []


def test_the_file_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UsageError, match="was not written by `kryograph bench graphs`"):
        read_rows(tmp_path / "other.csv", GraphRow)
