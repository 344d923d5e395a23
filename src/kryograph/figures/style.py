"""Style of the figures: sizes, colours, panels and titles.

Colours are those of Okabe and Ito, which colour-blind people can tell apart. No two lines of a
panel share both colour and dashes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from string import ascii_lowercase
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

WIDTH = 7.0
"""Width in inches of a figure across two columns of a paper."""

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
    """Make a function draw in this style, whatever the user's matplotlib settings are."""

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
    """Create a figure and its panels, row by row.

    `pyplot` does not know the figure, so no window opens and nothing has to be closed. Height and
    width are in inches; the options are those of `Figure.subplots`, such as `sharey`.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).ravel())


def letter_titles(axes: Sequence[Axes], titles: Sequence[str]) -> None:
    """Set the titles of panels, with a letter before each: (a), (b), …."""
    for letter, (axis, title) in zip(ascii_lowercase, zip(axes, titles, strict=True), strict=False):
        axis.set_title(f"({letter}) {title}")


def add_legend(figure: Figure, **options: Any) -> None:
    """Add a legend of the first panel's lines; the options are those of `Figure.legend`."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, **options)


def set_log2_scale(axes: Axes, direction: str, ticks: Sequence[int]) -> None:
    """Give the axis "x" or "y" a logarithmic scale to base 2 with labels at these ticks only."""
    getattr(axes, f"set_{direction}scale")("log", base=2)
    axis = axes.xaxis if direction == "x" else axes.yaxis
    axis.set_ticks(ticks, [str(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())
