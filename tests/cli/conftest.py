"""The command line in the process of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from kryograph.cli import console, main

Inside = Callable[..., tuple[str, str]]


@pytest.fixture(autouse=True)
def no_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stage is mentioned on standard error, however long a slow machine takes for it."""
    monkeypatch.setattr(console, "STAGE_DELAY_SECONDS", float("inf"))


@pytest.fixture
def inside(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    """The same without a new process, which would spend seconds on imports."""

    def call(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["kryograph", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert left.value.code == 0, err
        return out, err

    return call
