"""`kryograph.session.journal`: nothing that was acknowledged is lost, whatever happens."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.session.journal import JOURNAL, TORN, Entry, Journal, NotSavedError

PROGRAM = """
import sys
from pathlib import Path
from kryograph.session.journal import Entry, Journal
journal = Journal.open(Path(sys.argv[1]))
first = len(journal.entries)
for number in range(first + 1, first + 1 + int(sys.argv[2])):
    journal.append(Entry(number, "now", f"id {number}", "label", f"node {number}", "x" * 50))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""
"""Appends entries and prints the number of each after it was acknowledged."""


def entry(number: int, **values: object) -> Entry:
    return Entry(number, "2026-01-01T00:00:00Z", f"id {number}", "label", "ann", "art", **values)  # type: ignore[arg-type]


def test_entries_are_read_again(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "a" / "b")
    first, second = entry(1, p=0.25, predicted="ärt\n\u2028"), entry(2, of=None)
    journal.append(first)
    journal.append(second)
    journal.close()
    again = Journal.open(tmp_path / "a" / "b")
    assert again.entries == [first, second]
    assert again.by_id["id 2"] == second
    assert again.torn == 0
    again.close()


def test_a_torn_tail_is_set_aside(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.append(entry(1))
    journal.close()
    whole = (tmp_path / JOURNAL).read_bytes()
    for number, tail in enumerate((b'{"seq": 2, "ti', b"\xff\x00", b" "), start=1):
        with (tmp_path / JOURNAL).open("ab") as file:
            file.write(tail)
        journal = Journal.open(tmp_path)
        assert journal.torn == len(tail)
        assert journal.entries == [entry(1)]
        assert (tmp_path / JOURNAL).read_bytes() == whole
        assert (tmp_path / TORN).read_bytes().count(b"\n") == number
        journal.close()


def line(**changes: object) -> bytes:
    return json.dumps(json.loads(entry(1).line()) | changes).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"nothing\n", "line 1: it is not JSON"),
        (line(extra=1), "line 1: it has not the fields"),
        (b"[]\n", "line 1: it has not the fields"),
        (line(p="high"), "line 1: its 'p' is 'high'"),
        (line(seq=True), "line 1: its 'seq' is True"),
        (line(seq=2), "line 1: its number is 2"),
        (line(op="erase"), "line 1: its operation is 'erase'"),
        (line() + line(seq=2), "line 2: its id occurs twice"),
        (b"\xff\n", "line 1: it is not JSON"),
    ],
)
def test_a_damaged_line_is_an_error_with_its_number(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / JOURNAL).write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(reason)):
        Journal.open(tmp_path)
    assert (tmp_path / JOURNAL).read_bytes() == content


def test_a_second_server_is_refused_by_the_name_of_the_folder(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    with pytest.raises(UsageError, match=f"{tmp_path} is open in another"):
        Journal.open(tmp_path)
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path, "1"], check=False, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "is open in another `kryograph label`" in process.stderr
    journal.close()
    Journal.open(tmp_path).close()


@pytest.mark.slow
def test_kill_at_fifty_moments_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged = 0
    for moment in range(50):
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path), "100000"], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            for _ in range(1 + moment % 7):
                acknowledged = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().splitlines(keepends=True)
            acknowledged = max([acknowledged, *(int(one) for one in rest if one.endswith(b"\n"))])
    journal = Journal.open(tmp_path)
    numbers = [one.seq for one in journal.entries]
    assert numbers == list(range(1, len(numbers) + 1))
    assert acknowledged <= len(numbers) <= acknowledged + 1
    assert len(journal.by_id) == len(numbers)
    journal.close()


FULL = """
import resource, sys
from pathlib import Path
from kryograph.session.journal import Entry, Journal, NotSavedError
journal = Journal.open(Path(sys.argv[1]))
journal.append(Entry(1, "now", "a", "label", "ann", "art"))
size = journal.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, resource.RLIM_INFINITY))
try:
    journal.append(Entry(2, "now", "b", "label", "bob", "art"))
except NotSavedError as error:
    print(error)
print(journal.path.stat().st_size == size, len(journal.entries))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(Entry(2, "now", "b", "label", "bob", "art"))
print(len(journal.entries))
"""


@pytest.mark.slow
def test_what_finds_no_room_is_not_acknowledged_and_leaves_no_trace(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    process = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path], check=True, capture_output=True, text=True
    )
    first, second, third = process.stdout.splitlines()
    assert first.startswith("not saved: no room on the disk")
    assert (second, third) == ("True 1", "2")
    journal = Journal.open(tmp_path)
    assert [one.id for one in journal.entries] == ["a", "b"]
    journal.close()


def test_a_journal_that_cannot_be_repaired_takes_nothing_more(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.append(entry(1))
    journal.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        journal.append(entry(2))


@pytest.mark.slow
def test_every_write_is_forced_to_the_disk_before_the_answer(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed, so that the order of system calls cannot be seen")
    trace, folder = tmp_path / "trace", tmp_path / "session"
    command = [strace, "-f", "-y", "-e", "trace=write,fsync", "-o", trace]
    process = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, folder, "3"], check=False, capture_output=True
    )
    if process.returncode:
        pytest.skip("strace may not trace processes here")
    calls = []
    for call in trace.read_text("utf-8").splitlines():
        if re.search(r"fsync\(\d+<[^>]*/session>\)", call):
            calls.append("folder")
        elif JOURNAL in call:
            calls.append("fsync" if "fsync(" in call else "write")
        elif re.search(r'write\(1<[^>]*>, "\d+\\n"', call):
            calls.append("answer")
    assert calls == ["folder", *["write", "fsync", "answer"] * 3]


def test_a_failed_write_is_named(tmp_path: Path) -> None:
    assert issubclass(NotSavedError, Exception)
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(Exception, match="cannot be written"):
        Journal.open(blocked / "session")
