"""The tables that come with kryograph are whole, and a wrong one is explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kryograph.data.catalogue import DATASETS
from kryograph.errors import UsageError
from kryograph.experiments import TABLES, table_titles
from kryograph.experiments.published import find_published, published
from kryograph.experiments.result_tables import (
    export_rows,
    find_table,
    parse_result_table,
    result_table,
)
from kryograph.experiments.tuned import read_tuned
from kryograph.runs.store import read_csv
from kryograph.systems import SYSTEMS
from tests.made_runs import rows

GOOD = """
title = "Mine"
source = "me"
protocol = "validation"
columns = [
    { name = "A 1%", dataset = "cora", split = "1%" },
    { name = "B", dataset = "synthetic", split = "public" },
]
[published]
gcn = [50, nan]
"""


def test_every_published_number_is_there() -> None:
    shapes = {
        name: (len(result_table(name).systems), len(result_table(name).headings)) for name in TABLES
    }
    assert shapes == {"table1": (14, 16), "table2": (13, 11), "leak": (3, 4)}
    printed = {
        name: sum(cell.paper is not None for cell in result_table(name).cells) for name in TABLES
    }
    assert printed == {"table1": 218, "table2": 143, "leak": 12}


def test_the_six_blanks() -> None:
    blank = {(c.system, c.heading) for c in result_table("table1").cells if c.paper is None}
    columns = ("Cora 5%", "CiteSeer 5%", "PubMed 0.3%")
    assert blank == {(s, heading) for s in ("multi-stage", "m3s") for heading in columns}


def test_the_two_tables_have_all_systems_of_the_paper() -> None:
    # gpnn is in the paper's text, in no table; the others are ours or younger.
    ours = {"gpnn", "deep-krylov", "prototypes", "blend", "pool", "trees", "diffused-logistic"}
    ours |= {"correct-and-smooth", "linear-gnn"}
    assert (
        set(result_table("table1").systems) | set(result_table("table2").systems)
        == set(SYSTEMS) - ours
    )


@pytest.mark.parametrize("name", TABLES)
def test_every_name_resolves(name: str) -> None:
    for cell in result_table(name).cells:
        assert cell.system in SYSTEMS
        assert cell.scenario.dataset in DATASETS


@pytest.mark.parametrize("name", ["table1", "table2"])
def test_the_table_prints_what_the_settings_print(name: str) -> None:
    """The 81 published settings carry the same accuracies with one digit more."""
    rows = [
        row
        for cell in result_table(name).cells
        if (row := find_published(cell.system, cell.scenario))
    ]
    assert len(rows) == {"table1": 48, "table2": 33}[name]
    for cell in result_table(name).cells:
        row = find_published(cell.system, cell.scenario)
        if row is not None and cell.paper is not None:
            assert cell.paper == pytest.approx(row.accuracy, abs=0.0006)
    assert len(published()) == 81


def test_every_tuned_setting_is_accepted_by_its_system() -> None:
    cells = {(c.system, c.scenario) for name in TABLES for c in result_table(name).cells}
    found = [(tuned.system.name, tuned.scenario) for tuned in read_tuned()]
    assert set(found) <= cells
    assert len(set(found)) == len(found)


def test_landmarks() -> None:
    assert result_table("table2").cell("truncated-krylov", "Cora 0.5%").paper == 0.739
    assert result_table("table1").cell("gcn-dvat", "Cora 0.5%").paper == 0.49
    public = result_table("table2").cell("gcn", "PubMed 0.3%")
    assert (public.scenario.split, public.label_rate) == ("public", "0.3%")
    assert result_table("table1").cell("gcn", "PubMed 0.3%").scenario.split == "0.3%"


def test_cells_are_found_however_they_are_written() -> None:
    cells = result_table("table2").part(["GCN", "lnet"], ["cora1%", "pubmed 0.3%"])
    assert [str(cell) for cell in cells] == [
        "gcn, Cora 1%",
        "gcn, PubMed 0.3%",
        "lnet, Cora 1%",
        "lnet, PubMed 0.3%",
    ]
    assert len(result_table("table2").part()) == 143


def test_a_column_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"Unknown column 'Cora 2%': did you mean .*'Cora 1%'"):
        result_table("table2").part(headings=["Cora 2%"])
    with pytest.raises(UsageError, match=r"Unknown system in this table 'm3s'"):
        result_table("table2").part(systems=["m3s"])
    with pytest.raises(UsageError, match=r"Unknown table 'table3'"):
        result_table("table3")


def test_titles_are_those_of_the_tables() -> None:
    assert table_titles() == {name: result_table(name).title for name in TABLES}


def test_find_table_takes_a_name_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert find_table("table2") is result_table("table2")
    assert find_table(str(path)).title == "Mine"


def test_export_rows_has_a_file_for_each_table_and_loses_none(tmp_path: Path) -> None:
    inside = rows({("gcn", "Cora 1%"): [0.5, 0.6]})
    outside = replace(inside[0], dataset="synthetic")
    folder = tmp_path / "exported"
    assert export_rows(folder, [*inside, outside]) == {
        folder / "table2.csv": 2,
        folder / "other.csv": 1,
    }
    assert read_csv(folder / "table2.csv") == inside
    with pytest.raises(UsageError, match=r"table2.csv has 1 runs that the store does not have"):
        export_rows(folder, [inside[0], outside])


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    mine = find_table(str(path))
    assert (mine.name, mine.systems, mine.headings) == ("mine", ("gcn",), ("A 1%", "B"))
    assert [cell.paper for cell in mine.cells] == [0.5, None]
    with pytest.raises(UsageError, match=r"There is no file .*other.toml"):
        find_table(str(tmp_path / "other.toml"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'title = "Mine"',
            'titel = "Mine"',
            r"mine.toml: Unknown key 'titel': did you mean 'title'",
        ),
        ('title = "Mine"', "", r"The key 'title' is missing"),
        ("gcn =", "gnc =", r"Unknown system 'gnc': did you mean 'gcn'"),
        ("[50, nan]", "[50]", r"'gcn' must have a number for each of the 2 columns"),
        ("[50, nan]", "[50, 101]", r"'gcn' has 101, which is not an accuracy in per cent"),
        ("[50, nan]", "[50, 'x']", r"'gcn' has 'x', which is not a number"),
        ("[50, nan]", "50", r"'gcn' must have a number for each"),
        ('"validation"', '"test"', r"Unknown protocol 'test'"),
        ('"cora"', '"coar"', r"Unknown data set 'coar'"),
        ('split = "1%"', 'split = "101%"', r"more than 100%"),
        ('split = "1%"', 'spilt = "1%"', r"Unknown key of a column 'spilt'"),
        ('name = "B"', 'name = "A 1%"', r"Two columns have the name 'A 1%'"),
        ("columns = [", "columns = ", r"mine.toml is not TOML"),
        ("[published]", "[[published]]", r"'columns' must be a list and 'published' a table"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError, match=said):
        parse_result_table(GOOD.replace(old, new, 1), "mine", "mine.toml")
