"""`kryograph theory`: which experiments at which size, and what they come to in numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kryograph.data import Dataset
from kryograph.figures.depth import accuracy_over_seeds
from kryograph.figures.theorems import (
    ORDERS,
    Convergence,
    Fate,
    Span,
    convergence,
    deep_ranks,
    fates,
    snowball_residual,
    span,
)
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.training.loop import Conditions

RESIDUAL_FEATURES = 200
"""Columns of X that the equivalence is tried with: V has a row for each of them and each block."""


@dataclass(frozen=True)
class Size:
    """How much is computed."""

    steps: int = 8000
    """Powers of L."""
    components: tuple[int, ...] = (1, 2, 4, 8)
    nodes: int = 400
    width: int = 64
    layers: int = 120
    draws: int = 2000
    residual_layers: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    blocks: int = 60
    orders: tuple[int, ...] = ORDERS


QUICK_THEORY = Size(
    steps=200,
    components=(1, 2),
    nodes=60,
    width=8,
    layers=60,
    draws=100,
    residual_layers=(1, 2),
    blocks=10,
    orders=(1, 2),
)


@dataclass(frozen=True)
class Theory:
    """All that was found."""

    convergence: Mapping[str, Convergence]
    ranks: Mapping[int, Sequence[int]]
    """By the number of components; of each layer."""
    fates: Sequence[Fate]
    residuals: Mapping[int, float]
    """By the number of layers."""
    spans: Mapping[str, Span]
    accuracy: Mapping[str, Sequence[Mapping[str, Any]]]
    """Of truncated Krylov; a row for each m."""


def investigate(
    datasets: Mapping[str, Dataset],
    size: Size,
    seeds: int,
    jobs: int,
    seed: int,
    conditions: Conditions,
    progress: Callable[[str, float], None],
) -> Theory:
    """Do all experiments; `seed` is of the random matrices, `seeds` the number of trainings."""
    progress("Lemma 1", 0.0)
    first = next(iter(datasets.values()))
    converging = {
        name: convergence(data.graph, size.steps, seed=seed) for name, data in datasets.items()
    }
    progress("Theorem 1", 0.05)
    ranks = {
        k: deep_ranks(k, size.nodes, 12, size.width, size.layers, seed) for k in size.components
    }
    progress("Theorem 2", 0.08)
    drawn = fates(draws=size.draws, seed=seed)
    progress("linear Snowball", 0.1)
    L, x = operator(first.graph), _dense(first)[:, :RESIDUAL_FEATURES]
    residuals = {n: snowball_residual(L, x, n, 16, seed) for n in size.residual_layers}
    spans = {
        name: _span(name, data.graph, size.blocks, progress) for name, data in datasets.items()
    }
    scores: dict[str, list[dict[str, Any]]] = {name: [] for name in datasets}
    points = [(name, order) for name in datasets for order in size.orders]
    for place, (name, order) in enumerate(points):
        progress(f"truncated Krylov on {name}, m = {order}", 0.3 + 0.7 * place / len(points))
        method = system("truncated-krylov", {"order": order})
        row = accuracy_over_seeds(method, datasets[name], seeds, jobs=jobs, conditions=conditions)
        scores[name].append({"order": order, **row})
    return Theory(converging, ranks, drawn, residuals, spans, scores)


def _span(name: str, graph: Graph, blocks: int, progress: Callable[[str, float], None]) -> Span:
    def told(dimension: int) -> None:
        progress(f"span of K_m on {name}", 0.12 + 0.18 * dimension / graph.n)

    return span(graph, blocks, told)


def _dense(data: Dataset) -> np.ndarray[Any, np.dtype[np.float64]]:
    features = data.graph.features
    dense = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(dense, dtype=np.float64)


def theory_tables(found: Theory) -> Iterator[tuple[Sequence[str], list[Sequence[str]]]]:
    """Tables, with their headings."""
    yield (
        ("Lemma 1: powers of L", "components k", "|λ₂|", "measured rate"),
        [
            (name, f"{c.components}", f"{c.second:.6f}", f"{c.rate:.6f}")
            for name, c in found.convergence.items()
        ],
    )
    yield (
        ("Theorem 1: deep GCN, ReLU", "first rank", "last rank"),
        [(f"k = {k} components", f"{r[0]}", f"{r[-1]}") for k, r in found.ranks.items()],
    )
    yield (
        ("Theorem 2: two columns", "rows", "lowered %", "kept %", "raised %"),
        [
            (
                f"{f.function}, {f.columns}",
                str(f.rows),
                *(f"{100 * share:.1f}" for share in (f.lowered, f.kept, f.raised)),
            )
            for f in found.fates
        ],
    )
    yield (
        ("linear Snowball as K V", "relative residual"),
        [(f"{n} layers", f"{residual:.1e}") for n, residual in found.residuals.items()],
    )
    yield (
        ("span of K_m", "nodes", "features", "dimension", "stops growing at m"),
        [
            (
                name,
                f"{s.nodes:,}",
                f"{s.features:,}",
                f"{s.dimensions[-1]:,}" if s.dimensions else "0",
                f"> {len(s.dimensions)}" if s.grade is None else str(s.grade),
            )
            for name, s in found.spans.items()
        ],
    )
    for name, scores in found.accuracy.items():
        yield (
            (f"truncated Krylov, {name}: m", "test %", "95 % interval", "runs"),
            [
                (
                    str(row["order"]),
                    *(_percent(row, "mean"), f"{_percent(row, 'low')} to {_percent(row, 'high')}"),
                    str(row["runs"]),
                )
                for row in scores
            ],
        )


def _percent(row: Mapping[str, Any], key: str) -> str:
    return "–" if row[key] is None else f"{100 * row[key]:.1f}"


def theory_sentences(found: Theory) -> dict[str, Any]:
    """For JSON: the numbers, without the curves."""
    return {
        "lemma1": {
            name: {"components": c.components, "second_eigenvalue": c.second, "rate": c.rate}
            for name, c in found.convergence.items()
        },
        "theorem1": {str(k): {"last_rank": ranks[-1]} for k, ranks in found.ranks.items()},
        "theorem2": [dataclasses.asdict(fate) for fate in found.fates],
        "linear_snowball_residual": {str(n): r for n, r in found.residuals.items()},
        "span": {name: dataclasses.asdict(s) for name, s in found.spans.items()},
        "accuracy": {name: list(rows) for name, rows in found.accuracy.items()},
    }


def theory_rows(found: Theory) -> list[dict[str, object]]:
    """All curves, in one table: which experiment, which line, where, how much."""
    table: list[dict[str, object]] = []

    def add(experiment: str, line: object, at: int, value: float | None) -> None:
        table.append({"experiment": experiment, "line": line, "at": at, "value": value})

    for name, c in found.convergence.items():
        for m, distance in enumerate(c.distances):
            add("lemma1", name, m, float(distance))
    for k, ranks in found.ranks.items():
        for layer, value in enumerate(ranks):
            add("theorem1", f"k = {k}", layer + 1, value)
    for f in found.fates:
        add("theorem2", f"{f.function}, {f.columns}", f.rows, f.lowered)
    for n, residual in found.residuals.items():
        add("linear-snowball", "residual", n, residual)
    for name, s in found.spans.items():
        for m, dimension in enumerate(s.dimensions):
            add("span", name, m + 1, dimension)
    for name, scores in found.accuracy.items():
        for row in scores:
            add("accuracy", name, row["order"], row["mean"])
    return table
