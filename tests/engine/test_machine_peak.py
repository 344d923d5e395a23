from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from kryograph.engine import machine as peak
from kryograph.engine.machine import peak_bytes

pytestmark = pytest.mark.slow

MB = 10**6

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak")


def use(megabytes: int) -> float:
    """Touch that much memory, and give it back."""
    return torch.ones(megabytes * MB // 4)[-1].item()


@linux
def test_what_was_freed_within_counts_every_time() -> None:
    for _ in range(2):
        result, held = peak_bytes(lambda: use(200))
        assert result == 1.0
        assert held is not None
        assert 190 * MB < held < 260 * MB


@linux
def test_a_larger_peak_before_does_not_count() -> None:
    use(300)
    _, held = peak_bytes(lambda: use(100))
    assert held is not None
    assert 90 * MB < held < 160 * MB


@linux
def test_what_was_held_before_does_not_count() -> None:
    mine = torch.ones(100 * MB // 4)
    _, held = peak_bytes(lambda: mine.sum().item())
    assert held is not None
    assert held < 50 * MB


def test_where_the_system_does_not_tell_the_work_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "PROCESS", tmp_path / "nowhere")
    assert peak_bytes(lambda: 42) == (42, None)


def test_work_that_fails_says_so() -> None:
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: 1 / 0)


def test_another_malloc_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak.ctypes, "CDLL", lambda name: object())
    assert peak_bytes(lambda: 42)[0] == 42
