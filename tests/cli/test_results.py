"""`kryograph results` and `kryograph compare` as a person calls them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kryograph.cli import results as commands
from kryograph.runs.store import Store, read_csv
from kryograph.text import percent
from tests.made_runs import MIXED, NASTY, filled, rows

ROOT = Path(__file__).parents[2]
Call = Callable[..., tuple[int, str, str]]

SIX = {
    (name, heading): [base + 0.01 * seed + 0.001 * seed * (name == "snowball") for seed in range(6)]
    for name, base in (("gcn", 0.6), ("gat", 0.5), ("snowball", 0.7))
    for heading in ("Cora 1%", "Cora 3%")
}
"""Snowball is ahead by 10 to 10.5 points of GCN, by 20 to 20.5 of GAT."""


def test_a_table_in_every_format(run: Call, tmp_path: Path) -> None:
    table, store = filled(tmp_path)
    code, text, notes = run("results", table, "--store", store)
    assert code == 0
    assert "62.0 ± 5.0 (3)" in text
    assert NASTY in text
    assert "▼" in notes
    code, text, _ = run("results", table, "--store", store, "--json")
    found = json.loads(text)
    assert (code, len(found)) == (0, 12)
    wanted = "table system dataset label_rate n mean ci95 paper difference verdict settings_source"
    assert all(set(wanted.split()) <= set(each) for each in found)
    code, text, _ = run("results", table, "--store", store, "--csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [line["verdict"] for line in lines] == [each["verdict"] for each in found]
    code, text, _ = run("results", table, "--store", store, "--markdown")
    assert all(name in text for name in ("Cora 1%", "Cora 3%", "CiteSeer 1%", "`gat`"))
    page = tmp_path / "page.html"
    code, text, notes = run("results", table, "--store", store, "--html", page)
    assert (code, text) == (0, "")
    assert str(page) in notes
    assert "A small table" in page.read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("page.html", "runs.sqlite", "small.toml"),
    ]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed rows in a folder without a results store and without any data set."""
    (tmp_path / "results").mkdir()
    for file in (ROOT / "results").glob("*.csv"):
        shutil.copy(file, tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KRYOGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KRYOGRAPH_STORE", raising=False)
    return tmp_path


def test_the_readmes_numbers_are_shown_in_a_fresh_clone(run: Call, clone: Path) -> None:
    public = "Cora 5.2%,CiteSeer 3.6%,PubMed 0.3%"
    options = ("--settings", "default", "--columns", public, "--json")
    code, text, notes = run("results", "table2", *options)
    assert code == 0
    assert "There is no results/runs.sqlite yet" in notes
    readme = (ROOT / "README.md").read_text("utf-8")
    for system in ("truncated-krylov", "snowball", "linear-snowball"):
        cells = [cell for cell in json.loads(text) if cell["system"] == system]
        shown = "|".join(
            " {} ({} to {}) ".format(*map(percent, (cell["mean"], *cell["ci95"]))) for cell in cells
        )
        assert f"| `{system}` |{shown}|\n" in readme
        assert [cell["n"] for cell in cells] == [10, 10, 10]
    assert not (clone / "cache").exists()
    assert not (clone / "results" / "runs.sqlite").exists()


def test_results_md_has_the_tables_of_the_committed_runs(run: Call, clone: Path) -> None:
    code, text, _ = run("results", "--markdown")
    assert code == 0
    page = (ROOT / "docs" / "results.md").read_text("utf-8").splitlines()
    table_rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table_rows) > 100
    assert [line for line in table_rows if line not in page] == []


def test_committed_runs_are_an_export_of_one_store(run: Call, clone: Path) -> None:
    code, _, notes = run("results", "--export", clone / "exported")
    assert code == 0, notes
    files = sorted(path.name for path in (clone / "exported").iterdir())
    assert files == ["leak.csv", "other.csv", "table1.csv", "table2.csv"]
    others = {"fit.csv", "fit_pool.csv", "graphs.csv", "suggest.csv"}  # rows of another kind
    assert {path.name for path in (clone / "results").iterdir()} == {*files, *others}
    for name in files:
        exported = (clone / "exported" / name).read_bytes()
        assert exported == (ROOT / "results" / name).read_bytes(), name


def test_committed_runs_are_compared_in_a_fresh_clone(run: Call, clone: Path) -> None:
    code, text, _ = run("compare", "m3s", "multi-stage", "--table", "table1", "--json")
    assert code == 0
    compared = json.loads(text)
    assert len(compared["comparisons"]) == len(compared["ranking"]["columns"]) == 16


