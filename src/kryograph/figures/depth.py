"""Test accuracy of trained networks against their depth.

All systems have the same width, dropout and number of Krylov blocks; everything else is the default
of each system. GCN is the network of `deep-krylov` with g(L) = L in every layer, because that
system has f as a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kryograph.data import Dataset, dataset_title
from kryograph.data.splits import PUBLIC
from kryograph.errors import UsageError, unknown
from kryograph.figures import style
from kryograph.figures.figure import FigureResult
from kryograph.figures.style import panels, set_log2_scale, styled
from kryograph.runs.job import DEFAULT_STOP, Job, Scenario, over_seeds
from kryograph.runs.perform import Datasets
from kryograph.runs.store import Row
from kryograph.runs.workers import execute
from kryograph.stats import summarise
from kryograph.systems import System, system
from kryograph.text import OnProgress, ignore_progress, percent, plural
from kryograph.threads import cores
from kryograph.training.loop import Diverged

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""Default numbers of hidden layers."""

COMMON: Mapping[str, object] = {"hidden": 16, "dropout": 0.5}
"""Width and dropout of all systems, which are those of GCN."""

_GCN = {"filter": "diffusion", "output_filter": "diffusion", "weight_decay": 5e-4}

VARIANTS: dict[str, tuple[str, Mapping[str, object]]] = {
    "GCN, ReLU": ("deep-krylov", {**_GCN, "activation": "relu"}),
    "GCN, tanh": ("deep-krylov", {**_GCN, "activation": "tanh"}),
    "Snowball": ("snowball", {}),
    "linear Snowball": ("linear-snowball", {}),
    "truncated Krylov": ("truncated-krylov", {"order": 3}),
}
"""System and changed settings of each line; three blocks are those of appendix II."""

VARIANT_LOOKS: dict[str, dict[str, Any]] = {
    "GCN, ReLU": {"color": style.RED, "marker": "o"},
    "GCN, tanh": {"color": style.ORANGE, "marker": "s", "linestyle": style.DASHED},
    "Snowball": {"color": style.BLUE, "marker": "^"},
    "linear Snowball": {"color": style.SKY, "marker": "v", "linestyle": style.DASHED},
    "truncated Krylov": {"color": style.GREEN, "marker": "D"},
}


def compute_depth(
    dataset: Dataset,
    depths: Sequence[int],
    *,
    seeds: int,
    split: str = PUBLIC,
    jobs: int | None = 1,
    stop: str = DEFAULT_STOP,
    progress: OnProgress = ignore_progress,
) -> FigureResult:
    """Train every variant at every depth, `seeds` times; draw the accuracies.

    The depths are numbers of hidden layers, as returned by `check_depths`. `split` is the name of a
    split; a random one is drawn again for each seed.
    """
    rows: list[dict[str, Any]] = []
    points = [(depth, variant) for depth in depths for variant in VARIANTS]
    runs: dict[str, Any] = {"split": split, "jobs": jobs, "stop": stop}
    for index, (depth, variant) in enumerate(points):
        progress(f"{depth} layers: {variant}", index / len(points))
        score = accuracy_over_seeds(at_depth(variant, depth), dataset, seeds, **runs)
        rows.append({"variant": variant, "depth": depth, **score})
    about = {
        **{"dataset": dataset.name, "split": split, "protocol": "validation", "seeds": seeds},
        "settings": {v: at_depth(v, 1).settings.as_dict() | {"layers": "depth"} for v in VARIANTS},
        "points": rows,
    }
    lines = [
        (variant, *(format_interval(row) for row in rows if row["variant"] == variant))
        for variant in VARIANTS
    ]
    title = f"{dataset_title(dataset.name)}, {split} split, {plural(seeds, 'seed')}"
    tables = [(("test % after layers", *map(str, depths)), lines)]
    return FigureResult({"": draw_depths(rows, title)}, rows, about, tables)


def at_depth(variant: str, depth: int) -> System:
    """Build the system of a variant with `depth` hidden layers.

    >>> at_depth("truncated Krylov", 8).settings.layers
    8
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    name, changes = VARIANTS[variant]
    return system(name, {**COMMON, **changes, "layers": depth})


def check_depths(depths: Sequence[int]) -> tuple[int, ...]:
    """Sort depths and drop repeated ones; each must be at least 1."""
    if not depths or min(depths) < 1:
        raise UsageError(f"Depths must be at least 1; got {', '.join(map(str, depths)) or 'none'}.")
    return tuple(sorted(set(depths)))


def accuracy_over_seeds(
    method: System,
    dataset: Dataset,
    seeds: int,
    *,
    split: str = PUBLIC,
    jobs: int | None = 1,
    stop: str = DEFAULT_STOP,
) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of the test accuracy with seeds 0, 1, ….

    Training sees validation labels; `jobs` runs, None: one per core, are done at the same time.
    Runs that diverge are counted and left out; the mean is None if no run is left, and the interval
    is None if one run is left.
    """
    scenario = Scenario(dataset.name, split, "validation")
    runs = over_seeds([Job(method, "figure", scenario, stop=stop)], seeds)
    scores: list[float] = []
    datasets = Datasets(loaded=[dataset])
    workers = min(jobs or cores(), seeds)
    with closing(execute(runs, workers=workers, load=datasets)) as outcomes:
        for _, outcome in outcomes:
            if isinstance(outcome, Row):
                scores.append(outcome.test_accuracy or 0.0)
            elif not isinstance(outcome, Diverged):
                raise outcome
    row: dict[str, Any] = {"runs": len(scores), "diverged": seeds - len(scores)}
    if not scores:
        return row | dict.fromkeys(("mean", "std", "low", "high"))
    summary = summarise(scores)
    low, high = summary.ci95
    return row | {"mean": summary.mean, "std": summary.std, "low": low, "high": high}


def format_interval(row: Mapping[str, Any]) -> str:
    """Mean and half of the 95 % interval in per cent, such as '81.4 ± 1.3'."""
    if row["mean"] is None:
        return "diverged"
    half = "" if row["low"] is None else f" ± {percent((row['high'] - row['low']) / 2)}"
    return percent(row["mean"]) + half


@styled
def draw_depths(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Draw test accuracy against depth with 95 % intervals, and a line for each variant."""
    figure, [axis] = panels(1, 1, 2.9, width=4.6)
    for index, (variant, look) in enumerate(VARIANT_LOOKS.items()):
        points = [row for row in rows if row["variant"] == variant]
        # Points of one depth are drawn side by side, so that no interval hides another.
        shift = 2 ** (0.06 * (index - (len(VARIANT_LOOKS) - 1) / 2))
        x = [row["depth"] * shift for row in points]
        draw_accuracy(axis, x, points, {**look, "label": variant})
    set_log2_scale(axis, "x", sorted({row["depth"] for row in rows}))
    axis.set(xlabel="hidden layers", ylabel="test accuracy, %", ylim=(0, 100), title=title)
    figure.legend(loc="outside right center")
    return figure


def draw_accuracy(
    axis: Axes, x: Sequence[float], rows: Sequence[Mapping[str, Any]], look: Mapping[str, Any]
) -> None:
    """Draw means in per cent with their intervals; rows without a mean are left out."""
    points = [(at, row) for at, row in zip(x, rows, strict=True) if row["mean"] is not None]
    bars = [
        [0.0 if row[end] is None else abs(100 * (row[end] - row["mean"])) for _, row in points]
        for end in ("low", "high")
    ]
    means = [100 * row["mean"] for _, row in points]
    axis.errorbar([at for at, _ in points], means, yerr=bars, capsize=1.5, elinewidth=0.8, **look)
