"""`kryograph.cli.table_options`: options of tables, declared once for several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from kryograph.cli.fit import fit_command, predict
from kryograph.cli.table_options import TableFlags, read, takes_tables
from kryograph.data.tables.faults import TableFaults
from kryograph.data.tables.options import CHOICES, TableOptions
from kryograph.errors import UsageError

Run = Callable[..., tuple[int, str, str]]


def test_every_option_of_tables_can_be_given() -> None:
    names = {part.name for part in fields(TableFlags)}
    assert {part.name for part in fields(TableOptions)} <= names
    for command in (fit_command, predict):
        parameters = inspect.signature(command).parameters
        assert names <= set(parameters)
        assert "flags" not in parameters


def test_words_of_an_option_are_those_of_the_reader(run: Run, tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("a,b\n")
    for name, words in CHOICES.items():
        for word in words:
            flags = TableFlags([edges], **{name: word})
            assert getattr(flags.options(), name) == word
        option = "--" + name.replace("_", "-")
        code, _, complaint = run("fit", "--edges", edges, option, "red", "--check")
        assert code == 2
        assert ", ".join(sorted(words)) == ", ".join(
            sorted(complaint.rstrip(".\n").partition("There are: ")[2].split(", "))
        )


def test_flags_become_options() -> None:
    flags = TableFlags(
        [Path("e.csv")],
        nodes=Path("n.csv"),
        text="title, abstract",
        missing="",
        unknown_label="unknown,-1",
        edge_features="off",
    )
    assert flags.options() == TableOptions(
        text=("title", "abstract"),
        missing=(),
        unknown_label=("unknown", "-1"),
        edge_features=False,
    )
    assert flags.files == [Path("e.csv"), Path("n.csv")]
    with pytest.raises(UsageError, match="--directed is not offered yet"):
        TableFlags([Path("e.csv")], directed=True).options()


def test_a_command_receives_its_flags() -> None:
    calls = []

    @takes_tables
    def command(flags: TableFlags, size: int = 3) -> None:
        calls.append((flags.edges, flags.repeat, size))

    given = {part.name: None for part in fields(TableFlags)}
    command(**{**given, "edges": [Path("e.csv")], "repeat": "max", "size": 4})
    assert calls == [([Path("e.csv")], "max", 4)]


def test_the_plan_is_printed_before_faults_are_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target,weight\na,b,-1\n")
    with pytest.raises(TableFaults, match="not positive"):
        read(TableFlags([edges]), lambda stage, share: None)
    assert "edges.csv  weight -> weight" in capsys.readouterr().err
