"""How cost grows with the graph: preparing, an epoch, predicting every node, and peak memory.

On synthetic graphs with ten neighbours and 64 dense features per node, one node in a hundred
labelled for training and another for validation. An exponent of 1 means that ten times the nodes
cost ten times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from kryograph.bench.benchmark import seconds
from kryograph.bench.epoch import Contestant
from kryograph.data.synthetic import synthetic_citations
from kryograph.engine.machine import peak_bytes
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem, features_on_device
from kryograph.training.loop import nodes_of
from kryograph.training.optimizers import optimizer

NODES, QUICK_NODES = (10_000, 100_000, 1_000_000), (3_000, 10_000, 30_000)
MEAN_DEGREE, FEATURES, SHARE = 10, 64, 0.01
GROWTH_SYSTEMS = ("truncated-krylov", "linear-snowball", "snowball")
MEASURED = ("prepare_seconds", "epoch_seconds", "predict_seconds", "peak_bytes")


def measure_growth(
    *, quick: bool = False, on_case: Callable[[str], None] = lambda case: None
) -> dict[str, Any]:
    """Every system on every size with its default settings, and the fitted exponents.

    Args:
        quick: Small graphs.
        on_case: Told what is measured next.
    """
    rows = []
    for n in QUICK_NODES if quick else NODES:
        on_case(f"{n:,} nodes")
        task = synthetic_task(n)
        for name in GROWTH_SYSTEMS:
            on_case(f"{name}, {n:,} nodes")
            rows.append(measure_task(name, task, budget=0.5 if quick else 4.0))
    return {
        "sizes": rows,
        "exponents": {
            name: {
                field: exponent([row for row in rows if row["system"] == name], field)
                for field in MEASURED
            }
            for name in GROWTH_SYSTEMS
        },
    }


def synthetic_task(n: int, seed: int = 0) -> Task:
    """A task on a synthetic graph of that size."""
    data = synthetic_citations(n, words=FEATURES, mean_degree=MEAN_DEGREE, seed=seed)
    graph = replace(data.graph, features=sp.csr_array(data.graph.features).toarray())
    order = np.random.default_rng(seed).permutation(n)
    few = max(1, round(SHARE * n))
    train, validation, test = (np.sort(part) for part in np.split(order, [few, 2 * few]))
    split = Split(f"{SHARE:.0%} of the nodes", train, validation, test)
    return replace(data, graph=graph, public=None).task(split)


def measure_task(name: str, task: Task, budget: float) -> dict[str, Any]:
    """One system on one graph."""
    chosen = system(name)
    assert isinstance(chosen, NetworkSystem)
    took: dict[str, float] = {}

    def work() -> None:
        start = perf_counter()
        x, L = features_on_device(task.graph, "cpu"), operator(task.graph)
        network = chosen.network(x.shape[1], len(task.classes))
        forward = chosen.engine(network, x, L, nodes_of(task, "cpu"), Masks())
        s = chosen.settings
        stepper = optimizer(s.optimizer, network.parameters(), lr=s.lr, weight_decay=s.weight_decay)
        contestant = Contestant(forward, task, stepper)
        contestant.epoch()
        first = perf_counter() - start
        took["epoch_seconds"] = seconds(contestant.epoch, budget=budget)
        took["prepare_seconds"] = max(first - took["epoch_seconds"], 1e-9)
        network.eval()
        with torch.no_grad():
            took["predict_seconds"] = seconds(forward.everything, at_least=1, budget=0)

    _, peak = peak_bytes(work)
    return {"system": name, "nodes": task.graph.n, **took, "peak_bytes": peak}


def exponent(rows: list[dict[str, Any]], field: str) -> float | None:
    """The slope of a line through the logarithms."""
    if any(not row[field] for row in rows):
        return None
    nodes, values = (np.log([row[name] for row in rows]) for name in ("nodes", field))
    return float(np.polyfit(nodes, values, 1)[0])
