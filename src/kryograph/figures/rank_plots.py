"""Figure 1 and the figures of appendix III: ranks against layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kryograph.figures import style
from kryograph.figures.ranks import ARCHITECTURES, Ranks
from kryograph.figures.style import letter, panels, styled

Found = Mapping[tuple[str, str], Ranks]

LOOKS: dict[str, dict[str, Any]] = {
    "relu": {"color": style.RED, "label": "ReLU"},
    "leaky-relu": {"color": style.RED, "linestyle": style.DASHED, "label": "leaky ReLU"},
    "elu": {"color": style.ORANGE, "label": "ELU"},
    "selu": {"color": style.ORANGE, "linestyle": style.DOTTED, "label": "SELU"},
    "hardshrink": {"color": style.GREY, "label": "hard shrink"},
    "identity": {"color": style.BLACK, "linestyle": style.DASHDOT, "label": "identity"},
    "softshrink": {"color": style.PINK, "linestyle": style.DASHED, "label": "soft shrink"},
    "tanhshrink": {"color": style.SKY, "linestyle": style.DOTTED, "label": "tanh shrink"},
    "tanh": {"color": style.BLUE, "label": "tanh"},
    "sigmoid": {"color": style.GREEN, "linestyle": style.DASHED, "label": "sigmoid"},
}
"""Solid lines come first, so that they hide no dashed one that lies on them."""

ARCHITECTURE_LOOKS: dict[str, dict[str, Any]] = {
    "gcn": {"color": style.RED, "label": "GCN"},
    "snowball": {"color": style.BLUE, "linestyle": style.DASHED, "label": "Snowball"},
    "truncated-krylov": {
        "color": style.GREEN,
        "linestyle": style.DASHDOT,
        "label": "truncated Krylov",
    },
}


@styled
def by_architecture(found: Found) -> Figure:
    """A panel for each architecture, a line for each activation: figure 1, appendix III."""
    architectures, activations = _axes(found)
    # Many names go below the panels; a few fit into the first.
    many = len(activations) > 4
    figure, axes = panels(1, len(architectures), 2.75 if many else 2.3, sharey=True)
    for name, axis in zip(architectures, axes, strict=True):
        for f in activations:
            _line(axis, found[name, f], LOOKS[f])
        _limits(axis, found[name, activations[0]], found)
        axis.set_xlabel("layer")
    letter(axes, [ARCHITECTURES[name].title for name in architectures])
    axes[0].set_ylabel("independent columns")
    if many:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
    else:
        axes[0].legend(loc="center right")
    return figure


@styled
def by_activation(found: Found) -> Figure:
    """The transposed view: a panel for each activation, a line for each architecture."""
    architectures, activations = _axes(found)
    columns = min(5, len(activations))
    rows = -(-len(activations) // columns)
    figure, axes = panels(rows, columns, 0.5 + 1.5 * rows, sharex=True, sharey=True)
    for axis in axes[len(activations) :]:
        axis.set_visible(False)
    shown = axes[: len(activations)]
    for f, axis in zip(activations, shown, strict=True):
        for name in architectures:
            _line(axis, found[name, f], ARCHITECTURE_LOOKS[name])
        _limits(axis, found[architectures[0], f], found)
    letter(shown, [LOOKS[f]["label"] for f in activations])
    figure.supxlabel("layer", fontsize=8)
    figure.supylabel("independent columns", fontsize=8)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(architectures))
    return figure


def _axes(found: Found) -> tuple[Sequence[str], Sequence[str]]:
    architectures = list(dict.fromkeys(name for name, _ in found))
    present = {f for _, f in found}
    return architectures, [f for f in LOOKS if f in present]


def _line(axis: Axes, table: Ranks, look: Mapping[str, Any]) -> None:
    layers = np.arange(1, table.shape[1] + 1)
    mean = table.mean(axis=0)
    axis.plot(layers, mean, **look)
    if len(table) > 1:
        std = table.std(axis=0, ddof=1)
        axis.fill_between(
            layers, mean - std, mean + std, color=look["color"], alpha=0.18, linewidth=0
        )


def _limits(axis: Axes, table: Ranks, found: Found) -> None:
    top = max(int(each.max()) for each in found.values())
    axis.set_xlim(0, table.shape[1])
    axis.set_ylim(0, 1.06 * top)
