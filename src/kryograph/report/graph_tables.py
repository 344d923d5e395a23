"""Tables of a benchmark on many graphs, for the terminal and for the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kryograph.experiments.graph_accuracy import GRAPH_METHODS, REFERENCES
from kryograph.experiments.graph_rows import PORTFOLIO
from kryograph.experiments.graph_summary import ALL, GraphSummary
from kryograph.report.results_text import signed
from kryograph.systems.base import member_systems
from kryograph.text import percent

TERMINAL_COLUMNS = 100
"""Width in characters that no table exceeds, unless the name of a graph is very long."""

HEADING_WIDTH = 10
"""Headings in the terminal are broken into lines of about this length."""

PADDING = 3
"""Characters between two columns of a table in the terminal."""

FIELD_TITLES = {
    "accuracy": "accuracy, %",
    "balanced_accuracy": "balanced accuracy, %",
    "held_out_accuracy": "held-out accuracy, %",
    "interval_holds": "its interval holds the accuracy, %",
    "coverage": "90 % sets hold the class, %",
    "set_size": "classes in a set",
    "calibration_error": "calibration error, points",
    "seconds": "processor time, s",
}
"""What each field of `PORTFOLIO_FIELDS` is called in a table."""


@dataclass(frozen=True)
class ReportTable:
    """A table of text: title, headings, and rows of cells; numbers are in all columns but one."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def method_label(method: str) -> str:
    """Name of a method for people: its system, and those of its settings that are words.

    >>> method_label("diffused-logistic:representation=features,penalty=1")
    'diffused-logistic features'
    """
    if method == PORTFOLIO:
        return method
    [system] = member_systems(method, "sym")
    pairs = method.partition(":")[2]
    words = [pair.partition("=")[2].strip() for pair in pairs.split(",")]
    return " ".join([system.name, *(word for word in words if word and not word[0].isdigit())])


def summary_tables(summary: GraphSummary) -> list[ReportTable]:
    """All tables of a summary; a table without rows is left out."""
    tables = [
        _accuracy(summary),
        _seconds(summary),
        _portfolio(summary),
        _differences(summary),
        _regret(summary),
    ]
    return [table for table in tables if table.rows]


def narrow_tables(table: ReportTable, keys: int = 2) -> Iterator[ReportTable]:
    """Divide a table into tables that fit the terminal; each begins with the same columns.

    Args:
        table: A table, which may be wide.
        keys: Number of columns that say what a row is.
    """
    headings = ["\n".join(textwrap.wrap(text, HEADING_WIDTH)) for text in table.headings]
    columns = list(zip(headings, *table.rows, strict=True))
    widths = [
        PADDING + max(len(line) for cell in column for line in (*cell.split("\n"), ""))
        for column in columns
    ]
    first, room = sum(widths[:keys]), TERMINAL_COLUMNS - PADDING
    title, parts = table.title, [list[int]()]
    used = first
    for number in range(keys, len(columns)):
        if parts[-1] and used + widths[number] > room:
            parts.append([])
            used = first
        parts[-1].append(number)
        used += widths[number]
    for part in parts:
        chosen = [columns[number] for number in (*range(min(keys, len(columns))), *part)]
        head, *rows = zip(*chosen, strict=True)
        yield ReportTable(title, tuple(head), tuple(rows))
        title = f"{table.title} (continued)"


def _accuracy(summary: GraphSummary) -> ReportTable:
    """Accuracy of every method in every setting; the references come before the other heads."""
    present = {method for setting in summary.settings for method in setting.accuracy}
    ordered = dict.fromkeys((*REFERENCES, *GRAPH_METHODS, *sorted(present)))
    methods = [method for method in ordered if method in present and method != PORTFOLIO]
    rows = [
        (
            setting.graph,
            str(setting.per_class),
            percent(setting.accuracy.get(PORTFOLIO)),
            percent(setting.accuracy[setting.best_head] if setting.best_head else None),
            _points(setting.regret),
            percent(setting.accuracy[setting.best_reference] if setting.best_reference else None),
            *(percent(setting.accuracy.get(method)) for method in methods),
        )
        for setting in summary.settings
    ]
    labels = [method_label(method) for method in methods]
    headings = ("graph", "labels", PORTFOLIO, "best head", "regret", "best reference", *labels)
    return ReportTable("Accuracy on the test nodes, %", headings, tuple(rows))


def _regret(summary: GraphSummary) -> ReportTable:
    spreads = {
        "best head": summary.regret,
        "best head, balanced accuracy": summary.balanced_regret,
        "best reference": summary.reference_regret,
    }
    known = {name: spread for name, spread in spreads.items() if spread is not None}
    numbers = _numbers([spread.by_per_class for spread in known.values()])
    rows = [
        (
            name,
            *(_points(value) for value in (spread.mean, spread.median, spread.worst)),
            *(_points(spread.by_per_class.get(number)) for number in numbers),
        )
        for name, spread in known.items()
    ]
    headings = ("to the", "mean", "median", "worst", *(f"{number} labels" for number in numbers))
    return ReportTable("Regret of the portfolio, points", headings, tuple(rows))


def _differences(summary: GraphSummary) -> ReportTable:
    rows = [(method_label(name), signed(value)) for name, value in summary.differences.items()]
    title = "Portfolio less a reference, mean over the settings, points"
    return ReportTable(title, ("reference", "lead"), tuple(rows))


def _portfolio(summary: GraphSummary) -> ReportTable:
    numbers = _numbers(list(summary.means.values()))
    rows = []
    for name, means in summary.means.items():
        plain = name in ("set_size", "seconds")
        values = [means.get(number) for number in (ALL, *numbers)]
        rows.append((FIELD_TITLES[name], *(_number(v) if plain else percent(v) for v in values)))
    headings = ("mean over all draws", ALL, *(f"{number} labels" for number in numbers))
    return ReportTable("The portfolio", headings, tuple(rows))


def _seconds(summary: GraphSummary) -> ReportTable:
    """Mean processor time of basis, portfolio and references, by number of nodes."""
    times: dict[tuple[int, str], dict[str, list[float]]] = {}
    for setting in summary.settings:
        known = times.setdefault((setting.n, setting.graph), {})
        for method, seconds in setting.seconds.items():
            known.setdefault(method, []).append(seconds)
    present = {method for known in times.values() for method in known}
    methods = [method for method in (PORTFOLIO, *reversed(REFERENCES)) if method in present]
    rows = [
        (
            graph,
            f"{n:,}",
            _number(summary.basis_seconds.get(graph)),
            *(_number(sum(known[m]) / len(known[m])) if m in known else "–" for m in methods),
        )
        for (n, graph), known in sorted(times.items())
    ]
    headings = ("graph", "nodes", "basis", *(method_label(method) for method in methods))
    return ReportTable(
        "Processor time of a draw, s; heads without the basis", headings, tuple(rows)
    )


def _numbers(means: Sequence[dict[str, float]]) -> list[str]:
    """Numbers of labels per class among the keys of some means, ascending."""
    return sorted({key for values in means for key in values if key != ALL}, key=int)


def _points(difference: float | None) -> str:
    return percent(difference).replace("-", "−")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
