from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kryograph.cli import console as module
from kryograph.cli import console as terminal
from kryograph.cli.console import sweeping
from tests.made_runs import rows

ROW = replace(rows({("gcn", "Cora 1%"): [0.5]})[0], seconds=2.0)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> io.StringIO:
    """Standard error, as a terminal or as a file."""
    said = io.StringIO()
    console = Console(file=said, force_terminal=request.param, width=120, highlight=False)
    monkeypatch.setattr(terminal, "err", console)
    monkeypatch.setattr(module, "err", console)
    return said


@pytest.mark.parametrize("screen", [False], indirect=True)
def test_a_line_per_run_in_a_file(screen: io.StringIO) -> None:
    with sweeping(2) as tell:
        tell.now("gcn, seed 0")
        tell.done("gcn, seed 0", ROW, 90.0)
        failed = replace(ROW, test_accuracy=None, seconds=None, error="Diverged: too high.")
        tell.done("gcn, seed 1", failed, None)
    assert screen.getvalue().splitlines() == [
        "1/2 gcn, seed 0: test 50.0 %, 2.0 s; about 2 min left",
        "2/2 gcn, seed 1: failed: Diverged: too high.; about unknown left",
    ]


@pytest.mark.parametrize("screen", [True], indirect=True)
def test_a_bar_on_a_terminal_says_what_is_done_left_and_failed(screen: io.StringIO) -> None:
    with sweeping(2) as tell:
        tell.now("gcn, seed 0")
        tell.done("gcn, seed 0", ROW, 300.0)
        tell.done("gcn, seed 1", replace(ROW, test_accuracy=None, error="Oh [red]no."), 0.0)
    said = screen.getvalue()
    assert "2/2 runs" in said
    assert "about 0 s left" in said
    assert "gcn, seed 1: failed: Oh [red]no." in said
