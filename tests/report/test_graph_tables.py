from __future__ import annotations

from kryograph.experiments.graph_accuracy import GRAPH_METHODS
from kryograph.experiments.graph_summary import summarise_rows
from kryograph.report.graph_tables import (
    ReportTable,
    method_label,
    narrow_tables,
    summary_tables,
)
from tests.tiny_graphs import made_rows


def table(title: str) -> ReportTable:
    tables = summary_tables(summarise_rows(made_rows()))
    [found] = [one for one in tables if one.title.startswith(title)]
    return found


def test_methods_have_different_labels() -> None:
    assert method_label("portfolio") == "portfolio"
    assert method_label("prototypes:representation=sum,rounds=5") == "prototypes sum"
    assert len({method_label(method) for method in GRAPH_METHODS}) == len(GRAPH_METHODS)


def test_accuracy_has_a_row_for_each_setting() -> None:
    found = table("Accuracy")
    assert found.headings == (
        *("graph", "labels", "portfolio", "best head", "regret", "best reference"),
        *("diffused-logistic features", "lp", "prototypes sum"),
    )
    assert found.rows == (
        ("a", "3", "65.0", "65.0", "0.0", "65.0", "65.0", "40.0", "65.0"),
        ("a", "10", "80.0", "84.0", "4.0", "70.0", "70.0", "–", "84.0"),
        ("b <1>", "3", "90.0", "80.0", "−10.0", "50.0", "50.0", "–", "80.0"),
    )


def test_the_other_tables_by_hand() -> None:
    assert table("Regret").rows[0] == ("best head", "−2.0", "0.0", "4.0", "−5.0", "4.0")
    assert table("Portfolio less").rows == (
        ("diffused-logistic features", "+16.7"),
        ("lp", "+20.0"),
    )
    assert ("90 % sets hold the class, %", "90.0", "90.0", "90.0") in table("The portfolio").rows
    assert ("classes in a set", "1.50", "1.50", "1.50") in table("The portfolio").rows
    time = table("Processor time")
    assert time.headings[:4] == ("graph", "nodes", "basis", "portfolio")
    assert time.rows[0][:4] == ("a", "60", "0.25", "0.50")
    assert time.rows[1][2] == "–"


def test_empty_tables_are_left_out() -> None:
    assert summary_tables(summarise_rows([])) == []


def test_a_wide_table_is_divided_and_its_first_columns_are_repeated() -> None:
    columns = tuple(f"a long heading {number}" for number in range(15))
    wide = ReportTable("T", ("graph", "labels", *columns), (("x", "3", *columns),))
    parts = list(narrow_tables(wide))
    assert len(parts) > 1
    assert [part.title for part in parts] == ["T", *["T (continued)"] * (len(parts) - 1)]
    assert all(part.rows[0][:2] == ("x", "3") for part in parts)
    assert tuple(cell for part in parts for cell in part.rows[0][2:]) == columns
    for part in parts:
        assert (
            sum(max(len(c) for c in column) + 3 for column in zip(*part.rows, strict=True)) <= 100
        )
    narrow = ReportTable("T", ("reference", "lead"), (("lp", "+1.0"),))
    assert list(narrow_tables(narrow)) == [narrow]
