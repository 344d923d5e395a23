"""Many machines share a search by a database server: here two processes and a real PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import optuna
import pytest

from kryograph.errors import KryographError
from kryograph.tuning.database import open_database
from kryograph.tuning.study import SearchBudget, Study
from tests.tuning.toy_problems import (
    COLUMN,
    SHORT,
    Meeting,
    exit_code,
    forked,
    on_three_splits,
    toy,
)

pytestmark = pytest.mark.slow

pytest.importorskip("psycopg", reason="there is no driver for PostgreSQL")

SECRET = "not-to-be-seen"


def _programs() -> Path:
    """Where the server's programs are; Debian does not put them on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or shutil.which(
        "initdb", path=os.pathsep.join(map(str, folders))
    )
    if found is None:
        pytest.skip("there is no PostgreSQL server: Debian's package is `postgresql`")
    return Path(found).resolve().parent


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a new, empty database.

    It is started here and not once for all tests, so that these run wherever the programs are, and
    nobody's own server is touched. It has no port, only a socket in its folder.
    """
    programs = _programs()
    # Not in pytest's folder, which nobody but its owner may enter: the server refuses to be root.
    folder = Path(tempfile.mkdtemp(prefix="kryograph-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    data, password = folder / "data", folder / "password"
    password.write_text(SECRET)
    password.chmod(0o644)

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(programs / program), *arguments]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert done.returncode == 0, done.stderr

    try:
        by_password = ("--auth=scram-sha-256", f"--pwfile={password}", "--username=me")
        run("initdb", "--no-sync", *by_password, "-D", str(data))
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        log = str(folder / "log")
        run("pg_ctl", "start", "-w", "-D", str(data), "-o", options, "-l", log)
        try:
            yield f"postgresql://me:{SECRET}@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(data))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_two_processes_share_a_study_and_no_trial_is_lost(server: str, tmp_path: Path) -> None:
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    problem = Meeting("prototypes", COLUMN, on_three_splits(toy()), SHORT, meeting)

    def take_part(file: Path) -> None:
        with open_database(server) as database:
            search = Study(problem, database, "shared")
            search.enqueue(60.0)
            numbers = [tried.number for tried in search.run(SearchBudget(14))]
            file.write_text(json.dumps([numbers, search.best()[0].number]))

    files = [tmp_path / "one", tmp_path / "other"]
    children = [forked(partial(take_part, file)) for file in files]
    assert [exit_code(child) for child in children] == [0, 0]
    parts = [json.loads(file.read_text()) for file in files]
    with open_database(server) as database:
        trials = optuna.load_study(study_name="shared", storage=database).trials
    assert {trial.state.name for trial in trials} <= {"COMPLETE", "PRUNED"}
    # Both may see at the same moment that one is missing, and begin it.
    assert 14 <= len(trials) <= 15
    assert all(numbers for numbers, _ in parts)
    assert sorted(parts[0][0] + parts[1][0]) == list(range(len(trials)))
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    best = max(complete, key=lambda trial: trial.value or 0.0)
    assert best.number in (parts[0][1], parts[1][1])


def test_a_wrong_password_is_not_shown(server: str) -> None:
    wrong = server.replace(SECRET, "wrong-and-secret")
    with (
        pytest.raises(KryographError, match="password authentication") as caught,
        open_database(wrong),
    ):
        pass
    assert "wrong-and-secret" not in str(caught.value)
