"""`kryograph fit` from tables to page: time, memory, the map.

Each case is a process of its own, as a person starts it; its processor time includes the imports.
The map is drawn once more in this process, from the saved model. Graphs of 3,000 and 20,000 nodes
are synthetic, with ten neighbours and 64 features per node.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark
from kryograph.data import load
from kryograph.data.synthetic import synthetic_citations
from kryograph.errors import KryographError
from kryograph.graph import NO_NODES, UNKNOWN, Split, Task
from kryograph.model import Model
from kryograph.report import layout
from kryograph.text import gigabytes


@dataclass(frozen=True)
class FitCase:
    """A graph and the number of its labels; without a data set it is synthetic."""

    labels: int
    nodes: int = 0
    dataset: str | None = None

    def task(self) -> Task:
        """Build the task that trains on the given labels; other labels are hidden."""
        if self.dataset is not None:
            dataset = load(self.dataset)
            public = dataset.task("public")
            visible = np.full(public.graph.n, UNKNOWN)
            visible[public.split.train] = public.labels[public.split.train]
            return Task.labelled(public.graph, visible, public.classes)
        data = synthetic_citations(self.nodes, words=64, mean_degree=10, seed=0)
        train = np.random.default_rng(0).choice(self.nodes, self.labels, replace=False)
        return data.task(Split("drawn", np.sort(train), NO_NODES, NO_NODES))


FIT_CASES = (FitCase(140, dataset="cora"), FitCase(36, 3_000), FitCase(36, 20_000))
QUICK_FIT_CASES = (FitCase(36, 1_000),)


@benchmark(
    {
        "graphs": (
            ColumnFormat("graph", "graph"),
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("labels", "labels"),
            ColumnFormat("processor s", "processor_seconds", "{:.1f}".format),
            ColumnFormat("seconds", "seconds", "{:.1f}".format),
            ColumnFormat("memory", "peak_bytes", gigabytes),
            ColumnFormat("map s", "map_seconds", "{:.2f}".format),
            ColumnFormat("share of the map", "map_share", "{:.0%}".format),
        )
    }
)
def measure_fit(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """A row for each graph; with `quick`, for a small one only."""
    rows = []
    for case in QUICK_FIT_CASES if quick else FIT_CASES:
        name = case.dataset or "synthetic"
        on_case(f"{name}, {case.labels} labels")
        rows.append({"graph": name, "labels": case.labels, **run_fit(case.task())})
    return {"graphs": rows}


def run_fit(task: Task) -> dict[str, Any]:
    """Write the tables of a task, fit them on the command line, and draw the map again."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(task, folder)
        options = ["--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "class"]
        command = [sys.executable, "-m", "kryograph", "fit", *options, "--out", "run"]
        start = perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        elapsed = perf_counter() - start
        if process.returncode:
            raise KryographError(f"kryograph fit ended with exit code {process.returncode}.")
        embedding = Model.load(folder / "run" / "model").embed(task.graph)
    begin = process_time()
    layout.positions(embedding)
    map_seconds = process_time() - begin
    processor_seconds = usage.ru_utime + usage.ru_stime
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return {
        "nodes": task.graph.n,
        "processor_seconds": processor_seconds,
        "seconds": elapsed,
        "peak_bytes": usage.ru_maxrss * kilobyte,
        "map_seconds": map_seconds,
        "map_share": map_seconds / processor_seconds,
    }


def write_tables(task: Task, folder: Path) -> None:
    """Write edges.csv, and nodes.csv with the column "class" of the known labels."""
    graph, numbers = task.graph, np.arange(task.graph.n)
    entries = graph.adjacency.tocoo()
    one_way = entries.row < entries.col
    pairs = zip(entries.row[one_way].tolist(), entries.col[one_way].tolist(), strict=True)
    _write_csv(folder / "edges.csv", ["source", "target"], pairs)
    x = graph.features
    dense = x.toarray() if isinstance(x, sp.csr_array) else x
    labels = [task.classes[label] if label != UNKNOWN else "" for label in task.labels]
    rows = (
        [node, label, *(f"{value:g}" for value in row)]
        for node, label, row in zip(numbers.tolist(), labels, dense.tolist(), strict=True)
    )
    _write_csv(folder / "nodes.csv", ["id", "class", *(f"x{j}" for j in range(x.shape[1]))], rows)


def _write_csv(path: Path, header: list[str], rows: Any) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
