"""Ten more labels: seconds until all nodes are answered again.

Answering again keeps what does not depend on labels (the basis) and the weights of the members in
the pool, and solves the closed-form heads with the new labels. Fitting again starts from nothing.
Graphs are synthetic, with ten neighbours and 64 features per node.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from kryograph.basis import Basis
from kryograph.bench.benchmark import ColumnFormat, OnCase, benchmark, seconds
from kryograph.bench.fit import FitCase
from kryograph.graph import Task
from kryograph.systems.base import Probabilities
from kryograph.systems.head import HeadSystem
from kryograph.systems.pool import PoolFit, PoolSettings, PoolSystem
from kryograph.systems.trees import TreesSystem
from kryograph.threads import on_free_cores
from kryograph.training.pooling import Pool, logarithms

LABEL_NODES, QUICK_LABEL_NODES = (3_000, 20_000), (500,)
FIRST_LABELS, NEW_LABELS = 36, 10


@dataclass(frozen=True, eq=False)
class Answering:
    """Closed-form members of a fitted pool, with their weights, and the basis that they share."""

    basis: Basis
    heads: tuple[HeadSystem, ...]
    pool: Pool

    @classmethod
    def of(cls, method: PoolSystem, fit: PoolFit) -> Answering:
        """Take the heads with a weight from a fit, except trees, which are not closed forms."""
        numbers = fit.weights["pool.kept"].tolist()
        temperatures = fit.weights["pool.temperatures"].numpy()
        weights = fit.weights["pool.weights"].numpy()
        kept, heads = [], []
        for place, number in enumerate(numbers):
            member = method.members[number]
            closed = isinstance(member, HeadSystem) and not isinstance(member, TreesSystem)
            if closed and weights[place] > 0:
                kept.append(place)
                heads.append(member)
        pool = Pool(temperatures[kept], weights[kept], np.zeros(len(kept)))
        return cls(Basis(fit.task.graph), tuple(heads), pool)

    def answer(self, task: Task) -> Probabilities:
        """Class probabilities of all nodes, learned from the training labels of a task."""
        nodes, classes = task.split.train, len(task.classes)
        logs = []
        for head in self.heads:
            weights = head.learn(self.basis, nodes, task.labels[nodes], classes, 0)
            logs.append(logarithms(head.score(self.basis, weights, classes)))
        return np.exp(self.pool.logits(np.stack(logs)))


@benchmark(
    {
        "graphs": (
            ColumnFormat("nodes", "nodes", "{:,}".format),
            ColumnFormat("labels", "labels"),
            ColumnFormat("new", "new"),
            ColumnFormat("heads", "heads"),
            ColumnFormat("answer again, s", "answer_seconds", "{:.3f}".format),
            ColumnFormat("fit again, s", "fit_seconds", "{:.2f}".format),
            ColumnFormat("same class", "agreement", "{:.1%}".format),
        )
    }
)
def measure_updates(*, quick: bool, on_case: OnCase) -> dict[str, Any]:
    """A row for each size of the graph."""
    rows = []
    for n in QUICK_LABEL_NODES if quick else LABEL_NODES:
        on_case(f"{n:,} nodes")
        rows.append(measure_update(n, budget=0.5 if quick else 3.0))
    return {"graphs": rows}


@on_free_cores()
def measure_update(n: int, budget: float) -> dict[str, Any]:
    """Fit a pool, add labels, and answer again by both ways; answers are timed for `budget` s."""
    after = FitCase(FIRST_LABELS + NEW_LABELS, n).task()
    rng = np.random.default_rng(0)
    first = np.sort(rng.choice(after.split.train, FIRST_LABELS, replace=False))
    visible = np.full(n, -1)
    visible[first] = after.labels[first]
    before = Task.labelled(after.graph, visible, after.classes)
    method = PoolSystem(PoolSettings())
    answering = Answering.of(method, method.fit_pool(before))
    answering.answer(before)  # computes the basis, which an application has from the first answer
    start = perf_counter()
    again = method.fit_pool(after).predict_proba()
    fit_seconds = perf_counter() - start
    quickly = answering.answer(after)
    return {
        "nodes": n,
        "labels": FIRST_LABELS,
        "new": NEW_LABELS,
        "heads": len(answering.heads),
        "answer_seconds": seconds(lambda: answering.answer(after), budget=budget),
        "fit_seconds": fit_seconds,
        "agreement": float((quickly.argmax(axis=1) == again.argmax(axis=1)).mean()),
    }
