from __future__ import annotations

import io
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from rich.console import Console

from kryograph.cli import console as terminal
from kryograph.errors import KryographError, UsageError
from kryograph.runs.perform import Run
from kryograph.runs.sweep import START_SECONDS, number_of_workers
from kryograph.runs.workers import cores, spread
from kryograph.training.loop import Diverged, Epoch

pytestmark = pytest.mark.slow

Tell = Callable[[Epoch], None]


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def made(seed: int, what: int = 0) -> Run:
    return Run(seed, "0123", what, seconds=0.0, validation_accuracy=None, test_accuracy=0.5)


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def until_it_fails(going: Iterator[Run]) -> tuple[list[int], BaseException]:
    """The seeds that were finished, and what ended it."""
    kept = []
    try:
        for each in going:
            kept.append(each.seed)
    except (Exception, KeyboardInterrupt) as error:
        return kept, error
    raise AssertionError(f"nothing failed in {kept}")


# What workers do here. They import this file to find it.


def count_threads(seed: int, tell: Tell) -> Run:
    return made(seed, torch.get_num_threads())


def name_the_process(folder: Path, seed: int, tell: Tell) -> Run:
    (folder / str(seed)).touch()
    wait_for(folder / str(1 - seed))  # so that no worker does both
    return made(seed, os.getpid())


def stay_after_the_first(seed: int, tell: Tell) -> Run:
    if seed > 0:
        time.sleep(600)
    return made(seed)


def first_is_last(folder: Path, seed: int, tell: Tell) -> Run:
    if seed == 0:
        wait_for(folder / "3")
    (folder / str(seed)).touch()
    return made(seed)


def three_epochs(seed: int, tell: Tell) -> Run:
    for number in (1, 2, 3):
        tell(Epoch(number, 0.1, 0.2, 0.3))
    return made(seed)


def slow_epochs(seed: int, tell: Tell) -> Run:
    for number in (1, 2, 3):
        tell(Epoch(number, 0.1, 0.2, 0.3))
        time.sleep(0.3)
    return made(seed)


def fail_first(folder: Path, error: Exception, seed: int, tell: Tell) -> Run:
    """Seed 0 fails once 1 and 2 are finished: the other worker has gone on to 3."""
    if seed == 0:
        wait_for(folder / "3")
        raise error
    (folder / str(seed)).touch()
    if seed == 3:
        time.sleep(600)
    return made(seed)


def be_killed(seed: int, tell: Tell) -> Run:
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 2:
        time.sleep(600)
    return made(seed)


def interrupt_the_parent(folder: Path, parent: int, seed: int, tell: Tell) -> Run:
    if seed == 0:
        wait_for(folder / "3")
        for pid in (os.getpid(), parent):  # Ctrl-C in a terminal reaches every process
            os.kill(pid, signal.SIGINT)
        time.sleep(600)
    (folder / str(seed)).touch()
    if seed == 3:
        time.sleep(600)
    return made(seed)


class Sent:
    """Counts how often it is sent."""

    pickled: ClassVar[int] = 0

    def __getstate__(self) -> dict[str, object]:
        Sent.pickled += 1
        return {"any": "thing"}

    def __call__(self, seed: int, tell: Tell) -> Run:
        return made(seed)


class Unpicklable(Exception):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


# Runs


def test_every_worker_has_one_thread() -> None:
    assert [each.epochs for each in spread(count_threads, 3, 2)] == [1, 1, 1]


def test_seeds_are_spread_over_the_workers_and_none_works_here(tmp_path: Path) -> None:
    processes = {each.epochs for each in spread(partial(name_the_process, tmp_path), 2, 2)}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_runs_come_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    going = spread(partial(first_is_last, tmp_path), 5, 2)
    assert [each.seed for each in going] == [0, 1, 2, 3, 4]
    touched = {int(path.name): path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert touched[0] > touched[1]  # it was finished after others


def test_what_is_needed_is_sent_once_to_each_worker() -> None:
    Sent.pickled = 0
    assert len(list(spread(Sent(), 8, 2))) == 8
    assert Sent.pickled == 2


def test_workers_without_a_seed_do_no_harm() -> None:
    assert [each.seed for each in spread(count_threads, 1, 2)] == [0]


def test_nothing_is_started_before_the_first_run_is_asked_for() -> None:
    spread(count_threads, 3, 2)
    assert multiprocessing.active_children() == []


def test_who_stops_listening_leaves_no_worker() -> None:
    going = spread(stay_after_the_first, 3, 1)
    assert next(going).seed == 0
    assert len(multiprocessing.active_children()) == 1
    going.close()
    assert multiprocessing.active_children() == []


# Epochs


def test_the_first_epoch_of_every_run_is_heard_of_and_many_are_not() -> None:
    heard: list[tuple[int, int]] = []
    list(spread(three_epochs, 4, 2, lambda seed, epoch: heard.append((seed, epoch.number))))
    assert sorted(pair for pair in heard if pair[1] == 1) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert len(heard) < 12


def test_slow_epochs_are_all_heard_of() -> None:
    heard: list[tuple[int, int]] = []
    list(spread(slow_epochs, 2, 2, lambda seed, epoch: heard.append((seed, epoch.number))))
    assert sorted(heard) == [(seed, number) for seed in (0, 1) for number in (1, 2, 3)]


def test_the_bar_names_the_first_of_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "err", Console(file=screen, force_terminal=True, width=120))

    with terminal.progress(3) as tracker:
        tracker.epoch(1, Epoch(7, 0.1, 0.2, 0.3))
        tracker.epoch(0, Epoch(5, 0.1, 0.2, 0.4))
        tracker.epoch(1, Epoch(8, 0.1, 0.2, 0.5))  # not this one: seed 0 is still running
    assert "seed 0: epoch    5" in screen.getvalue()
    assert "seed 1: epoch    8" not in screen.getvalue()
    with terminal.progress(3) as tracker:
        tracker.epoch(0, Epoch(5, 0.1, 0.2, 0.4))
        tracker.run(made(0))
        tracker.epoch(1, Epoch(9, 0.1, 0.2, 0.5))
    assert "seed 1: epoch    9" in screen.getvalue()
    assert "1/3 runs" in screen.getvalue()


