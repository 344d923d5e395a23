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
from kryograph.runs.job import Job, Scenario, over_seeds
from kryograph.runs.locks import Locks
from kryograph.runs.perform import Datasets, failed_row, perform
from kryograph.runs.store import Row, Store
from kryograph.runs.sweep import (
    START_SECONDS,
    choose_workers,
    estimate_run,
    missing,
    over_budget,
    seconds_left,
    sweep,
    useful_workers,
)
from kryograph.systems import system
from kryograph.training.loop import Diverged

pytestmark = pytest.mark.slow

QUICK = system("prototypes")
SCENARIO = Scenario("synthetic", "1%", "validation")
OTHER = Scenario("synthetic", "public", "no-validation")
JOBS = [Job(QUICK, "default", SCENARIO), Job(QUICK, "default", OTHER)]

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


def test_what_has_a_row_is_not_missing_and_failures_are_if_they_are_to_be_repeated() -> None:
    jobs = over_seeds(JOBS, 2)
    rows = [jobs[0].row(test_accuracy=0.5), failed_row(jobs[1], Diverged("Too high."))]
    assert missing(jobs, rows) == jobs[2:]
    assert missing(jobs, rows, retry=True) == jobs[1:]


def test_a_sweep_fills_the_store_and_says_each_row_after_it_is_on_the_disk(store: Store) -> None:
    jobs, data = over_seeds(JOBS, 2), load("synthetic")
    for job, row in sweep(jobs, store, workers=2, load=Datasets()):
        assert store.has(job.key)
        assert row.key == job.key
    assert missing(jobs, store.rows()) == []
    assert timeless(store.rows()) == timeless([perform(job, data) for job in jobs])


def test_a_run_that_raises_is_recorded_and_the_sweep_goes_on(store: Store) -> None:
    wild = system("gcn", {"lr": 900.0, "hidden": 4})
    jobs = [Job(wild, "by hand", SCENARIO, 0), Job(QUICK, "default", SCENARIO, 0)]
    outcomes = {job.system.name: row for job, row in sweep(jobs, store, workers=1, load=Datasets())}
    assert outcomes["prototypes"].error is None
    error = outcomes["gcn"].error
    assert error is None or error.startswith("Diverged: Training stopped")
    nowhere = Job(QUICK, "default", Scenario("synthetic", "0.001%", "validation"), 0)
    [(_, row)] = sweep([nowhere], store, workers=1, load=Datasets())
    assert row.error is not None
    assert row.error.startswith("UsageError: 0.001% of")


def test_what_another_process_is_at_is_left_to_it(store: Store) -> None:
    jobs = over_seeds(JOBS, 1)
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
        assert [job for job, _ in sweep(jobs, store, workers=1, load=Datasets())] == jobs[1:]
        other.kill()
    assert [job for job, _ in sweep(jobs, store, workers=1, load=Datasets())] == jobs[:1]


def test_claims_are_given_back_when_a_sweep_is_dropped(store: Store) -> None:
    jobs = over_seeds(JOBS, 2)
    going = sweep(jobs, store, workers=1, load=Datasets())
    next(going)
    going.close()
    with Locks.beside(store.path) as claims:
        assert all(claims.take(job.key) for job in jobs)


def test_the_time_left_is_what_such_runs_took() -> None:
    jobs = over_seeds(JOBS, 2)
    assert seconds_left(jobs, [], 2) is None
    rows = [
        jobs[0].row(test_accuracy=0.5, seconds=3.0),
        jobs[1].row(test_accuracy=0.5, seconds=5.0),
    ]
    assert seconds_left(jobs[2:], rows, 2) == pytest.approx(4.0)
    unknown = [Job(system("lp"), "default", SCENARIO, 0)]
    assert seconds_left(unknown, rows, 1) == pytest.approx(4.0)
    assert seconds_left([], rows, 1) == 0