def test_systems_and_columns_are_chosen_but_baselines_still_count(
    run: Call, tmp_path: Path
) -> None:
    table, store = filled(tmp_path)
    chosen = ("--systems", "truncated-krylov", "--columns", "cora 1%")
    code, text, _ = run("results", table, "--store", store, *chosen)
    assert code == 0
    assert "gcn " not in text
    assert "Cora 3%" not in text
    assert "It beats every baseline in 1 of 1 column" in text


def test_without_a_name_tables_that_have_no_runs_are_only_mentioned(
    run: Call, tmp_path: Path
) -> None:
    # The cells of the small table are cells of table 2 as well.
    _, store = filled(tmp_path)
    code, text, notes = run("results", "--store", store)
    assert code == 0
    assert text.startswith("table2: ")
    assert "table1 has no runs yet: `kryograph reproduce table1`." in notes
    # Only table 1 has this column; with --json all of its cells are there.
    code, text, _ = run("results", "--store", store, "--columns", "Cora 2%", "--json")
    assert {each["table"] for each in json.loads(text)} == {"table1"}


def test_runs_go_out_and_come_back(run: Call, tmp_path: Path) -> None:
    _, store = filled(tmp_path)
    out = tmp_path / "deep" / "results"
    code, text, notes = run("results", "--store", store, "--export", out)
    assert (code, text) == (0, "")
    count = len(rows(MIXED))
    assert f"table2.csv: {count} runs." in notes
    assert [path.name for path in out.iterdir()] == ["table2.csv"]
    new = tmp_path / "new.sqlite"
    code, _, notes = run("results", "--import", out / "table2.csv", "--store", new)
    assert f"{count} runs read, {count} of them new" in notes
    assert {row.storage_key for row in Store(new).rows()} == {
        row.storage_key for row in rows(MIXED)
    }
    # As a shell writes several: the second time there is nothing new.
    twice = (out / "table2.csv", out / "table2.csv")
    code, _, notes = run("results", "--store", new, "--import", *twice)
    assert f"{2 * count} runs read, 0 of them new" in notes
    # The same again is the same file.
    before = (out / "table2.csv").read_bytes()
    assert run("results", "--store", new, "--export", out)[0] == 0
    assert (out / "table2.csv").read_bytes() == before


def test_runs_that_are_in_no_table_are_exported_too(run: Call, tmp_path: Path) -> None:
    _, store = filled(tmp_path, {("gcn", "Cora 1%"): [0.5]})
    [row] = rows({("gcn", "Cora 1%"): [0.5]})
    Store(store).add(type(row)(**{**row.as_dict(), "system": "prototypes"}))
    run("results", "--store", store, "--export", tmp_path / "out")
    assert [row.system for row in read_csv(tmp_path / "out" / "other.csv")] == ["prototypes"]


def test_an_export_never_loses_what_another_store_exported(run: Call, tmp_path: Path) -> None:
    _, store = filled(tmp_path)
    out = tmp_path / "out"
    run("results", "--store", store, "--export", out)
    before = (out / "table2.csv").read_bytes()
    smaller = tmp_path / "smaller.sqlite"
    Store(smaller).add_all(rows({("gcn", "Cora 1%"): [0.5]}))
    code, _, said = run("results", "--store", smaller, "--export", out)
    assert code == 2
    assert "runs that the store does not have: add them first" in said
    assert (out / "table2.csv").read_bytes() == before


def test_a_comparison_in_one_column(run: Call, tmp_path: Path) -> None:
    table, store = filled(tmp_path, SIX)
    asked = ("compare", "snowball", "gcn", "--table", table, "--store", store)
    code, text, _ = run(*asked, "--column", "Cora 1%", "--json")
    found = json.loads(text)
    assert (code, found["table"], found["ranking"]) == (0, "small", None)
    [pair] = found["comparisons"]
    assert (pair["first"], pair["second"], pair["n"]) == ("snowball", "gcn", 6)
    assert pair["mean_difference"] == pytest.approx(0.1025)
    assert (pair["wins"], pair["ties"], pair["losses"]) == (6, 0, 0)
    assert pair["wilcoxon_p"] == pytest.approx(1 / 32)
    code, text, _ = run(*asked, "--column", "Cora 1%")
    assert "+10.25" in text
    assert "Average ranks" not in text


def test_a_comparison_over_columns_has_ranks_and_a_picture(run: Call, tmp_path: Path) -> None:
    table, store = filled(tmp_path, SIX)
    picture = tmp_path / "ranks.svg"
    asked = ("compare", "snowball", "all", "--table", table, "--store", store)
    code, _, said = run(*asked, "--svg", picture)
    # Truncated Krylov is in the table, but was not run at all.
    assert code == 2
    assert "There is no diagram to write" in said
    asked = ("compare", "snowball", "gcn,gat", "--table", table, "--store", store)
    code, text, said = run(*asked, "--svg", picture)
    assert code == 0
    assert "Fewer than two splits in common: snowball and gcn in CiteSeer 1%" in said
    assert "Average ranks over 2 columns" in text
    ElementTree.fromstring(picture.read_text("utf-8"))
    code, text, _ = run(*asked, "--json", "--svg", picture)
    ranking = json.loads(text)["ranking"]
    assert ranking["average_ranks"] == {"snowball": 1.0, "gcn": 2.0, "gat": 3.0}
    assert ranking["columns"] == ["Cora 1%", "Cora 3%"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["results", "table9"], "Unknown table 'table9': did you mean"),
        (["results", "none.toml"], "There is no file none.toml."),
        (["results", "runs.csv"], "say --import runs.csv."),
        (["results", "table2", "--systems", "gnc"], "Unknown system in this table 'gnc'"),
        (["results", "--columns", "Cora 9%"], "Unknown column 'Cora 9%'"),
        (["results", "--settings", "worst"], "Unknown kind of settings 'worst'"),
        (["results", "--json", "--csv"], "Give one of --markdown, --csv and --json"),
        (["results", "--html", "small.toml/page.html"], "small.toml/page.html cannot be written"),
        (["results", "--html", "."], ". is not a file that kryograph wrote"),
        (["results", "--import", "none.csv"], "There is no file none.csv."),
        (
            ["results", "--export", "small.toml"],
            "The folder small.toml cannot be made: File exists.",
        ),
        (["compare", "gcn"], "Name at least two systems to compare"),
        (["compare", "gcn", "gcn"], "Name at least two systems to compare"),
        (["compare", "gcn", "gta"], "Unknown system in this table 'gta'"),
        (["compare", "gcn", "gat", "--table", "table9"], "Unknown table 'table9'"),
        (["compare", "gcn", "gat", "--column", "Cora 9%"], "Unknown column 'Cora 9%'"),
        (["compare", "gcn", "gat", "--column", "Cora 3%"], "Fewer than two splits in common: gcn"),
        (["compare", "gcn", "gat", "--svg", "small.toml/a.svg"], "a.svg cannot be written"),
        (["compare", "lnet", "cheby"], "`kryograph reproduce table2 --runs 10`"),
    ],
)
def test_misuse_gets_a_sentence(
    run: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    _, store = filled(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, said = run(*arguments, "--store", store)
    assert (code, out) == (2, "")
    assert words in said


@pytest.mark.parametrize("command", [["results"], ["compare", "gcn", "gat"]])
def test_without_a_store_it_is_said_how_to_fill_one(
    run: Call, tmp_path: Path, command: list[str]
) -> None:
    code, out, said = run(*command, "--store", tmp_path / "none.sqlite")
    assert (code, out) == (2, "")
    assert "none.sqlite yet: fill it with `kryograph reproduce table2`" in said
    assert not (tmp_path / "none.sqlite").exists()


def test_a_damaged_or_newer_store_is_not_shown(run: Call, tmp_path: Path) -> None:
    _, store = filled(tmp_path)
    with sqlite3.connect(store) as database:
        database.execute("pragma user_version = 9")
    code, _, said = run("results", "--store", store)
    assert code == 2
    assert "newer kryograph" in said
    store.write_bytes(b"no database" * 100)
    code, _, said = run("compare", "gcn", "gat", "--store", store)
    assert code == 2
    assert "damaged or not a results store" in said


def test_a_file_of_ones_own_is_never_overwritten(run: Call, tmp_path: Path) -> None:
    table, store = filled(tmp_path)
    mine = tmp_path / "mine.html"
    mine.write_text("my own page", "utf-8")
    code, _, said = run("results", table, "--store", store, "--html", mine)
    assert code == 2
    assert "so it is not overwritten" in said
    assert mine.read_text("utf-8") == "my own page"
    ours = tmp_path / "ours.html"
    for _ in range(2):
        assert run("results", table, "--store", store, "--html", ours)[0] == 0


def test_a_disk_that_cannot_be_written_leaves_nothing(
    run: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, store = filled(tmp_path)

    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    page = tmp_path / "page.html"
    code, _, said = run("results", table, "--store", store, "--html", page)
    assert code == 1
    assert "page.html cannot be written: No space left on device." in said
    assert {path.name for path in tmp_path.iterdir()} == {"runs.sqlite", "small.toml"}


def test_the_commands_are_documented() -> None:
    assert commands.results.__doc__
    assert commands.compare.__doc__
