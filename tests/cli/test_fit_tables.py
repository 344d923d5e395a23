"""`kryograph fit` and `predict` on tables such as people have, as commands in this process."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.own_tables import write_tables

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    write_tables(folder, seed=0)
    return folder


@pytest.fixture(autouse=True)
def here(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines_with(text: str, *parts: str) -> list[str]:
    return [line for line in text.splitlines() if all(part in line for part in parts)]


WORKING = {
    "transactions": (
        ("--edges", "tx.csv", "--nodes", "accounts.csv", "--label", "is_fraud"),
        ("amount -> number", "timestamp -> not used", "currency -> category", "opened -> date"),
    ),
    "papers": (
        ("--edges", "cites.csv", "--nodes", "papers.csv", "--label", "field"),
        ("title -> text", "abstract -> text", "url -> not used (every value is different)"),
    ),
    "users": (
        ("--edges", "follows.parquet", "--nodes", "users.parquet", "--label", "community"),
        ("embedding -> vector (32 numbers)", "joined -> date"),
    ),
    "labels of their own": (
        *(("--edges", "e4.csv", "--nodes", "n4.csv", "--labels", "labels4.csv"),),
        ("label (chess 20, music 20, sport 20, unknown 240)", "annotator -> not used"),
    ),
    "padded ids": (
        *(("--edges", "e4.csv", "--nodes", "n6.csv", "--label", "community"),),
        ("followers -> number",),
    ),
    "unknown labels": (
        *(("--edges", "e4.csv", "--nodes", "n7b.csv", "--label", "community"),),
        ("label (chess 20, music 20, sport 20, unknown 240)",),
    ),
    "types and weights": (
        *(("--edges", "e5.csv", "--nodes", "n4.csv", "--labels", "labels4.csv"),),
        ("relation -> edge type (3 values", "weight -> weight"),
    ),
    "JSON lines": (
        *(("--edges", "e9.jsonl", "--nodes", "n10.csv", "--label", "community"),),
        ("label (1 20, 2 20, 3 20, unknown 240)",),
    ),
    "arrays": (("--edges", "g9.npz"), ("0 … 7 -> number (8 columns)", "y -> label (0 20, 1 20")),
}
FLAGS = {
    "transactions": ("--ignore", "tx_id,kyc_level", "--repeat", "max"),
    "labels of their own": ("--label", "community", "--number", "bio_len", "--ignore", "followers"),
    "padded ids": ("--id-pad", "strip", "--number", "followers"),
    "unknown labels": ("--unknown-label", "unknown", "--missing", "?"),
    "types and weights": ("--label", "community", "--edge-type", "relation"),
}


@pytest.mark.parametrize("name", WORKING)
def test_the_first_command_works_and_predict_repeats_it(
    run: Run, name: str, tmp_path: Path
) -> None:
    arguments, expected = WORKING[name]
    out, again = tmp_path / "run", tmp_path / "again.csv"
    command = ("fit", *arguments, *FLAGS.get(name, ()), "--system", "lp", "--out", out)
    code, _, plan = run(*command)
    assert code == 0, plan
    for part in expected:
        assert part in plan
    tables = [value for value in arguments if value.endswith((".csv", ".jsonl", ".parquet"))]
    for table in tables:
        if table.endswith(".csv"):
            for column in Path(table).read_text("utf-8").split("\n", 1)[0].split(","):
                assert lines_with(plan, table, f"{column} -> ")
    if name == "arrays":
        files: tuple[str, ...] = ("--edges", "g9.npz")
    else:
        files = ("--edges", tables[0], "--nodes", tables[1])
    code, _, plan = run("predict", out / "model", *files, "--out", again)
    assert code == 0, plan
    fitted, predicted = rows_of(out / "predictions.csv"), rows_of(again)
    shared = set(fitted[0]) & set(predicted[0])
    assert {"id", "predicted", "probability", "set"} <= shared
    assert [[row[c] for c in shared] for row in fitted] == [
        [row[c] for c in shared] for row in predicted
    ]


@pytest.mark.slow
def test_transactions_by_the_default_system(run: Run, tmp_path: Path) -> None:
    files = ("--edges", "tx.csv", "--nodes", "accounts.csv")
    out, again = tmp_path / "run", tmp_path / "again.csv"
    code, text, _ = run("fit", *files, "--label", "is_fraud", "--out", out, "--json")
    assert code == 0
    uses = {(line["table"], line["column"]): line["use"] for line in json.loads(text)["plan"]}
    assert uses["tx.csv", "amount"] == "number"
    assert uses["accounts.csv", "opened"] == "date"
    code, text, _ = run("predict", out / "model", *files, "--out", again, "--json")
    assert code == 0
    assert {line["column"] for line in json.loads(text)["plan"]} >= {"tx_id", "is_fraud", "amount"}
    fitted, predicted = rows_of(out / "predictions.csv"), rows_of(again)
    shared = set(fitted[0]) & set(predicted[0])
    assert [[row[c] for c in shared] for row in fitted] == [
        [row[c] for c in shared] for row in predicted
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--edges", "e4.csv", "--nodes", "n6.csv", "--label", "community"), "add --id-pad strip."),
        (
            ("--edges", "e4.csv", "--nodes", "n7b.csv", "--label", "community"),
            "add --unknown-label unknown.",
        ),
        (
            ("--edges", "e8.csv", "--nodes", "n4.csv", "--labels", "labels4.csv"),
            "(9 more edges like this). Add --absent-nodes add",
        ),
        (
            ("--edges", "e5.csv", "--nodes", "n7b.csv", "--zero-weight", "error"),
            "the weight is 0; --zero-weight drop leaves such edges out",
        ),
        (("--edges", "e4.csv", "--nodes", "n7b.csv", "--directed"), "--directed is not offered"),
        (("--edges", "e4.csv", "--nodes", "n7b.csv", "--repeat", "add"), "Unknown rule"),
    ],
)
def test_what_is_refused_names_the_way_out(
    run: Run, arguments: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    code, text, complaint = run("fit", *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert expected in complaint.splitlines()[-1] or expected in complaint
    assert text == ""
    assert not (tmp_path / "run").exists()


def test_the_one_fault_of_odd_cells_is_named_with_its_line(run: Run) -> None:
    files = ("--edges", "e4.csv", "--nodes", "n7.csv", "--label", "community")
    code, _, complaint = run("fit", *files, "--check")
    assert code == 2
    assert "age -> number (30 empty)" in complaint
    assert "city -> category (3 values, 30 empty)" in complaint
    assert complaint.splitlines()[-1] == (
        "kryograph: n7.csv, line 43, column 'income': '1,200.5' is not a number; write it as "
        "1200.5, or read the column as --category income."
    )


def test_check_reads_and_trains_nothing(run: Run) -> None:
    files = ("--edges", "tx.csv", "--nodes", "accounts.csv", "--label", "is_fraud")
    before = sorted(Path().iterdir())
    code, text, plan = run("fit", *files, "--check")
    assert code == 0
    assert text == "600 nodes, 2,973 edges: no fault.\n"
    assert len(lines_with(plan, " -> ")) == 12
    code, text, _ = run("fit", *files, "--check", "--json")
    assert [line["column"] for line in json.loads(text)["plan"]][:2] == ["tx_id", "from_account"]
    assert sorted(Path().iterdir()) == before
    code, _, complaint = run("fit", *files)
    assert code == 2
    assert "Say --out FOLDER" in complaint
    code, text, complaint = run("fit", *files, "--check", "--positive", "maybe")
    assert (code, text) == (2, "")
    assert "Unknown class 'maybe'" in complaint


def test_a_run_is_explained_without_its_tables(run: Run, tmp_path: Path) -> None:
    files = ("--edges", "cites.csv", "--nodes", "papers.csv", "--label", "field")
    out = tmp_path / "run"
    assert run("fit", *files, "--system", "prototypes", "--out", out)[0] == 0
    code, text, _ = run("explain", out, "arXiv:2007", "--json")
    assert code == 0
    e = json.loads(text)
    assert abs(e["intercept"] + sum(h["log_odds"] for h in e["hops"]) - e["log_odds"]) < 1e-4


def test_a_model_needs_the_columns_of_its_fit(run: Run, tmp_path: Path) -> None:
    files = ("--edges", "tx.csv", "--nodes", "accounts.csv")
    out = tmp_path / "run"
    fit = ("fit", *files, "--label", "is_fraud", "--system", "prototypes", "--out", out)
    assert run(*fit)[0] == 0
    fewer = tmp_path / "fewer.csv"
    lines = [line.split(",") for line in Path("accounts.csv").read_text("utf-8").splitlines()]
    fewer.write_text("".join(f"{line[0]},{line[2]}\n" for line in lines))
    code, _, complaint = run(
        *("predict", out / "model", "--edges", "tx.csv", "--nodes", fewer, "--out", "p.csv")
    )
    assert code == 2
    assert "lacks the columns" in complaint
    assert "'opened'" in complaint
    code, _, plan = run("predict", out / "model", *files, "--check")
    assert code == 0
    assert "is_fraud -> label" in plan


def test_several_tables_of_edges(run: Run, tmp_path: Path) -> None:
    files = ("--edges", "e4.csv", "--edges", "e5.csv", "--nodes", "n4.csv")
    command = ("fit", *files, "--labels", "labels4.csv", "--label", "community")
    out = tmp_path / "run"
    code, _, plan = run(*command, "--system", "lp", "--out", out)
    assert code == 0
    assert lines_with(plan, "e4.csv and e5.csv  table -> category (2 values")
    code, _, plan = run("predict", out / "model", *files, "--out", tmp_path / "p.csv")
    assert code == 0
    fitted, predicted = rows_of(out / "predictions.csv"), rows_of(tmp_path / "p.csv")
    assert [row["probability"] for row in fitted] == [row["probability"] for row in predicted]
