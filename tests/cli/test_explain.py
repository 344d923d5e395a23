"""`kryograph explain` from a folder of a fit, as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import kryograph
from kryograph.labelling import run_folder
from kryograph.systems import system
from tests.labelling.explained import from_table, pool

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a fit by a small pool; the tables it was read from are gone."""
    tables = tmp_path_factory.mktemp("tables")
    labelled = from_table(tables, [pool()])
    for path in tables.iterdir():
        path.unlink()
    out = tmp_path_factory.mktemp("fits") / "run"
    run_folder.write(out, labelled)
    return out


def test_tables_are_printed_with_their_intercept_and_gap(run: Run, folder: Path) -> None:
    code, out, _ = run("explain", folder, "p40", "--top", 3)
    assert code == 0
    first = out.splitlines()[0]
    assert first.startswith("p40: ")
    for heading in ("by hops", "through neighbour", "from node", "by feature", "most similar"):
        assert heading in out
    assert "intercept: all features in reach zero" in out
    assert "  7 to 16 hops  " in out
    assert "p40 (itself)" in out
    assert "members without an exact form: trees" in out
    assert "Gap between the sum and the log-odds: " in out


def test_the_intercept_and_the_hops_add_up_to_the_log_odds(run: Run, folder: Path) -> None:
    code, out, _ = run("explain", folder, "p40", "--json")
    assert code == 0
    e = json.loads(out)
    assert abs(e["intercept"] + sum(h["log_odds"] for h in e["hops"]) - e["log_odds"]) < 1e-4
    assert e["node"] == "p40"
    assert len(e["given_nearest"]) == 5


def test_against_compares_with_another_class(run: Run, folder: Path) -> None:
    classes = json.loads(run("explain", folder, "p40", "--json")[1])["classes"]
    [third] = {"a", "b", "c"} - set(classes)
    code, out, _ = run("explain", folder, "p40", "--against", third, "--json")
    assert code == 0
    assert json.loads(out)["classes"] == [classes[0], third]
    code, _, err = run("explain", folder, "p40", "--against", classes[0])
    assert code == 2
    assert "is the predicted class of 'p40'" in err


def test_a_page_is_written_and_only_own_files_are_replaced(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    for _ in range(2):
        code, out, err = run("explain", folder, "p40", "--html", page)
        assert (code, out) == (0, "")
        assert str(page) in err
    assert "Content-Security-Policy" in page.read_text("utf-8")
    page.write_text("a letter")
    code, _, err = run("explain", folder, "p40", "--html", page)
    assert code == 2
    assert "is not a file that kryograph wrote" in err


def test_what_if_is_recomputed_or_refitted(run: Run, folder: Path) -> None:
    code, out, _ = run("explain", folder, "p40", "--set", "country=SE", "--set", "age=30")
    assert code == 0
    assert "country = SE; age = 30 (recomputed, not trained again)" in out
    code, out, _ = run("explain", folder, "p40", "--without-label", "p3", "--label-as", "p4=b")
    assert code == 0
    assert "(refitted with the same seed)" in out
    code, out, _ = run("explain", folder, "p40", "--without-feature", "country", "--json")
    assert code == 0
    assert json.loads(out)["changes"] == ["without 'country' in all nodes"]
    near = json.loads(run("explain", folder, "p40", "--json")[1])["neighbours"][1]["node"]
    code, out, _ = run("explain", folder, "p40", "--without-edge", near)
    assert code == 0
    assert f"without the edge to '{near}'" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p99"], "There is no node 'p99': did you mean "),
        (["p40", "--against", "d"], "Unknown class 'd'"),
        (["p40", "--top", "0"], "--top must be at least 1"),
        (["p40", "--set", "age"], "--set takes a name, = and a value, not 'age'"),
        (["p40", "--label-as", "p1"], "--label-as takes a name, = and a value"),
        (["p40", "--set", "size=3"], "uses no column 'size'"),
        (["p40", "--set", "age=old"], "'old' is not a number"),
        (["p40", "--without-edge", "p59"], "has no edge to 'p59'"),
        (["p40", "--without-feature", "colour"], "There is no feature 'colour'"),
        (["p40", "--without-label", "p50"], "'p50' has no given label"),
        (["p40", "--label-as", "p1=d"], "Unknown class 'd'"),
        (["p40", "--set", "age=3", "--against", "a"], "--against and --html belong to the expl"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], message: str, run: Run, folder: Path
) -> None:
    code, out, err = run("explain", folder, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_folder_of_something_else_is_refused(run: Run, tmp_path: Path) -> None:
    code, _, err = run("explain", tmp_path, "p40")
    assert code == 2
    assert "the folder of a fit?" in err
    code, _, err = run("explain", tmp_path / "nothing", "p40")
    assert code == 2
    assert "There is no folder" in err


def test_a_system_without_an_exact_form_is_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_folder.write(out, from_table(tmp_path, [system("lp")]))
    code, _, err = run("explain", out, "p40")
    assert code == 2
    assert "no exact explanation for lp; --system truncated-krylov has one" in err


@pytest.mark.slow
def test_a_fit_is_explained_without_its_tables(run: Run, tmp_path: Path) -> None:
    from_table(tmp_path, [system("diffused-logistic")])
    edges, nodes, out = tmp_path / "edges.csv", tmp_path / "nodes.csv", tmp_path / "run"
    columns = ("--label", "topic", "--text", "about")
    code, _, err = run("fit", "--edges", edges, "--nodes", nodes, *columns, "--out", out)
    assert code == 0, err
    edges.unlink()
    nodes.unlink()
    labelled = kryograph.load_run(out)
    assert any("without an edge" in note for note in labelled.notes)
    run_folder.write(tmp_path / "again", labelled)
    again = (tmp_path / "again" / "predictions.csv").read_bytes()
    assert again == (out / "predictions.csv").read_bytes()
    for node in ("p0", "p40", "p59"):
        code, text, err = run("explain", out, node, "--json")
        assert code == 0, err
        e = json.loads(text)
        assert abs(e["intercept"] + sum(h["log_odds"] for h in e["hops"]) - e["log_odds"]) < 1e-4
