"""Time and memory against the number of nodes, up to a million.

The graphs are synthetic, with ten neighbours and 64 dense features per node. One node in a hundred
is labelled for training and another one for validation. An exponent of 1 means that ten times the
nodes need ten times the seconds or bytes.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, seconds
from kryograph.bench.contestant import engine_contestant, network_system
from kryograph.data.synthetic import synthetic_citations
from kryograph.engine.machine import peak_bytes
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.text import gigabytes
from kryograph.threads import on_free_cores

GROWTH_NODES, QUICK_GROWTH_NODES = (10_000, 100_000, 1_000_000), (3_000, 10_000, 30_000)
GROWTH_FEATURES, LABELLED_SHARE = 64, 0.01
GROWTH_SYSTEMS = ("truncated-krylov", "linear-snowball", "snowball")
MEASURED = ("prepare_seconds", "epoch_seconds", "predict_seconds", "peak_bytes")


@benchmark(
    {
        "sizes": (
            ColumnFormat("system", "system"),
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("prepare s", "prepare_seconds", "{:.3f}".format),
            ColumnFormat("epoch s", "epoch_seconds", "{:.4f}".format),
            ColumnFormat("predict all s", "predict_seconds", "{:.3f}".format),
            ColumnFormat("memory", "peak_bytes", gigabytes),
        ),
        "exponents": (
            ColumnFormat("exponent", "name"),
            ColumnFormat("prepare", "prepare_seconds", "{:.2f}".format),
            ColumnFormat("epoch", "epoch_seconds", "{:.2f}".format),
            ColumnFormat("predict all", "predict_seconds", "{:.2f}".format),
            ColumnFormat("memory", "peak_bytes", "{:.2f}".format),
        ),
    }
)
def measure_growth(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """Each system with its default settings on graphs of three sizes, and the fitted exponents."""
    rows = []
    for n in QUICK_GROWTH_NODES if quick else GROWTH_NODES:
        on_case(f"{n:,} nodes")
        task = synthetic_task(n)
        for name in GROWTH_SYSTEMS:
            on_case(f"{name}, {n:,} nodes")
            rows.append(measure_task(name, task, budget=0.5 if quick else 4.0))
    return {
        "sizes": rows,
        "exponents": {name: _exponents(rows, name) for name in GROWTH_SYSTEMS},
    }


def _exponents(rows: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    own = [row for row in rows if row["system"] == name]
    return {key: exponent(own, key) for key in MEASURED}


def synthetic_task(n: int, seed: int = 0) -> Task:
    """A task on a synthetic graph with n nodes."""
    data = synthetic_citations(n, words=GROWTH_FEATURES, mean_degree=10, seed=seed)
    graph = replace(data.graph, features=sp.csr_array(data.graph.features).toarray())
    order = np.random.default_rng(seed).permutation(n)
    count = max(1, round(LABELLED_SHARE * n))
    train, validation, test = (np.sort(part) for part in np.split(order, [count, 2 * count]))
    split = Split(f"{LABELLED_SHARE:.0%} of the nodes", train, validation, test)
    return replace(data, graph=graph, public=None).task(split)


@on_free_cores()
def measure_task(name: str, task: Task, budget: float) -> dict[str, Any]:
    """Measure a system with its default settings; epochs are timed for `budget` seconds."""
    method = network_system(name)
    durations: dict[str, float] = {}

    def work() -> None:
        start = perf_counter()
        contestant = engine_contestant(method, task, Masks())
        contestant.epoch()
        first = perf_counter() - start
        durations["epoch_seconds"] = seconds(contestant.epoch, budget=budget)
        durations["prepare_seconds"] = max(first - durations["epoch_seconds"], 1e-9)
        contestant.network.eval()
        with torch.no_grad():
            durations["predict_seconds"] = seconds(contestant.everything, at_least=1, budget=0)

    _, peak = peak_bytes(work)
    return {"system": name, "nodes": task.graph.n, **durations, "peak_bytes": peak}


def exponent(rows: list[dict[str, Any]], key: str) -> float | None:
    """Slope of the line through the logarithms of `nodes` and `key`; None if a value is missing."""
    if any(not row[key] for row in rows):
        return None
    nodes, values = (np.log([row[name] for row in rows]) for name in ("nodes", key))
    return float(np.polyfit(nodes, values, 1)[0])