# What goes wrong


@pytest.mark.parametrize(
    ("error", "code"),
    [(KryographError("No."), 1), (UsageError("Not so."), 2), (Diverged("Too high."), 1)],
    ids=lambda value: type(value).__name__,
)
def test_an_error_arrives_as_it_is_after_what_is_finished(
    tmp_path: Path, error: KryographError, code: int
) -> None:
    kept, raised = until_it_fails(spread(partial(fail_first, tmp_path, error), 6, 2))
    assert kept == [1, 2]
    assert isinstance(raised, type(error))
    assert str(raised) == str(error)
    assert raised.exit_code == code
    assert "in fail_first" in raised.__notes__[0]


def test_the_workers_are_stopped_before_what_is_left_is_told(tmp_path: Path) -> None:
    going = spread(partial(fail_first, tmp_path, KryographError("No.")), 6, 2)
    assert next(going).seed == 1
    assert multiprocessing.active_children() == []


def test_memory_that_runs_out_in_a_worker_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        list(spread(partial(fail_first, tmp_path, MemoryError()), 4, 2))


def unpicklable(seed: int, tell: Tell) -> Run:
    raise Unpicklable("a fault", "a worker")


def test_an_error_that_cannot_be_sent_is_described() -> None:
    with pytest.raises(RuntimeError, match=r"^Unpicklable: a fault in a worker"):
        list(spread(unpicklable, 2, 2))


def test_a_killed_worker_is_an_error_in_words() -> None:
    kept, raised = until_it_fails(spread(be_killed, 4, 2))
    assert kept in ([], [0])  # seed 0 may have been under way
    assert isinstance(raised, KryographError)
    assert raised.exit_code == 1
    assert str(raised) == (
        "A worker process was killed (signal 9) in the run of seed 1, most likely because memory "
        "ran out: try --jobs 1."
    )


def test_an_interruption_stops_the_workers_and_keeps_what_is_finished(tmp_path: Path) -> None:
    work = partial(interrupt_the_parent, tmp_path, os.getpid())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        kept, raised = until_it_fails(spread(work, 6, 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept == [1, 2]
    assert type(raised) is KeyboardInterrupt


# How many


def chosen(
    requested: int | None = None,
    seeds: int = 10,
    seconds_per_run: float | None = 30.0,
    narrow: bool = True,
    cores: int = 4,
    memory_per_run: float | None = None,
    memory: float | None = None,
) -> int:
    return number_of_workers(
        requested, seeds, seconds_per_run, narrow, cores, memory_per_run, memory
    )


def test_what_is_requested_is_done_but_no_more_jobs_than_seeds() -> None:
    assert chosen(3, seconds_per_run=None, narrow=False, cores=1) == 3
    assert chosen(1) == 1
    assert chosen(20, seeds=5) == 5
    assert chosen(2, memory_per_run=8e9, memory=1e9) == 2


@pytest.mark.parametrize("requested", [0, -3])
def test_less_than_one_job_is_refused(requested: int) -> None:
    with pytest.raises(UsageError, match=f"--jobs must be at least 1; it is {requested}"):
        chosen(requested)


def test_by_default_narrow_networks_take_every_core() -> None:
    assert chosen() == 4
    assert chosen(seeds=3) == 3
    assert chosen(cores=2) == 2


def test_by_default_one_job_where_more_would_not_help() -> None:
    assert chosen(narrow=False) == 1
    assert chosen(seeds=1) == 1
    assert chosen(cores=1) == 1
    assert chosen(seconds_per_run=None) == 1


def test_by_default_short_runs_are_not_worth_the_start() -> None:
    # Two runs at once save the time of one, less that of starting.
    assert chosen(seeds=2, seconds_per_run=START_SECONDS) == 1
    assert chosen(seeds=2, seconds_per_run=START_SECONDS + 0.1) == 2


def test_by_default_the_jobs_fit_into_memory() -> None:
    assert chosen(memory_per_run=2e9, memory=8e9) == 4
    assert chosen(memory_per_run=2e9, memory=7e9) == 3
    assert chosen(memory_per_run=9e9, memory=7e9) == 1
    assert chosen(memory_per_run=9e9, memory=None) == 4
    assert chosen(memory_per_run=0.0, memory=7e9) == 4


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
