from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kryograph.data.tables.faults import Faults, TableFaults
from kryograph.data.tables.kinds import ColumnKind, recognise, recognise_columns
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.plan import Plan
from kryograph.data.tables.sheet import NumberColumn
from kryograph.errors import UsageError
from tests.data.tables.examples import sheet

ROWS = 200


def kind_of(cells: Any, kind: str | None = None) -> ColumnKind:
    return recognise(sheet(x=cells), "x", kind)


@pytest.mark.parametrize(
    ("cells", "kind", "detail"),
    [
        ([str(at % 7) for at in range(ROWS)], "number", ""),
        ([at / 7 for at in range(ROWS)], "number", ""),
        (["1", "", "2"] * 50, "number", "50 empty"),
        ([True, False] * 9, "boolean", ""),
        (["true", "FALSE", ""] * 9, "boolean", "9 empty"),
        (["yes", "no"] * 9, "category", "2 values"),
        (["a", "b", ""] * 9, "category", "2 values, 9 empty"),
        ([f"k{at % 50}" for at in range(ROWS)], "category", "50 values"),
        (["2024-01-01", "2024-02-01"] * 9, "date", ""),
        ([date(2024, 1, at + 1) for at in range(9)], "date", ""),
        ([[1.0, 2.0], [3.0, 4.0]], "vector", "2 numbers"),
        (["[1, 2]", "[3, 4]"], "vector", "2 numbers"),
        ([f"four words and {at}" for at in range(9)], "text", "4 words on average"),
        (["one of the categories", "another of the categories"] * 9, "category", "2 values"),
        ([f"name {at % 90} of" for at in range(ROWS)], "text", "90 different values"),
        (["0"] * 9, "number", ""),  # a word that another table may have
    ],
)
def test_kinds_are_recognised(cells: Any, kind: str, detail: str) -> None:
    assert kind_of(cells) == ColumnKind(kind, detail)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["", " "], "every cell is empty"),
        ([None, None], "every cell is empty"),
        (["a", "a"], "all cells are equal"),
        ([3.5, 3.5], "all cells are equal"),
        ([f"https://example.org/{at}" for at in range(ROWS)], "every value is different"),
        (
            [f"name {at % 150}" for at in range(ROWS)],
            "150 different values; --text x reads them as text",
        ),
    ],
)
def test_columns_that_say_nothing_are_not_used(cells: Any, reason: str) -> None:
    assert kind_of(cells) == ColumnKind(None, reason)


def test_ids_and_indexes_only_name_the_rows() -> None:
    table = sheet(
        **{
            "user_id": [at * 7 for at in range(9)],
            "column 1": [at + 3 for at in range(9)],
            "column 2": [at / 7 for at in range(9)],
            "year": [1990 + at for at in range(9)],
        }
    )
    kinds = [recognise(table, name).kind for name in table.names]
    assert kinds == [None, None, "number", "number"]


def test_the_caller_overrules_the_guess() -> None:
    assert kind_of(["1", "2"], "category").kind == "category"
    assert kind_of([f"u{at}" for at in range(30)], "text").kind == "text"
    assert kind_of(["a", "a"], "category").kind == "category"
    assert kind_of(["1 2", "3 4"], "vector") == ColumnKind("vector", "2 numbers")
    with pytest.raises(UsageError, match=r"line 2, column 'x': 'a' is not a number.*\(1 more"):
        kind_of(["a", "b"], "number")
    with pytest.raises(UsageError, match="more than 50 different values"):
        kind_of([f"u{at}" for at in range(60)], "category")


def test_all_faults_of_a_table_are_collected() -> None:
    table = sheet(
        good=["1", "2", "3"],
        when=["31/12/2024", "01/02/2024", ""],
        tags=[["a"], ["b"], ["c"]],
        vector=[[1.0], [1.0, 2.0], None],
        other=["x", "y", "x"],
    )
    faults = Faults()
    options = TableOptions(ignore=["other"])
    kinds = recognise_columns(table, {"id"}, options, faults)
    assert kinds["good"].kind == "number"
    assert kinds["other"] == ColumnKind(None, "--ignore")
    with pytest.raises(TableFaults) as raised:
        faults.raise_if_any(Plan())
    lines = str(raised.value).splitlines()
    assert lines[0] == "3 faults:"
    assert "column 'when': '31/12/2024' may be day-first or month-first" in lines[1]
    assert "column 'tags': it holds list<" in lines[2]
    assert "line 3, column 'vector': the vector has 2 numbers" in lines[3]


def test_a_model_knows_the_kinds() -> None:
    table = sheet(a=["1", "1"], b=["1", "2"], c=["x", "y"])
    kinds = recognise_columns(table, {"c"}, TableOptions(), Faults(), {"a": "category"})
    assert kinds == {
        "a": ColumnKind("category", "1 value"),
        "b": ColumnKind(None, "the model does not use it"),
    }


def test_sparse_columns_of_numbers() -> None:
    table = sheet(x=[1])
    table.columns["x"] = NumberColumn(3, np.array([1], np.int32), np.array([2.0]))
    table.rows = 3
    assert recognise(table, "x") == ColumnKind("number", "")
    table.columns["x"] = NumberColumn.from_dense(np.array([2.0, 2.0, 2.0]))
    assert recognise(table, "x").kind is None
    table.columns["x"] = NumberColumn.from_dense(np.array([2.0, np.nan, 3.0]))
    assert recognise(table, "x") == ColumnKind("number", "1 empty")


def test_other_types_are_refused() -> None:
    with pytest.raises(UsageError, match=r"it holds binary, .* --ignore x"):
        kind_of(pa.array([b"ab", b"cd"]))
