"""The command line in the process of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from kryograph.cli import main

Inside = Callable[..., tuple[str, str]]


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
