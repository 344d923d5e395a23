from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from kryograph.cli import console
from kryograph.cli.console import (
    Progress,
    note,
    print_json,
    print_list,
    print_table,
    print_text,
    stages,
)

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal and keeps what is written to it."""

    def isatty(self) -> bool:
        return True


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Standard output and standard error are one terminal of 120 columns inside this context.

    A fixture would come too early: pytest replaces both when a test is called.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TERM", "xterm"), ("COLUMNS", "120"), ("NO_COLOR", "")):
            patch.setenv(name, value)
        with Terminal() as screen, redirect_stdout(screen), redirect_stderr(screen):
            yield screen


def test_note_is_one_line_on_standard_error_as_it_is(capsys: Capture) -> None:
    message = "in /a/[bold]folder[/]: " + "word " * 100 + "end"
    note(message)
    assert capsys.readouterr() == ("", message + "\n")


def test_control_characters_of_names_never_reach_the_terminal(capsys: Capture) -> None:
    note("label -> b\x1b[2J 10")
    print_text("class \x9b31m\u202e", {"class": "bold"})
    print_table(("class", "nodes"), [("b\x1b[2J", "10")])
    printed = capsys.readouterr()
    assert printed.err == "label -> b\\x1b[2J 10\n"
    assert printed.out.startswith("class \\x9b31m\\u202e\n")
    assert "b\\x1b[2J" in printed.out
    assert "\x1b" not in printed.out


def test_print_json_has_only_ascii_characters(capsys: Capture) -> None:
    print_json({"name": "Größe"})
    assert capsys.readouterr().out == '{\n  "name": "Gr\\u00f6\\u00dfe"\n}\n'


def test_print_text_has_styles_on_a_terminal_only() -> None:
    with terminal() as screen:
        print_text("gcn 81.5 [x]", {r"\d\S+": "bold"})
        printed = screen.getvalue()
    assert printed == "gcn \x1b[1m81.5\x1b[0m [x]\n"


def test_print_text_is_plain_in_a_file(capsys: Capture) -> None:
    print_text("gcn 81.5 [x]", {r"\d\S+": "bold"})
    assert capsys.readouterr().out == "gcn 81.5 [x]\n"


def test_print_list_has_a_line_for_each_name(capsys: Capture) -> None:
    print_list([("cora", "papers"), ("pubmed", "more papers")])
    assert capsys.readouterr().out == "cora    papers\npubmed  more papers\n"


def test_print_table_prints_cells_as_they_are(capsys: Capture) -> None:
    print_table(("node", "why"), [("[a]", "[bold]far[/]")], numbers=False)
    lines = capsys.readouterr().out.splitlines()
    assert "  [a]    [bold]far[/]" in (line.rstrip() for line in lines)


def test_print_table_cuts_no_number_where_the_terminal_is_narrow(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_table(["a setting with a long name", "seconds"], [["first " * 10, "0.123456789"]])
    lines = capsys.readouterr().out.splitlines()
    assert any("first " * 10 in line and line.rstrip().endswith("0.123456789") for line in lines)


def test_progress_prints_a_line_for_each_item_in_a_file(capsys: Capture) -> None:
    with Progress(10, completed=2, unit="trials") as progress:
        progress.working("a", "epoch 7")
        progress.finished("a", "trial 2: 79.0 %", "best 80.5 %")
        progress.finished("b", "trial 3 failed: too hot", failed=True, completed=7)
    assert capsys.readouterr() == (
        "",
        "3/10 trial 2: 79.0 %; best 80.5 %\n7/10 trial 3 failed: too hot\n",
    )


def test_progress_counts_on_a_terminal_and_prints_failures() -> None:
    with terminal() as screen:
        with Progress(2, unit="runs") as progress:
            progress.working("a", "gcn [x], seed 0")
            progress.finished("a", "gcn, seed 0: test 50.0 %", "about 5 min left")
            progress.finished(
                "b", "gcn, seed 1: failed: Oh [red]no.", "about 0 s left", failed=True
            )
        printed = screen.getvalue()
    assert "gcn [x], seed 0" in printed
    assert "2/2 runs" in printed
    assert "about 0 s left" in printed
    assert "gcn, seed 1: failed: Oh [red]no." in printed
    assert "test 50.0 %" not in printed


def test_progress_describes_the_first_of_several_items() -> None:
    with terminal() as screen:
        with Progress(3) as progress:
            progress.working(0, "seed 0: epoch 5")
            progress.working(1, "seed 1: epoch 8")
        assert "seed 0: epoch 5" in screen.getvalue()
        assert "seed 1: epoch 8" not in screen.getvalue()
        with Progress(3) as progress:
            progress.working(0, "seed 0: epoch 6")
            progress.finished(0, "seed 0: done")
            progress.working(1, "seed 1: epoch 9")
        assert "seed 1: epoch 9" in screen.getvalue()


def test_stages_are_mentioned_once_after_a_while_in_a_file(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stages() as stage:
        stage("reading", 0.0)
        monkeypatch.setattr(console, "STAGE_DELAY_SECONDS", -1.0)
        stage("training", 0.0)
        stage("training", 0.5)
    assert capsys.readouterr() == ("", "training …\n")


def test_stages_have_a_bar_on_a_terminal() -> None:
    with terminal() as screen:
        with stages() as stage:
            stage("reading", 0.5)
        assert "reading" in screen.getvalue()
