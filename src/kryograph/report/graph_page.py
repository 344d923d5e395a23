"""Page of a benchmark on many graphs: pictures of regret and accuracy, and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from kryograph.experiments.graph_accuracy import REFERENCES
from kryograph.experiments.graph_rows import PORTFOLIO
from kryograph.experiments.graph_summary import ALL, GraphSetting, GraphSummary
from kryograph.report.charts import at, class_mark, element, line, rectangle, svg, swatch, text
from kryograph.report.graph_tables import method_label, summary_tables
from kryograph.report.html import render_page, shortened, template_text
from kryograph.text import percent

PANEL_WIDTH, LEFT, RIGHT, TOP, ROW = 336, 120, 30, 26, 22
"""Sizes of a panel in pixels: as wide as a telephone; a line of graphs is `ROW` high."""

LABEL_LETTERS = 15
"""Number of letters of a graph's name that fit to the left of a panel."""

TICKS = 5
"""Largest number of values at an axis."""


def render_graph_page(summary: GraphSummary, *, source: str, version: str) -> str:
    """The page as the text of one HTML file that opens without network.

    Args:
        summary: The summary of all rows.
        source: The graphs in words, such as "12 graphs".
        version: Version of kryograph.
    """
    style = template_text("page.css") + template_text("graphs.css")
    methods = shown_methods(summary)
    return render_page(
        "graphs.html",
        style=style,
        scripts=("",),
        page_title="Accuracy on many graphs",
        version=version,
        source=source,
        figures=_headline(summary),
        panels=_panels(summary, methods),
        key=[
            (swatch(number, len(methods)), method_label(method))
            for number, method in enumerate(methods)
        ],
        tables=summary_tables(summary),
        errors=summary.errors,
        embedded=summary.as_dict(),
        embedded_id="summary",
    )


def shown_methods(summary: GraphSummary) -> list[str]:
    """The portfolio and the references that have results."""
    present = {method for setting in summary.settings for method in setting.accuracy}
    return [method for method in (PORTFOLIO, *REFERENCES) if method in present]


def _panels(summary: GraphSummary, methods: Sequence[str]) -> list[dict[str, Any]]:
    """The pictures for each number of labels per class; all have the same axes."""
    settings = summary.settings
    regrets = [100 * setting.regret for setting in settings if setting.regret is not None]
    shares = [100 * v for s in settings for m, v in s.accuracy.items() if m in methods]
    points = nice_ticks(min([0.0, *regrets]), max([1.0, *regrets]))
    percents = nice_ticks(min(shares, default=0.0), max(shares, default=100.0))
    panels = []
    for k in sorted({setting.per_class for setting in settings}):
        part = [setting for setting in settings if setting.per_class == k]
        accuracy = accuracy_panel(part, methods, percents)
        panels.append({"number": k, "regret": regret_panel(part, points), "accuracy": accuracy})
    return panels


def regret_panel(settings: Sequence[GraphSetting], ticks: Sequence[float]) -> Markup:
    """Bars of the regret of each graph; left of zero the portfolio is better than every head."""
    parts = _frame(settings, ticks, "points")
    for number, setting in enumerate(settings):
        if setting.regret is None:
            continue
        regret, y = 100 * setting.regret, _row(number)
        low, high = sorted((_across(0.0, ticks), _across(regret, ticks)))
        kind = "bar over" if round(regret, 1) > 0 else "bar"
        parts.append(rectangle(low, y - 5, max(high - low, 1), 10, kind))
        parts.append(text(high + 4, y + 4, f"{regret:.1f}".replace("-", "−"), "value", "start"))
    return _panel(settings, parts, "Regret of the portfolio to the best head, in points.")


def accuracy_panel(
    settings: Sequence[GraphSetting], methods: Sequence[str], ticks: Sequence[float]
) -> Markup:
    """Marks of the accuracy of each method on each graph; a line marks the best head."""
    parts = _frame(settings, ticks, "%")
    for number, setting in enumerate(settings):
        y = _row(number)
        if setting.best_head is not None:
            x = _across(100 * setting.accuracy[setting.best_head], ticks)
            parts.append(line(x, y - 9, x, y + 9, "best"))
        # The portfolio comes last, so that no other mark hides it.
        for c in reversed(range(len(methods))):
            share = setting.accuracy.get(methods[c])
            if share is not None:
                x = _across(100 * share, ticks)
                parts.append(class_mark(x, y, c, len(methods), 5.5 if c == 0 else 3.6))
    label = "Accuracy of the portfolio and of the references. A table below has the numbers."
    return _panel(settings, parts, label)


def nice_ticks(low: float, high: float) -> list[float]:
    """At most `TICKS` round values whose first and last enclose an interval.

    >>> nice_ticks(13.0, 91.2)
    [0.0, 25.0, 50.0, 75.0, 100.0]
    >>> nice_ticks(-1.4, 3.2)
    [-2.0, 0.0, 2.0, 4.0]
    """
    steps = (factor * 10.0**power for power in range(-1, 4) for factor in (1, 2, 2.5, 5))
    for step in steps:
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first < TICKS:
            return [step * number for number in range(first, max(last, first + 1) + 1)]
    raise ValueError(f"{low} to {high} is too wide for an axis.")


def _headline(summary: GraphSummary) -> list[tuple[str, str, str]]:
    figures = []
    if summary.regret is not None:
        worst = f"points; median {percent(summary.regret.median)}, worst "
        remark = worst + percent(summary.regret.worst)
        figures.append(("Mean regret to the best head", percent(summary.regret.mean), remark))
    titles = {
        "interval_holds": ("Held-out interval holds", "% of the draws"),
        "coverage": ("90 % sets hold the class", "% of the test nodes"),
        "calibration_error": ("Calibration error", "points, in ten bins"),
    }
    for name, (title, remark) in titles.items():
        if name in summary.means:
            figures.append((title, percent(summary.means[name][ALL]), remark))
    return figures


def _row(number: int) -> float:
    return TOP + (number + 0.5) * ROW


def _across(value: float, ticks: Sequence[float]) -> float:
    share = (value - ticks[0]) / (ticks[-1] - ticks[0])
    return LEFT + share * (PANEL_WIDTH - LEFT - RIGHT)


def _frame(settings: Sequence[GraphSetting], ticks: Sequence[float], unit: str) -> list[Markup]:
    """Names of the graphs, and lines at the ticks."""
    floor = TOP + ROW * len(settings)
    parts = [text(LEFT, 10, unit, "unit", "start")]
    for tick in ticks:
        x = _across(tick, ticks)
        parts.append(line(x, TOP - 4, x, floor, "axis" if tick == 0 else "grid"))
        parts.append(text(x, floor + 15, f"{tick:g}".replace("-", "−")))
    for number, setting in enumerate(settings):
        words = shortened(setting.graph, LABEL_LETTERS)
        name = text(LEFT - 8, _row(number) + 4, words, "value", "end")
        parts.append(element("g", name, element("title", setting.graph)))
    return parts


def _panel(settings: Sequence[GraphSetting], parts: Sequence[Any], label: str) -> Markup:
    height = float(at(TOP + ROW * len(settings) + 22))
    return svg(PANEL_WIDTH, height, *parts, role="img", aria_label=label, class_="chart panel")
