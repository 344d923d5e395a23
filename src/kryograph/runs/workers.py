"""Jobs: several runs at once, each in a process of its own with one thread.

Every kernel sums in the same order whatever the number of threads, so the results are the same
whatever the jobs. Workers talk to this process through a pipe each: what is to be run goes in;
epochs, then what came of it or an error come out. A worker whose pipe is closed ends, so none
outlives this process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias, TypeVar

import torch

from kryograph.errors import KryographError
from kryograph.runs.perform import Run
from kryograph.training.loop import Epoch

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

Work: TypeAlias = Callable[[Item, Callable[[Epoch], None]], Outcome]
"""What does one run and says when an epoch is over."""

EPOCH_SECONDS = 0.25
"""How often a worker tells of its epochs: enough for a bar, too seldom to cost anything."""

PRELOAD = ["kryograph.runs.runner"]
"""What a run imports."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(
    work: Work[int, Run],
    seeds: int,
    jobs: int,
    on_epoch: Callable[[int, Epoch], None] = lambda seed, epoch: None,
) -> Generator[Run, None, None]:
    """The runs of seeds 0, 1, … in this order, each as soon as it and all before it are finished.

    After an error or an interruption the workers are stopped, and what is finished out of turn
    comes before the exception. A script that calls this needs the guard
    `if __name__ == "__main__":`, as workers import it.

    Args:
        work: Does one run. It is pickled, and sent once to each worker.
        seeds: How many runs.
        jobs: How many workers.
        on_epoch: Hears of some epochs of every run, among them its first.
    """
    finished: dict[int, Run] = {}
    due = 0
    try:
        with closing(execute(work, iter(range(seeds)), jobs, on_epoch)) as going:
            for seed, outcome in going:
                if isinstance(outcome, Exception):
                    raise outcome
                finished[seed] = outcome
                while due in finished:
                    yield finished.pop(due)
                    due += 1
    except (Exception, KeyboardInterrupt):
        for seed in sorted(finished):
            yield finished[seed]
        raise


def execute(
    work: Work[Item, Outcome],
    items: Iterator[Item],
    jobs: int,
    on_epoch: Callable[[Item, Epoch], None] = lambda item, epoch: None,
) -> Generator[tuple[Item, Outcome | Exception], None, None]:
    """What comes of each item, an error included, in the order in which they are finished.

    An item is taken from the iterator when a worker is free for it. A worker that dies is replaced:
    its item comes to a `KryographError`.
    """
    with _workers(work, jobs) as workers:
        for worker in workers:
            worker.take(items)
        while busy := {worker.pipe: worker for worker in workers if worker.busy}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                item, news = worker.item, worker.hear()
                if isinstance(news, Epoch):
                    on_epoch(item, news)
                    continue
                if isinstance(news, WorkerDied):
                    worker.restart()
                worker.take(items)
                yield item, news


class WorkerDied(KryographError):
    """A worker process ended before its run did."""


class _Worker:
    """A process, this end of its pipe, and the item that it is at."""

    def __init__(
        self, context: SpawnContext | ForkServerContext, work: Callable[..., object]
    ) -> None:
        self.context, self.work = context, work
        self.item: Any = None
        self.busy = False
        self._start()

    def take(self, items: Iterator[object]) -> None:
        """Begin the next item; without any, be idle."""
        nothing = object()
        self.item = next(items, nothing)
        self.busy = self.item is not nothing
        if self.busy:
            self._send(self.item)

    def prepare(self) -> None:
        """Send what is the same for every item. It may be large, so all have started by then."""
        self._send(self.work)

    def hear(self) -> Any:
        """An epoch, what came of the item, or an error."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return self._dead()

    def restart(self) -> None:
        """A new process in the place of one that died."""
        self.stop()
        self._start()
        self.prepare()

    def stop(self) -> None:
        """At once: a worker has nothing to put away."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()

    def _start(self) -> None:
        here, there = self.context.Pipe()
        # The pipe is all that a worker starts with. Whatever is large follows through it: if
        # this process is interrupted meanwhile, a worker finds its pipe closed and ends.
        self.process: BaseProcess = self.context.Process(target=_serve, args=(there,), daemon=True)
        self.process.start()
        there.close()
        self.pipe: Connection = here

    def _send(self, what: object) -> None:
        try:
            self.pipe.send(what)
        except ConnectionError:
            raise self._dead() from None

    def _dead(self) -> WorkerDied:
        self.process.join()
        code = self.process.exitcode
        at = f"in the run of {_named(self.item)}" if self.busy else "before its first run"
        if code is not None and code < 0:
            how = f"was killed (signal {-code}) {at}, most likely because memory ran out"
        else:
            how = f"ended {at} with exit code {code}"
        return WorkerDied(f"A worker process {how}: try --jobs 1.")


def _named(item: object) -> str:
    return f"seed {item}" if isinstance(item, int) else str(item)


@contextmanager
def _workers(work: Callable[..., object], jobs: int) -> Iterator[list[_Worker]]:
    """Workers that have what they need; none is left afterwards."""
    context = _context()
    workers: list[_Worker] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker(context, work))
        for worker in workers:
            worker.prepare()
        yield workers
    finally:
        for worker in workers:
            worker.stop()


def _context() -> SpawnContext | ForkServerContext:
    """Workers are forked from a server: torch is imported once, and has used no thread by then.

    (A copy of a process that has used OpenMP threads may wait for them for ever.)
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    # Ctrl-C in a terminal reaches every process; this one decides. The server and its workers
    # inherit that they do not hear it, even while they import.
    resource_tracker.ensure_running()  # first: where it is started, SIGINT is unblocked afterwards
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def _serve(pipe: Connection) -> None:
    """What a worker does: items in, news out, until nobody listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        work = pipe.recv()
        while True:
            pipe.send(_attempt(work, pipe.recv(), pipe))
    except (EOFError, OSError):
        return


def _attempt(work: Work[Item, Outcome], item: Item, pipe: Connection) -> Outcome | Exception:
    told = float("-inf")

    def tell(epoch: Epoch) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= EPOCH_SECONDS:
            told = now
            pipe.send(epoch)

    try:
        return work(item, tell)
    except Exception as error:
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """An error that arrives as what it is, with its traceback as a note."""
    error.add_note("In a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
