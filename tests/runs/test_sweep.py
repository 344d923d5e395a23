from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kryograph.data import load
from kryograph.errors import UsageError
from kryograph.runs.job import Job, Scenario
from kryograph.runs.locks import Locks
from kryograph.runs.perform import failed, perform, run_system
from kryograph.runs.store import Row, Store
from kryograph.runs.sweep import breadth_first, missing, over_budget, seconds_left, sweep
from kryograph.systems import system
from kryograph.training.loop import Diverged

pytestmark = pytest.mark.slow

QUICK = system("prototypes")
COLUMN = Scenario("synthetic", "1%", "validation")
OTHER = Scenario("synthetic", "public", "no-validation")
CELLS = [(QUICK, "default", COLUMN), (QUICK, "default", OTHER)]

TABLE = """
title = "Small"
source = "this test"
protocol = "validation"
columns = [
    { name = "one", dataset = "synthetic", split = "1%" },
    { name = "two", dataset = "synthetic", split = "2%" },
]
[published]
prototypes = [50, 50]
lp = [50, 50]
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.sqlite")


def timeless(rows: list[Row]) -> list[Row]:
    """What does not depend on when and how fast a run was, nor on commits made in between."""
    same: dict[str, Any] = {"seconds": 0.0, "peak_bytes": 0, "finished": "", "revision": ""}
    return sorted((replace(row, **same) for row in rows), key=lambda row: row.key)


def test_one_run_of_every_cell_comes_before_the_second_of_any() -> None:
    jobs = breadth_first(CELLS, 3)
    assert [(job.column, job.seed) for job in jobs] == [
        (column, seed) for seed in range(3) for column in (COLUMN, OTHER)
    ]
    with pytest.raises(UsageError, match="--runs must be at least 1"):
        breadth_first(CELLS, 0)


def test_what_has_a_row_is_not_missing_and_failures_are_if_they_are_to_be_repeated() -> None:
    jobs = breadth_first(CELLS, 2)
    rows = [jobs[0].row(test_accuracy=0.5), failed(jobs[1], Diverged("Too high."))]
    assert missing(jobs, rows) == jobs[2:]
    assert missing(jobs, rows, retry=True) == jobs[1:]


def test_a_row_says_all_about_its_run() -> None:
    job = Job(QUICK, "default", COLUMN, seed=3)
    row = perform(None, job, lambda epoch: None)
    data = load("synthetic")
    split = data.split("1%", seed=3)
    direct = run_system(QUICK, data, split, seed=3)
    assert row.key == job.key
    assert row.split_digest == split.digest
    assert row.test_accuracy == direct.test_accuracy
    assert row.validation_accuracy == direct.validation_accuracy
    assert {"kryograph", "torch", "python"} <= set(row.versions)
    assert row.finished.endswith("+00:00")
    assert row.settings == QUICK.settings.as_dict()


def test_a_failure_is_a_row_of_one_line() -> None:
    row = failed(Job(QUICK, "default", COLUMN, 0), Diverged("Too\nhigh."))
    assert (row.error, row.test_accuracy) == ("Diverged: Too high.", None)


def test_a_sweep_fills_the_store_and_says_each_row_after_it_is_on_the_disk(store: Store) -> None:
    jobs = breadth_first(CELLS, 2)
    for job, row in sweep(jobs, store, workers=2):
        assert store.has(job.key)
        assert row.key == job.key
    assert missing(jobs, store.rows()) == []
    assert timeless(store.rows()) == timeless([perform(None, j, lambda epoch: None) for j in jobs])


def test_a_run_that_raises_is_recorded_and_the_sweep_goes_on(store: Store) -> None:
    wild = system("gcn", {"lr": 900.0, "hidden": 4})
    jobs = [Job(wild, "by hand", COLUMN, 0), Job(QUICK, "default", COLUMN, 0)]
    outcomes = {job.system.name: row for job, row in sweep(jobs, store, workers=1)}
    assert outcomes["prototypes"].error is None
    said = outcomes["gcn"].error
    assert said is None or said.startswith("Diverged: Training stopped")
    nowhere = Job(QUICK, "default", Scenario("synthetic", "0.001%", "validation"), 0)
    [(_, row)] = sweep([nowhere], store, workers=1)
    assert row.error is not None
    assert row.error.startswith("UsageError: 0.001% of")


def test_what_another_process_is_at_is_left_to_it(store: Store) -> None:
    jobs = breadth_first(CELLS, 1)
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from kryograph.runs.locks import Locks\n"
        "with Locks.beside(Path(sys.argv[1])) as claims:\n"
        "    print(claims.take(sys.argv[2]), flush=True)\n    time.sleep(600)"
    )
    arguments = [sys.executable, "-c", script, str(store.path), jobs[0].key]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert [job for job, _ in sweep(jobs, store, workers=1)] == jobs[1:]
        other.kill()
    assert [job for job, _ in sweep(jobs, store, workers=1)] == jobs[:1]


def test_claims_are_given_back_when_a_sweep_is_dropped(store: Store) -> None:
    jobs = breadth_first(CELLS, 2)
    going = sweep(jobs, store, workers=1)
    next(going)
    going.close()
    with Locks.beside(store.path) as claims:
        assert all(claims.take(job.key) for job in jobs)


def test_the_time_left_is_what_such_runs_took() -> None:
    jobs = breadth_first(CELLS, 2)
    assert seconds_left(jobs, [], 2) is None
    rows = [
        jobs[0].row(test_accuracy=0.5, seconds=3.0),
        jobs[1].row(test_accuracy=0.5, seconds=5.0),
    ]
    assert seconds_left(jobs[2:], rows, 2) == pytest.approx(4.0)
    unknown = [Job(system("lp"), "default", COLUMN, 0)]
    assert seconds_left(unknown, rows, 1) == pytest.approx(4.0)
    assert seconds_left([], rows, 1) == 0


def test_a_budget_is_compared_with_the_cost_model() -> None:
    wide = system("truncated-krylov", {"hidden": 50_000, "order": 30})
    assert over_budget(wide, COLUMN, 60.0, None)
    assert not over_budget(system("truncated-krylov"), COLUMN, 600.0, None)
    assert over_budget(QUICK, COLUMN, 1e-9, None)
    assert not over_budget(system("lp"), COLUMN, 1e-9, None)  # its cost is not known


# Through the command line, killed.


def start(folder: Path, store: Path) -> subprocess.Popen[str]:
    arguments = ["reproduce", "own", "t.toml", "--runs", "4", "--jobs", "2", "--store", str(store)]
    return subprocess.Popen(
        [sys.executable, "-m", "kryograph", *arguments],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stderr is not None
    yield from process.stderr


def test_whoever_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed at random moments, until all is done: the same table as if nothing had happened."""
    (tmp_path / "t.toml").write_text(TABLE)
    whole, broken = Store(tmp_path / "whole.sqlite"), Store(tmp_path / "broken.sqlite")
    with start(tmp_path, whole.path) as process:
        assert process.wait() == 0, process.stderr
    dice = random.Random(1)
    finished: set[str] = set()
    for _ in range(3):
        with start(tmp_path, broken.path) as process:
            for line in lines(process):
                if "/" in line and "seed" in line and dice.random() < 0.4:
                    break
            time.sleep(dice.random() * 0.1)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        now = {row.key for row in broken.rows()}
        assert finished <= now
        finished = now
    with start(tmp_path, broken.path) as process:
        assert process.wait() == 0
    assert len(broken.rows()) == 16
    assert timeless(broken.rows()) == timeless(whole.rows())


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TABLE)
    store = Store(tmp_path / "runs.sqlite")
    with start(tmp_path, store.path) as one, start(tmp_path, store.path) as two:
        said = [process.communicate()[1] for process in (one, two)]
        assert (one.returncode, two.returncode) == (0, 0), said
    assert len(store.rows()) == 16
    added = [int(text.split(" runs were added")[0].split()[-1]) for text in said if "added" in text]
    assert sum(added) == 16, said  # no run was done twice


def test_json_rows_hold_only_numbers_and_texts(store: Store) -> None:
    [(_, row)] = sweep([Job(QUICK, "default", COLUMN, 0)], store, workers=1)
    assert json.loads(json.dumps(row.as_dict(), allow_nan=False)) == row.as_dict()
