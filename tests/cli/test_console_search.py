from __future__ import annotations

import io

import pytest
from rich.console import Console

from kryograph.cli import console as module
from kryograph.cli.console import State, searching

STATE = State(finished=3, best=0.805, left=600.0)


def test_where_there_is_no_terminal_a_line_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    with searching(10, start=2) as tell:
        tell.now("epoch 7")
        tell.done("number 2 79.0 %", STATE)
        tell.done("number 3 failed: too hot", State(4, None, None))
    assert capsys.readouterr().err.splitlines() == [
        "trial 3/10: number 2 79.0 %; best 80.5 %, about 10 min left",
        "trial 4/10: number 3 failed: too hot; about unknown left",
    ]


def test_a_terminal_has_a_bar_and_is_told_of_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        module, "err", Console(file=screen, force_terminal=True, width=120, highlight=False)
    )
    with searching(10, start=2) as tell:
        tell.now("epoch 7")
        tell.done("number 2 79.0 %", STATE)
        tell.done("number 3 failed: [too] hot", STATE)
    shown = screen.getvalue()
    assert "number 3 failed: [too] hot" in shown
    assert "trial 3/10" in shown
    assert "best 80.5 %, about 10 min left" in shown
