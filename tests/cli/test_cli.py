from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

import kryograph
from kryograph.cli import COMMANDS, app

Inside = Callable[..., tuple[str, str]]


def leaves(group: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Commands of a group and of its groups, each as the words that a person types."""
    paths = []
    for name, command in group.commands.items():
        here = (*path, name)
        paths += leaves(command, here) if hasattr(command, "commands") else [here]
    return paths


LEAVES = leaves(typer.main.get_command(app))
GROUPS = [("bench",), ("data",), ("reproduce",)]


def test_commands_are_listed_in_the_order_of_use(inside: Inside) -> None:
    out, _ = inside("--help")
    listed = out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "] == [
        *("fit", "explain", "predict", "suggest", "label", "demo", "train", "tune", "reproduce"),
        *("results", "compare", "theory", "depth", "systems", "datasets", "data", "bench"),
    ]
    assert {path[0] for path in LEAVES} == COMMANDS.keys()


@pytest.mark.parametrize("group", [(), ("bench",)], ids=" ".join)
def test_no_summary_is_cut_on_80_columns(
    inside: Inside, group: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = inside(*group, "--help")[0].split("Commands:\n")[1].split("\n\n")[0]
    assert len(listed.splitlines()) > 6
    assert "..." not in listed


@pytest.mark.parametrize("command", [*LEAVES, *GROUPS], ids=" ".join)
def test_every_command_has_an_example(inside: Inside, command: tuple[str, ...]) -> None:
    out, err = inside(*command, "--help")
    assert f"Example: kryograph {' '.join(command)}" in " ".join(out.split())
    assert err == ""
    assert inside(*command, "-h") == (out, err)


def test_help_is_printed_without_a_command(inside: Inside) -> None:
    out, _ = inside()
    assert out == inside("--help")[0] == inside("-h")[0]


def test_version_is_that_of_the_package(inside: Inside) -> None:
    assert inside("--version") == (f"{kryograph.__version__}\n", "")


# What is imported

HEAVY = (
    *("torch", "scipy", "sklearn", "pyarrow", "matplotlib", "torch_geometric"),
    *("networkx", "optuna", "sqlalchemy", "jinja2", "rich", "pydantic"),
)

FIT = ("fit", "--edges", "none.csv", "--out", "run")

LIGHT: list[tuple[int, tuple[str, ...]]] = [
    *((0, arguments) for arguments in [(), ("--version",), ("--help",), ("-h",)]),
    *((0, (*command, "--help")) for command in [*LEAVES, *GROUPS]),
    (2, ("trian",)),
    (2, ("reproduce", "table9")),
    (2, ("data",)),
    (2, ("data", "fetch")),
    (2, ("train", "--sedes", "3")),
    (2, ("train", "extra")),
    (2, ("train", "--seeds", "0")),
    (2, ("train", "--seeds", "few")),
    (2, ("train", "--jobs", "0")),
    (2, ("train", "--protocol", "honest")),
    (2, ("train", "--precision", "float8")),
    (2, ("train", "--stop", "never")),
    (2, ("train", "--settings", "worst")),
    (2, ("train", "--data-dir", "none")),
    (2, ("tune",)),
    (2, ("tune", "lp", "--sampler", "grid")),
    (2, ("tune", "lp", "--timeout", "soon")),
    (2, ("reproduce", "table2", "--runs", "0")),
    (2, ("reproduce", "table2", "--budget", "5")),
    (2, ("reproduce", "own", "none.toml")),
    (2, ("reproduce", "figure1", "--layers", "0")),
    (2, ("theory", "--blocks", "0")),
    (2, ("results", "table9")),
    (2, ("results", "none.toml")),
    (2, ("results", "--import", "none.csv")),
    (2, ("results", "--json", "--csv")),
    (2, ("results", "--store", "none.sqlite")),
    (2, ("compare", "gcn", "gat", "--table", "table9")),
    (2, ("compare", "gcn", "gat", "--store", "none.sqlite")),
    (2, ("fit", "--out", "run")),
    (2, FIT),
    (2, (*FIT, "--coverage", "1.5")),
    (2, (*FIT, "--seed", "-1")),
    (2, (*FIT, "--search", "soon")),
    (2, ("predict", "none", "--edges", "e.csv", "--out", "new.csv")),
    (2, ("suggest", "none")),
    (2, ("suggest", "none", "--count", "0")),
    (2, ("bench", "graphs")),
    (2, ("bench", "graphs", "--data", "graphs", "--draws", "0")),
    (2, ("bench", "graphs", "--data", "graphs", "--per-class", "few")),
    (2, ("depth", "--depths", "deep")),
    (2, ("train", "--label-rate", "5")),
    (2, ("tune", "lp", "--label-rate", "few")),
]
"""Exit code and arguments of calls that compute nothing."""

CALLS = """
import contextlib, io, json, sys
sys.path.insert(0, "")
import kryograph
heavy, calls = json.load(sys.stdin)
outcomes = [[0, [name for name in heavy if name in sys.modules]]]
from kryograph.__main__ import main
for arguments in calls:
    sys.argv = ["kryograph", *arguments]
    before = set(sys.modules)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
    outcomes.append([code, [name for name in heavy if name in set(sys.modules) - before]])
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], tuple[int, Any]]:
    """Exit code of each call and the heavy modules that it was the first to import.

    All calls are made in one process, because most of its time is the start of the interpreter.
    """
    asked = json.dumps([HEAVY, [arguments for _, arguments in LIGHT]])
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("empty"),
        env={key: value for key, value in os.environ.items() if "KRYOGRAPH" not in key},
    )
    calls = [("import kryograph",), *(arguments for _, arguments in LIGHT)]
    return dict(zip(calls, map(tuple, json.loads(done.stdout)), strict=True))


@pytest.mark.parametrize(
    ("code", "arguments"), [(0, ("import kryograph",)), *LIGHT], ids=lambda value: str(value)
)
def test_help_and_usage_errors_import_nothing_heavy(
    outcomes: dict[tuple[str, ...], tuple[int, Any]], code: int, arguments: tuple[str, ...]
) -> None:
    assert outcomes[arguments] == (code, [])


def test_completion_knows_commands_options_and_choices(tmp_path: Path) -> None:
    def complete(line: str) -> list[str]:
        words = line.split(" ")
        done = subprocess.run(
            [sys.executable, "-m", "kryograph"],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "_KRYOGRAPH_COMPLETE": "complete_bash",
                "COMP_WORDS": line,
                "COMP_CWORD": str(len(words) - 1),
            },
        )
        return done.stdout.split()

    assert complete("kryograph res") == ["results"]
    assert complete("kryograph train --stop ju") == ["june"]
    assert "--seeds" in complete("kryograph train --se")
