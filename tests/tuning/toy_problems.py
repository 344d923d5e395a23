"""Problems whose best settings are known, on a graph of 300 nodes."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kryograph.data import Dataset, synthetic_citations
from kryograph.graph import Split
from kryograph.runs.job import Scenario
from kryograph.systems import System
from kryograph.training.loop import Conditions, Diverged, Epoch
from kryograph.training.stopping import StopRule
from kryograph.tuning.problem import JudgedTask, TuningProblem

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))
OTHERS = tuple(
    Split(f"by hand {k}", train=range(k, k + 30), validation=range(130, 230), test=range(230, 300))
    for k in (30, 60)
)
COLUMN = Scenario("synthetic", "public", "validation")
SHORT = Conditions(rule=StopRule(max_epochs=4))


def toy() -> Dataset:
    drawn = synthetic_citations(n=300, classes=3, words=60, signal=0.5, seed=2)
    return replace(drawn, public=SPLIT)


def on_three_splits(data: Dataset) -> tuple[JudgedTask, ...]:
    return tuple(
        JudgedTask(data.task(split, validation=False), data.task(split), seed)
        for seed, split in enumerate((SPLIT, *OTHERS), start=1000)
    )


@dataclass(frozen=True)
class Parabola(TuningProblem):
    """The score is best with 7 hops, a little worse on each split, and needs no training."""

    def score(self, method: System, run: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        on_epoch(Epoch(1, 0.0, 0.0, None))
        return 0.9 - abs(method.settings.hops - 7) / 50 - (run.seed - 1000) / 100


@dataclass(frozen=True)
class Slow(Parabola):
    """A run takes a fifth of a second, whatever was predicted."""

    def seconds(self, values: Mapping[str, Any]) -> float | None:
        return 0.0

    def score(self, method: System, run: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        time.sleep(0.2)
        return super().score(method, run, on_epoch)


@dataclass(frozen=True)
class Trouble(Parabola):
    """Another thing happens at some number of runs, which are counted in a file."""

    file: Path = Path("runs")
    at: int = 0
    what: str = "diverges"

    def score(self, method: System, run: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        with self.file.open("a") as file:
            file.write(".")
        if self.file.stat().st_size == self.at:
            if self.what == "diverges":
                raise Diverged("The loss is not finite.")
            if self.what == "is stopped":
                raise KeyboardInterrupt
            if self.what == "is killed":
                # A trial that never had a heartbeat is not known to be dead.
                wait_for_heartbeat(self.file.with_name("one.sqlite"))
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
        return super().score(method, run, on_epoch)


def wait_for_heartbeat(database: Path) -> None:
    """Wait until a running trial of the study has its first heartbeat, which a thread writes."""
    query = "select 1 from trial_heartbeats join trials using (trial_id) where state = 'RUNNING'"
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        while connection.execute(query).fetchone() is None:
            time.sleep(0.01)


def age_heartbeats(database: Path) -> None:
    """Make every heartbeat an hour older, as if its process had been dead for that long."""
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.execute("update trial_heartbeats set heartbeat = datetime(heartbeat, '-1 hour')")


@dataclass(frozen=True)
class Meeting(Parabola):
    """No process finishes a trial before another process has begun one."""

    folder: Path = Path("meeting")

    def score(self, method: System, run: JudgedTask, on_epoch: Callable[[Epoch], None]) -> float:
        (self.folder / str(os.getpid())).touch()
        while len(list(self.folder.iterdir())) < 2:
            time.sleep(0.01)
        return super().score(method, run, on_epoch)


def forked(work: Callable[[], object]) -> int:
    """Do it in a copy of this process, which has all imports; the number of that process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread is needed in the copy
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def exit_code(child: int) -> int:
    """How that process ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
