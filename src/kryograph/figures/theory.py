"""`kryograph theory`: the experiments of `theorems` at their sizes, as panels, tables and rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from kryograph.data import Dataset, dataset_title
from kryograph.data.splits import PUBLIC
from kryograph.figures import style
from kryograph.figures.depth import accuracy_over_seeds, draw_accuracy
from kryograph.figures.figure import FigureResult, TextTable
from kryograph.figures.style import letter_titles, panels, set_log2_scale, styled
from kryograph.figures.theorems import (
    FLOOR,
    Convergence,
    RankChange,
    Span,
    convergence,
    deep_ranks,
    dense_features,
    rank_changes,
    snowball_residual,
    span,
)
from kryograph.graph import Graph
from kryograph.operators import operator
from kryograph.runs.job import DEFAULT_STOP
from kryograph.systems import system
from kryograph.text import OnProgress, ignore_progress, percent

RESIDUAL_FEATURES = 200
"""Number of columns of X in the experiment on linear Snowball; V has (n + 1) times as many rows."""


@dataclass(frozen=True)
class TheoryOptions:
    """Sizes of the experiments, and how the systems of the last one are trained."""

    steps: int = 8000  # highest power of L in Lemma 1
    components: tuple[int, ...] = (1, 2, 4, 8)  # of the graphs of Theorem 1
    nodes: int = 400  # of all components of a graph
    width: int = 64  # of its features and of every layer
    layers: int = 120
    draws: int = 2000  # pairs of columns for Theorem 2
    residual_layers: tuple[int, ...] = (1, 2, 3, 4, 6, 8)  # numbers of layers of linear Snowball
    blocks: int = 60  # most blocks whose span is computed
    orders: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # blocks of the trained systems
    seed: int = 0  # of the random matrices
    seeds: int = 10  # training runs of each number of blocks
    jobs: int | None = 1  # training runs at the same time; None: one per core
    stop: str = DEFAULT_STOP
    split: str = PUBLIC  # of the training runs


QUICK_THEORY = TheoryOptions(
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
    """Results of all experiments; names are those of the data sets."""

    convergence: Mapping[str, Convergence]  # Lemma 1, by name
    ranks: Mapping[int, Sequence[int]]  # Theorem 1: of each layer, by number of components
    rank_changes: Sequence[RankChange]  # Theorem 2
    residuals: Mapping[int, float]  # of linear Snowball, by number of layers
    spans: Mapping[str, Span]  # of K_m, by name
    accuracy: Mapping[str, Sequence[Mapping[str, Any]]]  # by name, with a row for each m


def compute_theory(
    datasets: Mapping[str, Dataset], options: TheoryOptions, progress: OnProgress = ignore_progress
) -> FigureResult:
    """Do all experiments on these data sets and draw them."""
    theory = investigate(datasets, options, progress)
    about = {
        **{"seed": options.seed, "seeds": options.seeds, "split": options.split},
        **theory_summary(theory),
    }
    drawings = {"": draw_theory(theory)}
    return FigureResult(drawings, theory_rows(theory), about, list(theory_tables(theory)))


def investigate(
    datasets: Mapping[str, Dataset], options: TheoryOptions, progress: OnProgress = ignore_progress
) -> Theory:
    """Do all experiments; that on linear Snowball uses the first data set."""
    graphs = {name: dataset.graph for name, dataset in datasets.items()}
    o, seed = options, options.seed
    progress("Lemma 1", 0.0)
    converging = {name: convergence(graph, o.steps, seed=seed) for name, graph in graphs.items()}
    progress("Theorem 1", 0.05)
    ranks = {k: deep_ranks(k, o.nodes, 12, o.width, o.layers, seed) for k in o.components}
    progress("Theorem 2", 0.08)
    changes = rank_changes(draws=o.draws, seed=seed)
    progress("linear Snowball", 0.1)
    first = next(iter(graphs.values()))
    L, x = operator(first), dense_features(first)[:, :RESIDUAL_FEATURES]
    residuals = {n: snowball_residual(L, x, n, 16, seed) for n in o.residual_layers}
    spans = {name: _span(name, graph, o.blocks, progress) for name, graph in graphs.items()}
    scores: dict[str, list[dict[str, Any]]] = {name: [] for name in datasets}
    points = [(name, order) for name in datasets for order in o.orders]
    for index, (name, order) in enumerate(points):
        progress(f"truncated Krylov on {name}, m = {order}", 0.3 + 0.7 * index / len(points))
        method = system("truncated-krylov", {"order": order})
        row = accuracy_over_seeds(
            method, datasets[name], o.seeds, split=o.split, jobs=o.jobs, stop=o.stop
        )
        scores[name].append({"order": order, **row})
    return Theory(converging, ranks, changes, residuals, spans, scores)


def _span(name: str, graph: Graph, blocks: int, progress: OnProgress) -> Span:
    def on_dimension(dimension: int) -> None:
        progress(f"span of K_m on {name}", 0.12 + 0.18 * dimension / graph.n)

    return span(graph, blocks, on_dimension)


def theory_tables(theory: Theory) -> Iterator[TextTable]:
    """Tables of all experiments for the terminal."""
    yield (
        ("Lemma 1: powers of L", "components k", "|λ₂|", "measured rate"),
        [
            (name, f"{c.components}", f"{c.second:.6f}", f"{c.rate:.6f}")
            for name, c in theory.convergence.items()
        ],
    )
    yield (
        ("Theorem 1: deep GCN, ReLU", "first rank", "last rank"),
        [(f"k = {k} components", f"{r[0]}", f"{r[-1]}") for k, r in theory.ranks.items()],
    )
    yield (
        ("Theorem 2: two columns", "rows", "lowered %", "kept %", "raised %"),
        [
            (
                f"{c.function}, {c.columns}",
                str(c.rows),
                *map(percent, (c.lowered, c.kept, c.raised)),
            )
            for c in theory.rank_changes
        ],
    )
    yield (
        ("linear Snowball as K V", "relative residual"),
        [(f"{n} layers", f"{residual:.1e}") for n, residual in theory.residuals.items()],
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
            for name, s in theory.spans.items()
        ],
    )
    for name, scores in theory.accuracy.items():
        yield (
            (f"truncated Krylov, {name}: m", "test %", "95 % interval", "runs"),
            [(f"{r['order']}", percent(r["mean"]), _interval(r), f"{r['runs']}") for r in scores],
        )


def _interval(row: Mapping[str, Any]) -> str:
    return f"{percent(row['low'])} to {percent(row['high'])}"


def theory_summary(theory: Theory) -> dict[str, Any]:
    """Numbers of all experiments without the curves, for the JSON file."""
    return {
        "lemma1": {
            name: {"components": c.components, "second_eigenvalue": c.second, "rate": c.rate}
            for name, c in theory.convergence.items()
        },
        "theorem1": {str(k): {"last_rank": ranks[-1]} for k, ranks in theory.ranks.items()},
        "theorem2": [dataclasses.asdict(change) for change in theory.rank_changes],
        "linear_snowball_residual": {str(n): r for n, r in theory.residuals.items()},
        "span": {name: dataclasses.asdict(s) for name, s in theory.spans.items()},
        "accuracy": {name: list(rows) for name, rows in theory.accuracy.items()},
    }


def theory_rows(theory: Theory) -> list[dict[str, object]]:
    """Points of all curves: experiment, line, position on the line and value."""
    rows: list[dict[str, object]] = []

    def add(experiment: str, line: str, at: int, value: float | None) -> None:
        rows.append({"experiment": experiment, "line": line, "at": at, "value": value})

    for name, c in theory.convergence.items():
        for m, distance in enumerate(c.distances):
            add("lemma1", name, m, float(distance))
    for k, ranks in theory.ranks.items():
        for layer, rank in enumerate(ranks, start=1):
            add("theorem1", f"k = {k}", layer, rank)
    for change in theory.rank_changes:
        add("theorem2", f"{change.function}, {change.columns}", change.rows, change.lowered)
    for n, residual in theory.residuals.items():
        add("linear-snowball", "residual", n, residual)
    for name, s in theory.spans.items():
        for m, dimension in enumerate(s.dimensions, start=1):
            add("span", name, m, dimension)
    for name, scores in theory.accuracy.items():
        for row in scores:
            add("accuracy", name, row["order"], row["mean"])
    return rows


GRAPH_LOOKS: dict[str, dict[str, Any]] = {
    "cora": {"color": style.BLUE, "marker": "o"},
    "citeseer": {"color": style.ORANGE, "marker": "s"},
    "pubmed": {"color": style.GREEN, "marker": "D"},
}
OTHER_GRAPH: dict[str, Any] = {"color": style.PINK, "marker": "v"}


@styled
def draw_theory(theory: Theory) -> Figure:
    """Draw Lemma 1, Theorems 1 and 2, linear Snowball, and the number of blocks twice."""
    figure, axes = panels(2, 3, 4.4)
    _lemma1(axes[0], theory.convergence)
    _theorem1(axes[1], theory.ranks)
    _theorem2(axes[2], theory.rank_changes)
    _equivalence(axes[3], theory.residuals)
    _spans(axes[4], theory.spans)
    _accuracy(axes[5], theory.accuracy)
    titles = (
        *("Lemma 1: powers of L", "Theorem 1: rank at most k", "Theorem 2: rank lost"),
        *("Linear Snowball is Krylov", "Blocks m: span of K$_m$", "Blocks m: accuracy"),
    )
    letter_titles(axes, titles)
    return figure


def _lemma1(axis: Axes, convergence: Mapping[str, Convergence]) -> None:
    dotted: dict[str, Any] = {"color": style.BLACK, "linestyle": style.DOTTED, "linewidth": 1.0}
    for name, c in convergence.items():
        steps = np.flatnonzero(c.distances > FLOOR)
        colour = _look(name)["color"]
        axis.plot(steps, c.distances[steps], color=colour, label=dataset_title(name))
        # A line with the slope of λ₂ through the last point.
        last = steps[-1]
        axis.plot(steps, c.distances[last] * c.second ** (steps - last).astype(float), **dotted)
    axis.plot([], [], **dotted, label="slope of |λ₂|")
    axis.set(xlabel="power m", ylabel="distance to the limit", yscale="log")
    axis.set_ylim(top=1e8)  # the legend is above every curve
    axis.legend(loc="upper right")


def _theorem1(axis: Axes, ranks: Mapping[int, Sequence[int]]) -> None:
    colours = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.SKY, style.PINK)
    for index, (components, line) in enumerate(ranks.items()):
        colour = colours[index % len(colours)]
        axis.axhline(components, color=colour, linestyle=style.DOTTED, linewidth=0.8)
        axis.plot(range(1, len(line) + 1), line, color=colour, label=f"k = {components}")
    highest = max(map(max, ranks.values()))
    set_log2_scale(axis, "y", [2**i for i in range(highest.bit_length())])
    axis.set(xlabel="layer of a GCN, ReLU", ylabel="rank")
    axis.legend(loc="upper right")


def _theorem2(axis: Axes, changes: Sequence[RankChange]) -> None:
    for function, columns, label, colour, marker, dashes in (
        ("relu", "independent", "ReLU, independent", style.RED, "o", "-"),
        ("relu", "dependent", "ReLU, dependent", style.RED, "s", style.DASHED),
        ("tanh", "independent", "tanh, independent", style.BLUE, "^", "-"),
        ("tanh", "dependent", "tanh, dependent", style.SKY, "v", style.DASHED),
    ):
        line = [c for c in changes if (c.function, c.columns) == (function, columns)]
        x, y = [c.rows for c in line], [100 * c.lowered for c in line]
        axis.plot(x, y, color=colour, marker=marker, linestyle=dashes, label=label)
    axis.set(xlabel="rows of two random columns", ylabel="rank lowered, % of draws")
    axis.legend(loc="upper right")


def _equivalence(axis: Axes, residuals: Mapping[int, float]) -> None:
    rounding, dotted = np.finfo(np.float64).eps, style.DOTTED
    axis.axhline(rounding, color=style.GREY, linestyle=dotted, label="rounding, 2.2e-16")
    layers, values = list(residuals), list(residuals.values())
    axis.plot(layers, values, color=style.BLUE, marker="o", label="relative residual")
    axis.set(xlabel="layers n", ylabel="‖H − K$_{n+1}$V‖ / ‖H‖", yscale="log", ylim=(1e-17, 1e-13))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(loc="upper left")


def _spans(axis: Axes, spans: Mapping[str, Span]) -> None:
    for name, s in spans.items():
        share = [100 * dimension / s.nodes for dimension in s.dimensions]
        axis.plot(range(1, len(share) + 1), share, **_look(name), label=dataset_title(name))
    axis.set(xlabel="blocks m", ylabel="dimension, % of N", ylim=(0, 104))
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(loc="upper right")


def _accuracy(axis: Axes, scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, rows in scores.items():
        look = {**_look(name), "label": dataset_title(name)}
        draw_accuracy(axis, [row["order"] for row in rows], rows, look)
    orders = sorted({row["order"] for rows in scores.values() for row in rows})
    set_log2_scale(axis, "x", [order for order in orders if order.bit_count() == 1])
    axis.set(xlabel="blocks m", ylabel="test accuracy, %")
    axis.legend(loc="lower right")


def _look(name: str) -> dict[str, Any]:
    return GRAPH_LOOKS.get(name, OTHER_GRAPH)
