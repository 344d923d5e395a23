"""Page of result tables: coloured cells, every run, and the runs of a cell where it is pointed at.

Cells are coloured by CSS classes, because the policy of the page allows no other style. The data of
each cell is in the page as JSON for the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import DIGITS
from kryograph.report.html import render_page, template_text
from kryograph.report.results_text import MARKS, TableView, failures, half_width, remarks, signed
from kryograph.text import percent, plural

DIFFERENCE_STEPS = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Differences from the paper at which the colour gets stronger."""

SHADES = 6
"""Number of colours in a column of means, from its worst system to its best."""


class HeatCell(NamedTuple):
    """A coloured cell: a large and a small text, and the CSS class of its colour."""

    large: str
    small: str
    shade: str


def render_results_page(views: Sequence[TableView], *, source: str, version: str) -> str:
    """The page as the text of one HTML file; `source` is the store that the runs come from."""
    cells = [result for view in views for result in view.results]
    sections, first_cell = [], 0
    for view in views:
        sections.append(_table_context(view, first_cell))
        first_cell += len(view.results)
    return render_page(
        "results.html",
        style=template_text("page.css") + template_text("results.css"),
        scripts=[template_text("results.js")],
        page_title="Results",
        version=version,
        source=source,
        figures=_headline(cells),
        sections=sections,
        embedded=[_cell_data(result) for result in cells],
        embedded_id="cells",
    )


def _headline(cells: Sequence[CellResult]) -> list[tuple[str, str, str]]:
    with_runs = [result for result in cells if result.summary is not None]
    judged = [r for r in with_runs if r.verdict in ("above", "reproduced", "below")]
    reached = sum(result.verdict != "below" for result in judged)
    runs = sum(len(result.rows) for result in cells)
    failed = sum(len(result.failures) for result in cells)
    return [
        ("Cells with runs", f"{len(with_runs):,}", f"of {len(cells):,}"),
        ("Runs", f"{runs:,}", f"{failed:,} failed"),
        ("Not below the paper", f"{reached:,}", f"of {len(judged):,} cells with two runs or more"),
    ]


def _table_context(view: TableView, first_cell: int) -> dict[str, Any]:
    """Variables of one table; its cells are numbered from `first_cell` in the page's JSON."""
    headings = [heading for block in view.blocks for heading in block]
    spans = {heading: _span(view, heading) for heading in headings}
    numbers = {(r.cell.system, r.cell.heading): first_cell + i for i, r in enumerate(view.results)}
    rows: dict[str, list[Any]] = {"mean": [], "difference": []}
    for system in view.systems:
        cells = [(numbers[system, h], view.result(system, h), spans[h]) for h in headings]
        means = [(number, _mean_cell(result, *span)) for number, result, span in cells]
        differences = [(number, _difference_cell(result)) for number, result, _ in cells]
        rows["mean"].append((system, means))
        rows["difference"].append((system, differences))
    return {
        "table": view.table,
        "metric": view.metric,
        # The data set is written once above its columns.
        "groups": [
            (dataset, len(list(group)))
            for dataset, group in groupby(headings, lambda heading: heading.rpartition(" ")[0])
        ],
        "columns": [heading.rpartition(" ")[2] for heading in headings],
        "rows": rows,
        "remarks": list(remarks(view)),
        "failures": list(failures(view.results)),
        "runs": [(r.cell.heading, row) for r in view.results for row in (*r.rows, *r.failures)],
    }


def _span(view: TableView, heading: str) -> tuple[float, float]:
    """Lowest and highest mean of a column."""
    summaries = [r.summary for r in view.results if r.cell.heading == heading]
    means = [summary.mean for summary in summaries if summary is not None]
    return min(means, default=0.0), max(means, default=0.0)


def _mean_cell(result: CellResult, low: float, high: float) -> HeatCell:
    """Mean and half of its interval; coloured by its rank between `low` and `high`."""
    summary = result.summary
    if summary is None:
        return HeatCell("✗", "failed", "failed") if result.failures else HeatCell("–", "", "none")
    shade = round((SHADES - 1) * (summary.mean - low) / (high - low)) if high > low else 0
    half = half_width(summary)
    below = "1 run" if half is None else f"± {percent(half)}"
    mark = " ✗" if result.failures else ""
    return HeatCell(percent(summary.mean) + mark, below, f"shade-{shade}")


def _difference_cell(result: CellResult) -> HeatCell:
    """Difference from the paper, and the paper's value."""
    paper = percent(result.cell.paper)
    if result.difference is None:
        return HeatCell("✗" if result.verdict == "failed" else "–", paper, "none")
    step = sum(round(abs(result.difference), DIGITS) >= limit for limit in DIFFERENCE_STEPS)
    side = "over" if result.difference > 0 else "under"
    mark = MARKS.get(result.verdict, "")
    return HeatCell(f"{signed(result.difference)} {mark}", paper, f"{side}-{step}")


def _cell_data(result: CellResult) -> dict[str, Any]:
    """Data of one cell for the script; scores are in per cent."""
    summary, paper = result.summary, result.cell.paper
    low, high = summary.ci95 if summary else (None, None)
    facts = [["Verdict", result.verdict]]
    if summary is not None:
        facts.append(["Mean", f"{percent(summary.mean)}, {plural(summary.n, 'run')}"])
    if low is not None:
        facts.append(["95 % interval", f"{percent(low)} to {percent(high)}"])
    if paper is not None:
        beside = "" if result.difference is None else f" ({signed(result.difference)})"
        facts.append(["Paper", f"{percent(paper)}{beside}"])
    if result.settings_source is not None:
        facts.append(["Settings", result.settings_source])
    facts += [["Failed", f"seed {seeds}: {message}"] for _, seeds, message in failures([result])]
    scores = {"mean": summary.mean if summary else None, "low": low, "high": high, "paper": paper}
    return {
        "name": str(result.cell),
        "facts": facts,
        "runs": [[row.seed, _in_percent(row.test_accuracy)] for row in result.rows],
        **{name: _in_percent(score) for name, score in scores.items()},
    }


def _in_percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 3)
