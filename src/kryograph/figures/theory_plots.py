"""The theorems as pictures, six panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from kryograph.figures import style
from kryograph.figures.depth import accuracy_line
from kryograph.figures.style import TITLES, letter, panels, styled
from kryograph.figures.theorems import FLOOR, Convergence, Fate, Span
from kryograph.figures.theory import Theory

GRAPHS: dict[str, dict[str, Any]] = {
    "cora": {"color": style.BLUE, "marker": "o"},
    "citeseer": {"color": style.ORANGE, "marker": "s"},
    "pubmed": {"color": style.GREEN, "marker": "D"},
}
OTHER: dict[str, Any] = {"color": style.PINK, "marker": "v"}


@styled
def draw_theory(found: Theory) -> Figure:
    """Lemma 1, Theorems 1 and 2, linear Snowball, and truncation twice."""
    figure, axes = panels(2, 3, 4.4)
    _lemma1(axes[0], found.convergence)
    _theorem1(axes[1], found.ranks)
    _theorem2(axes[2], found.fates)
    _equivalence(axes[3], found.residuals)
    _spans(axes[4], found.spans)
    _accuracy(axes[5], found.accuracy)
    letter(
        axes,
        [
            "Lemma 1: powers of L",
            "Theorem 1: rank at most k",
            "Theorem 2: rank lost",
            "Linear Snowball is Krylov",
            "Blocks m: span of K$_m$",
            "Blocks m: accuracy",
        ],
    )
    return figure


def _lemma1(axis: Axes, found: Mapping[str, Convergence]) -> None:
    for name, each in found.items():
        look = _look(name)
        steps = np.arange(len(each.distances))
        usable = each.distances > FLOOR
        axis.plot(steps[usable], each.distances[usable], color=look["color"], label=_title(name))
        # The slope that λ₂ says, through the last point.
        last = int(steps[usable][-1])
        line = each.distances[last] * each.second ** (steps[usable] - last)
        axis.plot(steps[usable], line, color=style.BLACK, linestyle=style.DOTTED, linewidth=1.0)
    axis.plot(
        [], [], color=style.BLACK, linestyle=style.DOTTED, linewidth=1.0, label="slope of |λ₂|"
    )
    axis.set_yscale("log")
    axis.set_xlabel("power m")
    axis.set_ylabel("distance to the limit")
    axis.set_ylim(top=1e8)  # room for the legend, above every curve
    axis.legend(loc="upper right")


def _theorem1(axis: Axes, found: Mapping[int, Sequence[int]]) -> None:
    colours = (style.BLUE, style.ORANGE, style.GREEN, style.RED, style.SKY, style.PINK)
    for place, (components, ranks) in enumerate(found.items()):
        colour = colours[place % len(colours)]
        layers = np.arange(1, len(ranks) + 1)
        axis.axhline(components, color=colour, linestyle=style.DOTTED, linewidth=0.8)
        axis.plot(layers, ranks, color=colour, label=f"k = {components}")
    axis.set_yscale("log", base=2)
    ticks = [2**i for i in range(int(np.log2(max(max(r) for r in found.values()))) + 1)]
    axis.set_yticks(ticks, [str(tick) for tick in ticks])
    axis.yaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("layer of a GCN, ReLU")
    axis.set_ylabel("rank")
    axis.legend(loc="upper right")


def _theorem2(axis: Axes, found: Sequence[Fate]) -> None:
    looks: dict[tuple[str, str], dict[str, Any]] = {
        ("relu", "independent"): {"color": style.RED, "marker": "o", "label": "ReLU, independent"},
        ("relu", "dependent"): {
            **{"color": style.RED, "marker": "s", "linestyle": style.DASHED},
            "label": "ReLU, dependent",
        },
        ("tanh", "independent"): {"color": style.BLUE, "marker": "^", "label": "tanh, independent"},
        ("tanh", "dependent"): {
            **{"color": style.SKY, "marker": "v", "linestyle": style.DASHED},
            "label": "tanh, dependent",
        },
    }
    for (function, columns), look in looks.items():
        mine = [fate for fate in found if (fate.function, fate.columns) == (function, columns)]
        axis.plot([f.rows for f in mine], [100 * f.lowered for f in mine], **look)
    axis.set_xlabel("rows of two random columns")
    axis.set_ylabel("rank lowered, % of draws")
    axis.legend(loc="upper right")


def _equivalence(axis: Axes, found: Mapping[int, float]) -> None:
    axis.axhline(
        np.finfo(np.float64).eps,
        color=style.GREY,
        linestyle=style.DOTTED,
        label="rounding, 2.2e-16",
    )
    axis.plot(
        list(found), list(found.values()), color=style.BLUE, marker="o", label="relative residual"
    )
    axis.set_yscale("log")
    axis.set_ylim(1e-17, 1e-13)
    axis.yaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("layers n")
    axis.set_ylabel("‖H − K$_{n+1}$V‖ / ‖H‖")
    axis.legend(loc="upper left")


def _spans(axis: Axes, found: Mapping[str, Span]) -> None:
    for name, span in found.items():
        share = [100 * dimension / span.nodes for dimension in span.dimensions]
        axis.plot(range(1, len(share) + 1), share, **_look(name), label=_title(name))
    axis.set_xlabel("blocks m")
    axis.set_ylabel("dimension, % of N")
    axis.set_ylim(0, 104)
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(loc="upper right")


def _accuracy(axis: Axes, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    orders = sorted({row["order"] for rows in found.values() for row in rows})
    for name, rows in found.items():
        look = {**_look(name), "label": _title(name)}
        accuracy_line(axis, [row["order"] for row in rows], rows, look)
    axis.set_xscale("log", base=2)
    ticks = [order for order in orders if order & (order - 1) == 0]
    axis.set_xticks(ticks, [str(order) for order in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("blocks m")
    axis.set_ylabel("test accuracy, %")
    axis.legend(loc="lower right")


def _look(name: str) -> dict[str, Any]:
    return GRAPHS.get(name, OTHER)


def _title(name: str) -> str:
    return TITLES.get(name, name)
