"""Execute jobs in this process and in worker processes, and what goes wrong there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from kryograph.data import Dataset, load
from kryograph.errors import KryographError, UsageError
from kryograph.runs.job import Job, Scenario, over_seeds
from kryograph.runs.perform import Datasets, perform
from kryograph.runs.store import Row
from kryograph.runs.workers import ONE_THREAD, WorkerDied, execute, run_in_workers
from kryograph.systems import system
from kryograph.training.loop import Diverged, Epoch

pytestmark = pytest.mark.slow

Report = Callable[[Epoch], None]
METHOD = system("linear-snowball", {"hidden": 4})


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


# What workers do here. They import this file to find it.


def count_threads(seed: int, report: Report) -> int:
    return torch.get_num_threads()


def read_environment(name: str, report: Report) -> str | None:
    return os.environ.get(name)


def name_the_process(folder: Path, seed: int, report: Report) -> int:
    (folder / str(seed)).touch()
    wait_for(folder / str(1 - seed))  # so that no worker does both
    return os.getpid()


def stay_after_the_first(seed: int, report: Report) -> int:
    if seed > 0:
        time.sleep(600)
    return seed


def first_is_last(folder: Path, seed: int, report: Report) -> int:
    if seed == 0:
        wait_for(folder / "2")
    (folder / str(seed)).touch()
    return seed


def three_epochs(seed: int, report: Report) -> int:
    for number in (1, 2, 3):
        report(Epoch(number, 0.1, 0.2, 0.3))
    return seed


def slow_epochs(seed: int, report: Report) -> int:
    for number in (1, 2, 3):
        report(Epoch(number, 0.1, 0.2, 0.3))
        time.sleep(0.3)
    return seed


def fail_first(error: Exception, seed: int, report: Report) -> int:
    if seed == 0:
        raise error
    return seed


def be_killed(seed: int, report: Report) -> int:
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return seed


def interrupt_the_parent(folder: Path, parent: int, seed: int, report: Report) -> int:
    if seed == 0:
        wait_for(folder / "3")
        for pid in (os.getpid(), parent):  # Ctrl-C in a terminal reaches every process
            os.kill(pid, signal.SIGINT)
        time.sleep(600)
    (folder / str(seed)).touch()
    if seed == 3:
        time.sleep(600)
    return seed


class Sent:
    """Counts how often it is sent."""

    pickled: ClassVar[int] = 0

    def __getstate__(self) -> dict[str, object]:
        Sent.pickled += 1
        return {"any": "thing"}

    def __call__(self, seed: int, report: Report) -> int:
        return seed


class Unpicklable(Exception):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


def raise_unpicklable(seed: int, report: Report) -> int:
    raise Unpicklable("a fault", "a worker")


# Items in worker processes


def outcomes(work: Any, items: int, workers: int) -> dict[int, Any]:
    return dict(run_in_workers(work, range(items), workers))


def test_run_in_workers_every_worker_has_one_thread() -> None:
    assert outcomes(count_threads, 3, 2) == {0: 1, 1: 1, 2: 1}


def test_run_in_workers_libraries_that_workers_import_have_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert dict(run_in_workers(read_environment, ONE_THREAD, 1)) == ONE_THREAD
    assert os.environ["OMP_NUM_THREADS"] == "2"


def test_run_in_workers_items_are_divided_and_none_is_done_here(tmp_path: Path) -> None:
    processes = set(outcomes(partial(name_the_process, tmp_path), 2, 2).values())
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_run_in_workers_items_come_when_they_have_ended(tmp_path: Path) -> None:
    order = [item for item, _ in run_in_workers(partial(first_is_last, tmp_path), range(4), 2)]
    assert sorted(order) == [0, 1, 2, 3]
    assert order.index(0) > order.index(1)  # item 0 waits until item 2 has begun


def test_run_in_workers_the_work_is_sent_once_to_each_worker() -> None:
    Sent.pickled = 0
    assert len(outcomes(Sent(), 8, 2)) == 8
    assert Sent.pickled == 2


def test_run_in_workers_idle_workers_do_no_harm() -> None:
    assert outcomes(count_threads, 1, 2) == {0: 1}


def test_run_in_workers_starts_nothing_before_the_first_outcome_is_requested() -> None:
    run_in_workers(count_threads, range(3), 2)
    assert multiprocessing.active_children() == []


def test_run_in_workers_takes_an_item_when_a_worker_is_free_for_it() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(5):
            taken.append(item)
            yield item

    running = run_in_workers(count_threads, items(), 1)
    next(running)
    assert taken == [0, 1]
    assert len(list(running)) == 4


def test_run_in_workers_leaves_no_worker_when_it_is_closed() -> None:
    running = run_in_workers(stay_after_the_first, range(3), 1)
    assert next(running) == (0, 0)
    assert len(multiprocessing.active_children()) == 1
    running.close()
    assert multiprocessing.active_children() == []


# Epochs


def test_on_epoch_receives_the_first_epoch_of_every_item_but_not_all() -> None:
    epochs: list[tuple[int, int]] = []

    def on_epoch(item: int, epoch: Epoch) -> None:
        epochs.append((item, epoch.number))

    list(run_in_workers(three_epochs, range(4), 2, on_epoch))
    assert sorted(pair for pair in epochs if pair[1] == 1) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert len(epochs) < 12


def test_on_epoch_receives_all_epochs_that_are_slow() -> None:
    epochs: list[tuple[int, int]] = []

    def on_epoch(item: int, epoch: Epoch) -> None:
        epochs.append((item, epoch.number))

    list(run_in_workers(slow_epochs, range(2), 2, on_epoch))
    assert sorted(epochs) == [(seed, number) for seed in (0, 1) for number in (1, 2, 3)]


# What goes wrong


@pytest.mark.parametrize(
    ("error", "code"),
    [(KryographError("No."), 1), (UsageError("Not so."), 2), (Diverged("Too high."), 1)],
    ids=lambda value: type(value).__name__,
)
def test_run_in_workers_an_error_arrives_as_it_is_and_the_others_go_on(
    error: KryographError, code: int
) -> None:
    results = outcomes(partial(fail_first, error), 4, 2)
    failure = results.pop(0)
    assert results == {1: 1, 2: 2, 3: 3}
    assert type(failure) is type(error)
    assert (str(failure), failure.exit_code) == (str(error), code)
    assert "in fail_first" in failure.__notes__[0]


def test_run_in_workers_memory_that_runs_out_is_a_memory_error() -> None:
    assert type(outcomes(partial(fail_first, MemoryError()), 2, 2)[0]) is MemoryError


def test_run_in_workers_an_error_that_cannot_be_sent_is_described() -> None:
    results = outcomes(raise_unpicklable, 2, 2)
    assert {type(result) for result in results.values()} == {RuntimeError}
    assert str(results[0]) == "Unpicklable: a fault in a worker"


def test_run_in_workers_a_killed_worker_is_replaced_and_its_item_is_an_error() -> None:
    results = outcomes(be_killed, 4, 2)
    failure = results.pop(1)
    assert results == {0: 0, 2: 2, 3: 3}
    assert isinstance(failure, WorkerDied)
    assert failure.exit_code == 1
    assert str(failure) == (
        "A worker process was killed (signal 9) in the run of 1, most likely because memory "
        "ran out: try --jobs 1."
    )


def test_run_in_workers_an_interruption_stops_the_workers(tmp_path: Path) -> None:
    work = partial(interrupt_the_parent, tmp_path, os.getpid())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    finished: list[tuple[int, int | Exception]] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            finished.extend(run_in_workers(work, range(6), 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert finished == [(1, 1), (2, 2)]


# Jobs


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("synthetic")


def jobs(split: str, seeds: int = 3, protocol: str = "validation", stop: str = "3") -> list[Job]:
    scenario = Scenario("synthetic", split, protocol)
    return over_seeds([Job(METHOD, "by hand", scenario, stop=stop)], seeds)


def rows(runs: Iterable[tuple[Job, Row | Exception]]) -> list[Row]:
    """The rows sorted by seed, without what depends on the machine and the moment."""
    results = []
    for _, outcome in runs:
        assert isinstance(outcome, Row), outcome
        results.append(replace(outcome, seconds=0, peak_bytes=0, finished="", revision=""))
    return sorted(results, key=lambda row: row.seed)


def test_execute_the_public_split_is_the_same_for_every_seed(data: Dataset) -> None:
    results = rows(execute(jobs("public"), workers=1, load=Datasets(loaded=[data])))
    assert data.public is not None
    assert {row.split_digest for row in results} == {data.public.digest}
    assert [row.seed for row in results] == [0, 1, 2]
    assert len({row.test_accuracy for row in results}) > 1  # the weights differ


@pytest.mark.parametrize("split", ["1%", "5 per class"])
def test_execute_a_random_split_is_drawn_for_each_seed(data: Dataset, split: str) -> None:
    results = rows(execute(jobs(split), workers=1, load=Datasets(loaded=[data])))
    digests = [row.split_digest for row in results]
    assert len(set(digests)) == 3
    assert digests == [data.split(split, seed=seed).digest for seed in range(3)]


def test_execute_a_run_depends_on_its_own_seed_only(data: Dataset) -> None:
    three = jobs("1%")
    results = rows(execute(three, workers=1, load=Datasets(loaded=[data])))
    assert rows([(three[2], perform(three[2], data))]) == results[2:]


def test_execute_in_this_process_rows_come_one_by_one_with_every_epoch(data: Dataset) -> None:
    epochs: list[tuple[int, int]] = []

    def on_epoch(job: Job, epoch: Epoch) -> None:
        epochs.append((job.seed, epoch.number))

    running = execute(jobs("public"), workers=1, load=Datasets(loaded=[data]), on_epoch=on_epoch)
    assert epochs == []
    assert next(running)[0].seed == 0
    assert epochs == [(0, 1), (0, 2), (0, 3)]
    assert multiprocessing.active_children() == []
    assert [job.seed for job, _ in running] == [1, 2]


def test_execute_with_workers_reports_epochs_of_every_run() -> None:
    seeds: set[int] = set()
    running = execute(
        jobs("public"),
        workers=2,
        load=Datasets(),
        on_epoch=lambda job, epoch: seeds.add(job.seed),
    )
    assert len(rows(running)) == 3
    assert seeds == {0, 1, 2}


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_execute_results_do_not_depend_on_the_number_of_workers(data: Dataset, name: str) -> None:
    method = system(name, {"hidden": 8, "dropout": 0.3})
    three = [replace(job, system=method) for job in jobs("1%", stop="12")]
    here = rows(execute(three, workers=1, load=Datasets(loaded=[data])))
    in_workers = rows(execute(three, workers=2, load=Datasets()))
    assert here == in_workers
    assert len({row.test_accuracy for row in here}) > 1


def test_execute_with_workers_uses_a_data_set_that_cannot_be_loaded_by_name(data: Dataset) -> None:
    labels = data.labels.copy()
    labels[labels == 1] = 0
    changed = replace(data, labels=labels)
    two = jobs("public", seeds=2)
    in_workers = rows(execute(two, workers=2, load=Datasets(loaded=[changed])))
    assert in_workers == rows((job, perform(job, changed)) for job in two)
    assert in_workers != rows((job, perform(job, data)) for job in two)


@pytest.mark.parametrize("workers", [1, 2])
def test_execute_an_error_is_an_outcome_and_the_other_runs_are_done(workers: int) -> None:
    impossible = replace(jobs("1%")[0], scenario=Scenario("synthetic", "100%", "validation"))
    possible = jobs("1%", seeds=1)[0]
    running = execute([impossible, possible], workers=workers, load=Datasets())
    results = dict(running)
    assert isinstance(results[impossible], UsageError)
    assert "too few for 500 validation" in str(results[impossible])
    assert isinstance(results[possible], Row)


def test_execute_the_protocol_reaches_the_runs(data: Dataset) -> None:
    hidden = jobs("1%", seeds=2, protocol="no-validation")
    results = rows(execute(hidden, workers=1, load=Datasets(loaded=[data])))
    assert [row.validation_accuracy for row in results] == [None, None]
    assert all(0 < (row.test_accuracy or 0) < 1 for row in results)
