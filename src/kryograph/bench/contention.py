"""Epochs and `fit` on an idle machine and beside busy processes.

The busy processes are real ones, which compute without end. Three numbers of threads take turns in
one process: that of kryograph, which follows the free cores; one; and as many as there are cores,
which is what torch uses by itself. `fit` is `label_nodes` with the default pool.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import geometric_mean
from typing import Any

import torch

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, interleaved
from kryograph.bench.contestant import engine_contestant
from kryograph.bench.epoch import Case
from kryograph.bench.fit import FitCase
from kryograph.data import load
from kryograph.engine.cost import TOO_SHORT
from kryograph.labelling import label_nodes
from kryograph.nn.functional import Masks
from kryograph.threads import adapt_threads, cores, free_cores, on_free_cores, read_counters

BUSY, QUICK_BUSY = (0, 1, 3), (0, 1)
"""Numbers of busy processes beside which every case is measured."""

CONTENTION_CASES = (
    Case("truncated-krylov", "cora", 18, 128),
    Case("truncated-krylov", "cora", 10, 1950),
    Case("linear-snowball", "cora", 9, 128),
    Case("snowball", "cora", 14, 64),
)
QUICK_CONTENTION_CASES = CONTENTION_CASES[:1]

FIT_NODES, QUICK_FIT_NODES = 3_000, 300
FIT_LABELS = 36

BUSY_PROGRAM = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
"""Program of a busy process; it ends with the process that started it."""

TURN_SECONDS = 0.25
"""Predicted time of the epochs of one turn: as in a run, threads are adapted while they compute."""

Works = dict[str, Callable[[], object]]


@benchmark(
    {
        "times": (
            ColumnFormat("work", "work"),
            ColumnFormat("busy", "busy"),
            ColumnFormat("kryograph s", "kryograph_seconds", "{:.4f}".format),
            ColumnFormat("one thread s", "one_seconds", "{:.4f}".format),
            ColumnFormat("all cores s", "all_seconds", "{:.4f}".format),
            ColumnFormat("of one thread", "of_one", "{:.2f}".format),
            ColumnFormat("of all cores", "of_all", "{:.2f}".format),
            ColumnFormat("free cores", "free", "{:.1f}".format),
        ),
        "summary": (
            ColumnFormat("busy", "busy"),
            ColumnFormat("of one thread, mean", "mean", "{:.2f}".format),
            ColumnFormat("greatest", "greatest", "{:.2f}".format),
        ),
    }
)
def measure_contention(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Seconds of each work beside each number of busy processes, and the ratios.

    With `quick` there are fewer of them, and `fit` has a small graph.
    """
    rows: list[dict[str, Any]] = []
    cases = QUICK_CONTENTION_CASES if quick else CONTENTION_CASES
    works = {str(case): _epochs(case) for case in cases}
    works["fit"] = _fits(QUICK_FIT_NODES if quick else FIT_NODES)
    for busy in QUICK_BUSY if quick else BUSY:
        with busy_processes(busy):
            for name, (ways, count) in works.items():
                on_case(f"{name}, {busy} busy processes")
                times = compare_threads(ways, count, quick=quick)
                rows.append({"work": name, "busy": busy, **times})
    return {"times": rows, "summary": _summary(rows)}


def compare_threads(ways: Works, count: int, *, quick: bool) -> dict[str, Any]:
    """Measure the ways of one work, and the cores that other processes left free meanwhile.

    Seconds are those of one of the `count` equal parts of the work.
    """
    before = read_counters()
    times = interleaved(ways, at_least=1 if quick else 3, budget=0.5 if quick else 6.0)
    free = free_cores(before, read_counters(), cores())
    return {
        **{f"{name}_seconds": duration / count for name, duration in times.items()},
        "of_one": times["kryograph"] / times["one"],
        "of_all": times["kryograph"] / times["all"] if "all" in times else None,
        "free": free,
    }


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Child processes that compute as long as this context lasts."""
    command = [sys.executable, "-c", BUSY_PROGRAM]
    processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _epochs(case: Case) -> tuple[Works, int]:
    """Some epochs with each number of threads, and how many they are."""
    task, method = load(case.dataset).task("public"), case.system
    estimate = method.estimate(task)
    assert estimate is not None
    narrow = estimate.epoch.narrow(seconds=TOO_SHORT)
    epoch = engine_contestant(method, task, Masks()).epoch
    count = math.ceil(TURN_SECONDS / estimate.epoch.seconds())

    def run() -> None:
        for _ in range(count):
            adapt_threads()
            epoch()

    adapted = on_free_cores(narrow=narrow)(run)
    works = {"kryograph": adapted, "one": _fixed(1, run), "all": _fixed(cores(), run)}
    return works, count


def _fits(n: int) -> tuple[Works, int]:
    """`fit` of a synthetic graph, with adapted threads and with one."""
    task = FitCase(FIT_LABELS, n).task()

    def fit() -> None:
        label_nodes(task.graph, task.labels, task.classes)

    return {"kryograph": fit, "one": _fixed(1, fit)}, 1


def _fixed(threads: int, work: Callable[[], object]) -> Callable[[], object]:
    """The work with a fixed number of threads."""

    def fixed() -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            work()
        finally:
            torch.set_num_threads(before)

    return fixed


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and greatest ratio to one thread for each number of busy processes."""
    ratios: dict[int, list[float]] = {}
    for row in rows:
        ratios.setdefault(row["busy"], []).append(row["of_one"])
    return [
        {"busy": busy, "mean": geometric_mean(values), "greatest": max(values)}
        for busy, values in ratios.items()
    ]
