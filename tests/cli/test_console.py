from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kryograph.cli import console as terminal
from kryograph.cli.console import note, progress, show_list, show_result, show_table
from kryograph.runs.perform import Run
from kryograph.runs.runner import Result
from kryograph.text import percent
from kryograph.training.loop import Epoch

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def finished(finished: Run) -> Run:
    return replace(finished, seed=3, seconds=1.54)


@pytest.fixture
def result(result: Result) -> Result:
    return replace(
        result,
        split="1%",
        operator="rw",
        settings={"hidden": 8, "dropout": 0.5},
        settings_source="paper, with changed hidden",
    )


def test_percentages_have_one_decimal() -> None:
    assert [percent(f) for f in (0.8351, 1.0, 0.0, 0.12345, None)] == [
        *("83.5", "100.0", "0.0", "12.3", "–"),
    ]


def test_a_note_is_one_line_on_standard_error_as_it_is(capsys: Capture) -> None:
    message = "in /a/[bold]folder[/]: " + "word " * 100 + "end"
    note(message)
    out, err = capsys.readouterr()
    assert (out, err) == ("", message + "\n")


def test_a_result_shows_what_was_run_every_run_and_the_mean(
    result: Result, capsys: Capture
) -> None:
    show_result(result)
    out, err = capsys.readouterr()
    assert err == ""
    words = " ".join(out.split())
    assert "truncated-krylov on cora, split 1%, validation protocol" in words
    assert "stop rule paper, operator rw" in words
    assert "settings (paper, with changed hidden): hidden 8, dropout 0.5" in words
    assert "seed epochs seconds validation % test %" in words
    assert "3 120 1.5 79.0 80.0" in words
    assert "4 120 1.5 79.0 84.0" in words
    # By hand: 0.82 ± 12.7062 · 0.02.
    assert "test accuracy 82.0 (95 % interval 56.6 to 100.0, 2 runs) paper: 83.5" in words
    assert "\x1b" not in out


def test_one_run_without_validation_and_without_the_papers_number(
    result: Result, finished: Run, capsys: Capture
) -> None:
    show_result(replace(result, runs=(replace(finished, validation_accuracy=None),), paper=None))
    words = " ".join(capsys.readouterr().out.split())
    assert "3 120 1.5 – 80.0" in words
    assert words.endswith("test accuracy 80.0 (1 run)")
    assert "paper:" not in words
    assert "interval" not in words


def test_a_list_has_a_line_for_each_name(capsys: Capture) -> None:
    show_list([("cora", "papers"), ("pubmed", "more papers")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[0] for line in lines] == ["cora", "pubmed"]
    assert [line.split(maxsplit=1)[1].strip() for line in lines] == ["papers", "more papers"]


def test_off_a_terminal_each_finished_run_is_a_line(finished: Run, capsys: Capture) -> None:
    with progress(3) as tracker:
        tracker.epoch(3, Epoch(1, 0.5, 0.6, 0.7))
        tracker.run(finished)
        tracker.run(replace(finished, seed=4, validation_accuracy=None))
        tracker.run(replace(finished, seed=5, validation_accuracy=0.0))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "seed 3: 120 epochs in 1.5 s, validation 79.0 %",
        "seed 4: 120 epochs in 1.5 s",
        "seed 5: 120 epochs in 1.5 s, validation 0.0 %",
    ]


def test_on_a_terminal_a_bar_follows_the_epochs(
    finished: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "err", Console(file=screen, force_terminal=True, width=120))
    with progress(2) as tracker:
        tracker.epoch(0, Epoch(12, 0.5, 0.6, 0.7))
        tracker.run(finished)
    assert "seed 0: epoch   12, validation 70.0 %" in screen.getvalue()
    assert "1/2 runs" in screen.getvalue()
    with progress(1) as tracker:
        tracker.epoch(1, Epoch(7, 0.5, 0.6, None))
    assert "seed 1: epoch    7, training 60.0 %" in screen.getvalue()


def test_no_number_of_a_table_is_cut_where_the_terminal_is_narrow(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "out", Console(width=20))
    show_table(["a setting with a long name", "seconds"], [["first " * 10, "0.123456789"]])
    lines = capsys.readouterr().out.splitlines()
    assert any("first " * 10 in line and line.rstrip().endswith("0.123456789") for line in lines)
