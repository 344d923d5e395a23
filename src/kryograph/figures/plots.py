"""Drawings of spectra, of features in the plane, and of accuracy against depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from kryograph.data import Dataset
from kryograph.figures import style
from kryograph.figures.depth import VARIANTS
from kryograph.figures.features import PROPOSALS, Placed
from kryograph.figures.spectrum import Spectrum
from kryograph.figures.style import letter, panels, styled

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

RW = r"$\tilde{D}^{-1}\tilde{A}$"
SYM = r"$\tilde{D}^{-1/2}\tilde{A}\tilde{D}^{-1/2}$"

CLASSES = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PINK,
    style.SKY,
    style.RED,
    style.YELLOW,
    style.BLACK,
    style.GREY,
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

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
def spectra(found: Mapping[str, Spectrum]) -> Figure:
    """A panel for each data set: values in decreasing order, of both operators."""
    figure, axes = panels(1, len(found), 2.75, sharey=True)
    for axis, spectrum in zip(axes, found.values(), strict=True):
        n = len(spectrum.eigenvalues)
        place = np.arange(1, n + 1)
        axis.axhline(0, color=style.BLACK, linewidth=0.6)
        axis.plot(place, spectrum.singular_rw, color=style.RED, label=f"singular values, {RW}")
        axis.plot(
            place,
            spectrum.singular_sym,
            color=style.BLUE,
            linestyle=style.DASHED,
            label=f"singular values, {SYM}",
        )
        axis.plot(
            place,
            spectrum.eigenvalues,
            color=style.GREY,
            linestyle=style.DOTTED,
            label="eigenvalues of both",
        )
        # A little room on the left: the largest values are a few of thousands.
        axis.set_xlim(-0.02 * n, n)
        axis.set_xlabel("place in the order")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axis.locator_params(axis="x", nbins=4)
    letter(axes, [TITLES.get(name, name) for name in found])
    axes[0].set_ylabel("value")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


@styled
def scatter(dataset: Dataset, found: Sequence[Placed]) -> Figure:
    """A panel for each system: every node where t-SNE puts it, in the colour of its class."""
    figure, axes = panels(1, len(found), 2.75)
    order = np.random.default_rng(0).permutation(dataset.graph.n)
    for axis, placed in zip(axes, found, strict=True):
        low, high = placed.places.min(axis=0), placed.places.max(axis=0)
        # t-SNE's scale means nothing: each cloud fills its square.
        places = (placed.places - (low + high) / 2) / (high - low).max()
        for label, name in enumerate(dataset.classes):
            nodes = order[dataset.labels[order] == label]
            x, y = places[nodes].T
            axis.scatter(
                x,
                y,
                s=3.5,
                marker=MARKERS[label % len(MARKERS)],
                color=CLASSES[label % len(CLASSES)],
                linewidth=0,
                label=name,
            )
        axis.set(xlim=(-0.52, 0.52), ylim=(-0.52, 0.52), box_aspect=1)
        _bare(axis)
        axis.set_xlabel(f"test accuracy {100 * placed.test_accuracy:.1f} %")
    letter(axes, [PROPOSALS[placed.system] for placed in found])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=2.5)
    return figure


@styled
def depths(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
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


def _bare(axis: Axes) -> None:
    """Without ticks and frame: places of t-SNE have no unit."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)
