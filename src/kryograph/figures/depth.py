"""Accuracy against depth: what over-smoothing does to a trained network.

All systems have the width, the dropout and the number of Krylov blocks below, so that depth is all
that changes within a line, and the architecture between lines; everything else is as each system's
defaults have it (optimiser, learning rate, weight decay). GCN is the general network of
`deep-krylov` with g(L) = L in every layer, which has f as a setting.

Test accuracy of a system over some seeds: a point of a line, with its interval.

Drawings of spectra, of features in the plane, and of accuracy against depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kryograph.data import Dataset
from kryograph.errors import UsageError, unknown
from kryograph.figures import style
from kryograph.figures.style import panels, styled
from kryograph.runs.job import Scenario
from kryograph.runs.perform import Run
from kryograph.runs.runner import Plan
from kryograph.stats import summarise
from kryograph.systems import System, system
from kryograph.training.loop import Conditions, Diverged

DEPTHS = (1, 2, 4, 8, 16, 32, 64)

COMMON: Mapping[str, object] = {"hidden": 16, "dropout": 0.5}
"""GCN's own."""

_GCN: Mapping[str, object] = {
    "filter": "diffusion",
    "output_filter": "diffusion",
    "weight_decay": 5e-4,
}

VARIANTS: dict[str, tuple[str, Mapping[str, object]]] = {
    "GCN, ReLU": ("deep-krylov", {**_GCN, "activation": "relu"}),
    "GCN, tanh": ("deep-krylov", {**_GCN, "activation": "tanh"}),
    "Snowball": ("snowball", {}),
    "linear Snowball": ("linear-snowball", {}),
    "truncated Krylov": ("truncated-krylov", {"order": 3}),
}
"""What is drawn, with its system and settings; three blocks are those of appendix II."""


def at_depth(variant: str, depth: int) -> System:
    """The system of a line at a depth.

    >>> at_depth("truncated Krylov", 8).settings.layers
    8
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    name, changes = VARIANTS[variant]
    return system(name, {**COMMON, **changes, "layers": depth})


def checked_depths(depths: Sequence[int]) -> tuple[int, ...]:
    """Depths in increasing order, each once and at least 1."""
    if not depths or min(depths) < 1:
        raise UsageError(f"Depths must be at least 1; got {', '.join(map(str, depths)) or 'none'}.")
    return tuple(sorted(set(depths)))


def accuracy_over_seeds(
    method: System,
    dataset: Dataset,
    seeds: int,
    *,
    jobs: int = 1,
    conditions: Conditions | None = None,
    on_run: Callable[[int], None] = lambda seed: None,
) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval on the public split, with validation.

    Runs that diverge are counted and left out; there is no mean if all do.

    Args:
        method: The system with its settings.
        dataset: It has a public split.
        seeds: How many runs; their seeds are 0, 1, …
        jobs: How many runs at once.
        conditions: Stop rule, device, precision.
        on_run: Hears of each run that is over.
    """
    plan = Plan(
        method,
        "figure",
        dataset,
        Scenario(dataset.name, "public", "validation"),
        seeds,
        conditions or Conditions(),
        jobs,
    )
    runs: list[Run] = []
    try:
        with closing(plan.runs()) as going:
            for run in going:
                runs.append(run)
                on_run(run.seed)
    except Diverged:
        there = {run.seed: run for run in runs}
        again = (there.get(seed) or _unless_diverged(plan, seed) for seed in range(seeds))
        runs = [run for run in again if run is not None]
    row: dict[str, Any] = {"runs": len(runs), "diverged": seeds - len(runs)}
    if not runs:
        return row | dict.fromkeys(("mean", "std", "low", "high"))
    found = summarise([run.test_accuracy for run in runs])
    low, high = found.ci95
    return row | {"mean": found.mean, "std": found.std, "low": low, "high": high}


def _unless_diverged(plan: Plan, seed: int) -> Run | None:
    try:
        return plan.run(seed)
    except Diverged:
        return None


VARIANT_LOOKS: dict[str, dict[str, Any]] = dict(
    zip(
        VARIANTS,
        (
            {"color": style.RED, "marker": "o"},
            {"color": style.ORANGE, "marker": "s", "linestyle": style.DASHED},
            {"color": style.BLUE, "marker": "^"},
            {"color": style.SKY, "marker": "v", "linestyle": style.DASHED},
            {"color": style.GREEN, "marker": "D"},
        ),
        strict=True,
    )
)


@styled
def draw_depths(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Test accuracy against depth, with 95 % intervals, a line for each variant."""
    figure, [axis] = panels(1, 1, 2.9, width=4.6)
    shown = sorted({row["depth"] for row in rows})
    for place, (variant, look) in enumerate(VARIANT_LOOKS.items()):
        mine = [row for row in rows if row["variant"] == variant]
        # Side by side, so that intervals do not hide each other.
        aside = 2 ** (0.06 * (place - (len(VARIANT_LOOKS) - 1) / 2))
        places = [row["depth"] * aside for row in mine]
        accuracy_line(axis, places, mine, {**look, "label": variant})
    axis.set_xscale("log", base=2)
    axis.set_xticks(shown, [str(depth) for depth in shown])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("hidden layers")
    axis.set_ylabel("test accuracy, %")
    axis.set_ylim(0, 100)
    axis.set_title(title)
    figure.legend(loc="outside right center")
    return figure


def accuracy_line(
    axis: Axes,
    places: Sequence[float],
    rows: Sequence[Mapping[str, Any]],
    look: Mapping[str, Any],
) -> None:
    """Means in per cent, with bars for their intervals where there are some."""
    drawn = [(x, row) for x, row in zip(places, rows, strict=True) if row.get("mean") is not None]
    means = [100 * row["mean"] for _, row in drawn]
    bars = [
        [0.0 if row[end] is None else abs(100 * (row[end] - row["mean"])) for _, row in drawn]
        for end in ("low", "high")
    ]
    axis.errorbar([x for x, _ in drawn], means, yerr=bars, capsize=1.5, elinewidth=0.8, **look)
