"""How figures look.

Colours are those of Okabe and Ito, which colour-blind people tell apart, and no two lines of a
panel share both colour and dashes. A figure across two columns of a paper is seven inches wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

WIDTH = 7.0
"""Inches: two columns of a paper."""

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, RED, YELLOW, BLACK, GREY = "#56b4e9", "#d55e00", "#f0e442", "#000000", "#7f7f7f"

DASHED, DOTTED, DASHDOT = (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2))

STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "kryograph",
}

P = ParamSpec("P")
DrawnResult = TypeVar("DrawnResult")


def styled(draw: Callable[P, DrawnResult]) -> Callable[P, DrawnResult]:
    """A function that draws, made to draw in this style, whatever the user's own is."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> DrawnResult:
        with mpl.rc_context():
            mpl.rcdefaults()
            parameters: Any = mpl.rcParams
            parameters.update(STYLE)
            return draw(*args, **kwargs)

    return drawn


def panels(
    rows: int, columns: int, height: float, *, width: float = WIDTH, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row; not shown anywhere, and known to nobody else."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).ravel())


def letter(axes: Sequence[Axes], titles: Sequence[str]) -> None:
    """Titles as papers number them: (a), (b), …"""
    for place, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        axis.set_title(f"({chr(ord('a') + place)}) {title}")


@styled
def draw_file(figure: Figure, path: Path) -> None:
    """The figure as PNG and as SVG, without a date: the same figure gives the same bytes."""
    figure.savefig(path.with_name(f"{path.name}.png"), metadata={"Software": None})
    figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