def test_over_budget_compares_with_the_cost_model() -> None:
    data = load("synthetic")

    def over(name: str, seconds: float, **settings: int) -> bool:
        return over_budget(Job(system(name, settings), "by hand", SCENARIO), data, seconds)

    assert over("truncated-krylov", 60.0, hidden=50_000, order=30)
    assert not over("truncated-krylov", 600.0)
    assert over("prototypes", 1e-9)
    assert not over("lp", 1e-9)  # its cost is not known


def test_estimate_run_refuses_a_split_that_cannot_be_drawn() -> None:
    impossible = replace(JOBS[0], scenario=Scenario("synthetic", "100%", "validation"))
    with pytest.raises(UsageError, match="too few for 500 validation"):
        estimate_run(impossible, load("synthetic"))


# The number of workers


def test_choose_workers_without_an_estimate_is_one_or_what_is_requested() -> None:
    assert choose_workers(None, 10, None) == 1
    assert choose_workers(None, 10, 3) == 3


def test_choose_workers_refuses_runs_that_do_not_fit_into_memory() -> None:
    wide = system("truncated-krylov", {"hidden": 90_000, "order": 900})
    estimate = estimate_run(Job(wide, "by hand", SCENARIO), load("synthetic"))
    with pytest.raises(UsageError, match=r"This needs about \d{4}\.\d GB of memory"):
        choose_workers(estimate, 10, None)
    with pytest.raises(UsageError, match="for each of 2 runs at once"):
        choose_workers(estimate, 10, 2)


def workers(
    runs: int = 10,
    seconds_per_run: float = 30.0,
    cores: int = 4,
    memory_per_run: float | None = None,
    memory: float | None = None,
) -> int:
    return useful_workers(runs, seconds_per_run, cores, memory_per_run, memory)


def test_the_requested_number_of_workers_is_used_but_no_more_than_there_are_runs() -> None:
    narrow = estimate_run(Job(system("truncated-krylov"), "default", SCENARIO), load("synthetic"))
    for estimate in (None, narrow):
        assert choose_workers(estimate, 10, 3) == 3
        assert choose_workers(estimate, 10, 1) == 1
        assert choose_workers(estimate, 5, 20) == 5


@pytest.mark.parametrize("requested", [0, -3])
def test_less_than_one_job_is_refused(requested: int) -> None:
    with pytest.raises(UsageError, match=f"--jobs must be at least 1; it is {requested}"):
        choose_workers(None, 10, requested)


def test_wide_networks_use_all_threads_for_one_run() -> None:
    wide = system("truncated-krylov", {"hidden": 3000, "order": 30})
    estimate = estimate_run(Job(wide, "by hand", SCENARIO), load("synthetic"))
    assert estimate is not None
    assert not estimate.epoch.narrow()
    assert choose_workers(estimate, 10, None) == 1


def test_by_default_narrow_networks_take_every_core() -> None:
    assert workers() == 4
    assert workers(runs=3) == 3
    assert workers(cores=2) == 2


def test_by_default_one_job_where_more_would_not_help() -> None:
    assert workers(runs=1) == 1
    assert workers(cores=1) == 1


def test_by_default_short_runs_are_not_worth_the_start() -> None:
    # Two runs at once save the time of one, less that of starting.
    assert workers(runs=2, seconds_per_run=START_SECONDS) == 1
    assert workers(runs=2, seconds_per_run=START_SECONDS + 0.1) == 2


def test_by_default_the_jobs_fit_into_memory() -> None:
    assert workers(memory_per_run=2e9, memory=8e9) == 4
    assert workers(memory_per_run=2e9, memory=7e9) == 3
    assert workers(memory_per_run=9e9, memory=7e9) == 1
    assert workers(memory_per_run=9e9, memory=None) == 4
    assert workers(memory_per_run=0.0, memory=7e9) == 4


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
    [(_, row)] = sweep([Job(QUICK, "default", SCENARIO, 0)], store, workers=1, load=Datasets())
    assert json.loads(json.dumps(row.as_dict(), allow_nan=False)) == row.as_dict()
