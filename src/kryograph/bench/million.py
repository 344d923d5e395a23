"""A million nodes, from a list of edges to predictions.

The graph is random with sixteen neighbours and 64 features per node; the network is truncated
Krylov of order 12, trained on one node in a hundred. A process of its own measures all stages, so
that its peak memory is that of a person's program, imports and input included.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark
from kryograph.errors import KryographError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.model import Model
from kryograph.systems import system
from kryograph.text import gigabytes
from kryograph.threads import on_free_cores
from kryograph.training.loop import Conditions
from kryograph.training.stopping import exactly

MILLION, QUICK_MILLION = 1_000_000, 20_000
MILLION_DEGREE, MILLION_FEATURES, MILLION_ORDER, MILLION_EPOCHS = 16, 64, 12, 20

PROGRAM = """
import json
from kryograph.bench.million import measure_stages
print(json.dumps(measure_stages({n})))
"""


@benchmark(
    {
        "stages": (
            ColumnFormat("stage", "stage"),
            ColumnFormat("processor s", "processor_seconds", "{:.2f}".format),
            ColumnFormat("peak of the process", "peak_bytes", gigabytes),
        ),
        "": (
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("entries", "entries", "{:,}".format),
            ColumnFormat("epochs", "epochs"),
            ColumnFormat("all stages, processor s", "processor_seconds", "{:.1f}".format),
            ColumnFormat("peak of the process", "peak_bytes", gigabytes),
        ),
    }
)
def measure_million(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Processor seconds of each stage, and the peak memory when it has ended."""
    n = QUICK_MILLION if quick else MILLION
    on_case(f"{n:,} nodes")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(n=n)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise KryographError(f"The measurement ended with exit code {done.returncode}.")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@on_free_cores()
def measure_stages(n: int) -> dict[str, Any]:
    """Do all stages with n nodes in this process; their times and memory."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n, (2, n * MILLION_DEGREE // 2))
    x = rng.standard_normal((n, MILLION_FEATURES), dtype=np.float32)
    x.setflags(write=False)  # the graph need not copy it
    classes = rng.integers(0, 7, n)
    stages: list[dict[str, Any]] = []

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start = process_time()
        yield
        row = {"stage": name, "processor_seconds": process_time() - start}
        stages.append({**row, "peak_bytes": _peak_bytes()})

    with stage("graph"):
        graph = Graph.from_edges(pairs, n, features=x)
        train, validation, test = np.split(rng.permutation(n), [n // 100, n // 50])
        labels = np.full(n, UNKNOWN)
        labels[train], labels[validation] = classes[train], classes[validation]
        task = Task(graph, Split("1 %", train, validation, test), labels, tuple("abcdefg"))
    del pairs
    with stage("fit, with the probabilities of all nodes"):
        method = system("truncated-krylov", {"order": MILLION_ORDER})
        fit = method.fit(task, conditions=Conditions(exactly(MILLION_EPOCHS)))
    with stage("predict all nodes by the model"):
        Model.of(method, fit).predict_proba(graph)
    return {
        "nodes": n,
        "entries": int(graph.adjacency.nnz),
        "epochs": MILLION_EPOCHS,
        "stages": stages,
        "processor_seconds": sum(row["processor_seconds"] for row in stages),
        "peak_bytes": _peak_bytes(),
    }


def _peak_bytes() -> int:
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte
