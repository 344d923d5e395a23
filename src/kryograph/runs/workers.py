"""Execute jobs in this process or in worker processes with one thread each.

Every kernel sums in the same order whatever the number of threads, so results do not depend on the
number of workers. A worker has a pipe to this process: it receives items and sends epochs, then the
outcome or an error. A worker whose pipe is closed ends, so none outlives this process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias, TypeVar

import torch

from kryograph.data import Dataset
from kryograph.errors import KryographError
from kryograph.runs.job import Job
from kryograph.runs.perform import perform
from kryograph.runs.store import Row
from kryograph.training.loop import Epoch, OnEpoch

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

Work: TypeAlias = Callable[[Item, OnEpoch], Outcome]
"""Function that processes one item and reports epochs."""

LoadDataset: TypeAlias = Callable[[str], Dataset]
"""Function that returns the data set of a name, such as `perform.Datasets`."""

EPOCH_SECONDS = 0.25
"""Least time between two epochs that a worker reports: often enough for a progress bar, and too
seldom to slow down training."""

PRELOAD = ["kryograph.runs.perform"]
"""Modules that are imported once, before workers are forked."""


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Environment of workers. Libraries read it when they are imported, and some are imported late."""


def ignore_job_epoch(item: object, epoch: Epoch) -> None:
    """Default callback for `on_epoch`; does nothing."""


def execute(
    jobs: Iterable[Job],
    *,
    workers: int,
    load: LoadDataset,
    on_epoch: Callable[[Job, Epoch], None] = ignore_job_epoch,
) -> Generator[tuple[Job, Row | Exception], None, None]:
    """Do runs; yield each job with its row, or with the error that it raised, when it has ended.

    A script that calls this with several workers needs the guard `if __name__ == "__main__":`,
    because workers import the script.

    Args:
        jobs: The runs to do. A job is taken from the iterable when it is about to begin.
        workers: Number of runs at the same time. One is done in this process, with all its threads.
        load: Returns the data set of a job. It is pickled and sent once to each worker.
        on_epoch: Called after each epoch; with several workers only a few times per second.
    """
    if workers > 1:
        yield from run_in_workers(partial(_perform_by_name, load), jobs, workers, on_epoch)
        return
    for job in jobs:
        outcome: Row | Exception
        try:
            outcome = _perform_by_name(load, job, partial(on_epoch, job))
        except Exception as error:
            outcome = error
        yield job, outcome


def _perform_by_name(load: LoadDataset, job: Job, on_epoch: OnEpoch) -> Row:
    return perform(job, load(job.scenario.dataset), on_epoch)


def run_in_workers(
    work: Work[Item, Outcome],
    items: Iterable[Item],
    workers: int,
    on_epoch: Callable[[Item, Epoch], None] = ignore_job_epoch,
) -> Generator[tuple[Item, Outcome | Exception], None, None]:
    """Process items in worker processes; yield each with its outcome or error when it has ended.

    A worker that dies is replaced, and the outcome of its item is `WorkerDied`.

    Args:
        work: Processes one item. It is pickled and sent once to each worker.
        items: An item is taken from the iterable when a worker is free for it.
        workers: Number of worker processes.
        on_epoch: Called for some epochs of every item, including the first.
    """
    waiting = iter(items)
    with _started(work, workers) as pool:
        for worker in pool:
            worker.take(waiting)
        while busy := {worker.pipe: worker for worker in pool if worker.busy}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                item, message = worker.item, worker.receive()
                if isinstance(message, Epoch):
                    on_epoch(item, message)
                    continue
                if isinstance(message, WorkerDied):
                    worker.restart()
                worker.take(waiting)
                yield item, message


class WorkerDied(KryographError):
    """A worker process ended before its run did."""


class _Worker:
    """A worker process, this end of its pipe, and the item that it works on."""

    def __init__(
        self, context: SpawnContext | ForkServerContext, work: Callable[..., object]
    ) -> None:
        self.context, self.work = context, work
        self.item: Any = None
        self.busy = False
        self._start()

    def take(self, items: Iterator[object]) -> None:
        """Begin the next item; become idle if there is none."""
        nothing = object()
        self.item = next(items, nothing)
        self.busy = self.item is not nothing
        if self.busy:
            self._send(self.item)

    def send_work(self) -> None:
        """Send the function that processes items."""
        self._send(self.work)

    def receive(self) -> Any:
        """Next message from the worker: an `Epoch`, the outcome of the item, or an exception."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return self._death()

    def restart(self) -> None:
        """Replace a process that died by a new one."""
        self.stop()
        self._start()
        self.send_work()

    def stop(self) -> None:
        """End the process at once: it has nothing to clean up."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()

    def _start(self) -> None:
        ours, theirs = self.context.Pipe()
        # A worker starts with its pipe and nothing else. What is large follows through the pipe: if
        # this process is interrupted meanwhile, the worker finds its pipe closed and ends.
        self.process: BaseProcess = self.context.Process(
            target=_worker_main, args=(theirs,), daemon=True
        )
        with _added_environment(ONE_THREAD):
            self.process.start()
        theirs.close()
        self.pipe: Connection = ours

    def _send(self, message: object) -> None:
        try:
            self.pipe.send(message)
        except ConnectionError:
            raise self._death() from None

    def _death(self) -> WorkerDied:
        self.process.join()
        code = self.process.exitcode
        moment = f"in the run of {self.item}" if self.busy else "before its first run"
        if code is not None and code < 0:
            event = f"was killed (signal {-code}) {moment}, most likely because memory ran out"
        else:
            event = f"ended {moment} with exit code {code}"
        return WorkerDied(f"A worker process {event}: try --jobs 1.")


@contextmanager
def _started(work: Callable[..., object], count: int) -> Iterator[list[_Worker]]:
    """Workers that have received their work; all have ended when the block ends."""
    context = _context()
    workers: list[_Worker] = []
    try:
        for _ in range(count):
            workers.append(_Worker(context, work))
        for worker in workers:  # the work may be large, so all processes start first
            worker.send_work()
        yield workers
    finally:
        for worker in workers:
            worker.stop()


def _context() -> SpawnContext | ForkServerContext:
    """Context in which workers are forked from a server, where the platform has it.

    The server imports torch once for all workers, and uses no thread: a copy of a process that has
    used OpenMP threads may wait for them forever.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    # Ctrl-C in a terminal reaches every process, but this one decides what happens. The server and
    # its workers inherit the blocked signal, so they ignore it even while they import.
    resource_tracker.ensure_running()  # first: starting it unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _added_environment(ONE_THREAD):
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


@contextmanager
def _added_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment of processes that are started in this context."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _worker_main(pipe: Connection) -> None:
    """Receive items, process each and send its outcome, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        work = pipe.recv()
        while True:
            pipe.send(_attempt(work, pipe.recv(), pipe))
    except (EOFError, OSError):
        return


def _attempt(work: Work[Item, Outcome], item: Item, pipe: Connection) -> Outcome | Exception:
    last_report = float("-inf")

    def report(epoch: Epoch) -> None:
        nonlocal last_report
        now = time.monotonic()
        if now - last_report >= EPOCH_SECONDS:
            last_report = now
            pipe.send(epoch)

    try:
        return work(item, report)
    except Exception as error:
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """Error that can be pickled, with the traceback of the worker as a note."""
    error.add_note("In a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
