from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kryograph.runs.locks import Locks

pytestmark = pytest.mark.slow

KEY, OTHER = "ab" * 32, "cd" * 32

HOLD = """
import sys, time
from pathlib import Path
from kryograph.runs.locks import Locks
with Locks.beside(Path(sys.argv[1])) as claims:
    print(claims.take(sys.argv[2]), flush=True)
    time.sleep(600)
"""


def holder(path: Path, key: str = KEY) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), key], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_what_another_process_has_claimed_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Locks.beside(path) as claims, holder(path) as process:
        assert not claims.take(KEY)
        assert claims.take(OTHER)
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while not claims.take(KEY) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claims.take(KEY)


def test_what_is_given_back_may_be_claimed(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Locks.beside(path) as claims:
        assert claims.take(KEY)
        claims.release(KEY)
        with holder(path) as process:
            assert not claims.take(KEY)
            process.kill()


def test_claims_end_with_their_context(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Locks.beside(path) as claims:
        claims.take(KEY)
    with holder(path) as process:
        process.kill()
    assert (tmp_path / "runs.sqlite.claims").stat().st_size == 0
