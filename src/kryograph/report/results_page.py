"""Results as one HTML page that opens without network: heat-mapped tables and every run.

Cells are coloured by classes, as the page's policy allows no style but its own. What is known of a
cell is inside the page as JSON; the script shows it, with a picture of the runs, at the cell that
is pointed at or reached by keyboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from string import Template
from typing import Any

from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import DIGITS
from kryograph.report.html import (
    Safe,
    asset,
    embedded_json,
    folded,
    html_table,
    join_markup,
    name,
    paragraph,
    policy,
    safe,
    section,
    tag,
)
from kryograph.report.results_text import MARKS, TableView, about, failures, signed, sources
from kryograph.text import percent, plural

STEPS = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Differences to the paper at which the colour grows stronger."""

SHADES = 6
"""How many colours a column of accuracies has, from its worst system to its best."""

RUN_HEADINGS = (
    *("System", "Column", "Seed", "Test %", "Validation %", "Epochs", "Seconds", "Operator"),
    *("Settings", "Split", "Finished", "Error"),
)
RUN_WORDS = (0, 1, 7, 8, 9, 10, 11)


def results_page(shown: Sequence[TableView], *, source: str, version: str) -> str:
    """The whole page.

    Args:
        shown: The tables.
        source: The store that the runs are from.
        version: Of kryograph.
    """
    style = asset("page.css") + asset("results.css")
    script = asset("results.js")
    cells = [result for each in shown for result in each.results]
    starts = [sum(len(each.results) for each in shown[:i]) for i in range(len(shown))]
    sections = [_table_section(i, each, starts[i]) for i, each in enumerate(shown)]
    links = [tag("a", each.table.name, href=f"#part-{i}") for i, each in enumerate(shown)]
    return Template(asset("results.html")).substitute(
        policy=policy(style, script),
        style=style,
        script=script,
        version=safe(version),
        summary=paragraph(
            "What the runs in ",
            name(source),
            " come to, beside what the paper prints. Point at a cell, or reach it with Tab and the "
            "arrow keys, to see its runs.",
            class_="lead",
        ),
        headline=_headline(cells),
        links=join_markup(links, "\n"),
        contents=join_markup(sections, "\n"),
        data=embedded_json([_known(result) for result in cells]),
    )


def _headline(cells: Sequence[CellResult]) -> Safe:
    run = [result for result in cells if result.summary is not None]
    judged = [r for r in run if r.verdict in ("above", "reproduced", "below")]
    good = sum(result.verdict != "below" for result in judged)
    runs, failed = (sum(len(part) for part in parts) for parts in _runs(cells))
    figures = [
        ("Cells with runs", f"{len(run):,}", f"of {len(cells):,}"),
        ("Runs", f"{runs:,}", f"{failed:,} failed"),
        ("Not below the paper", f"{good:,}", f"of {len(judged):,} cells with two runs or more"),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", what), tag("dd", value, class_="figure"), tag("dd", more))
            for what, value, more in figures
        ),
        class_="headline",
    )


def _runs(cells: Sequence[CellResult]) -> tuple[list[Any], list[Any]]:
    return [result.rows for result in cells], [result.failures for result in cells]


def _table_section(number: int, shown: TableView, start: int) -> Safe:
    where = shown.table
    standing = [
        tag("li", tag("strong", each.system), f": {about(each)}") for each in shown.standings
    ]
    broken = [(cell, seeds, message) for cell, seeds, message in failures(shown.results)]
    return section(
        f"part-{number}",
        where.title,
        paragraph(f"{where.name}: {where.source}. Settings (cells): {sources(shown.results)}."),
        tag("h3", "Test accuracy in per cent"),
        _heats(shown, start, "accuracy"),
        paragraph(
            "The stronger the colour, the better a system is in its column. Below each mean is "
            "half of its 95 % interval; a single run has none.",
            class_="note",
        ),
        tag("h3", "Ours less the paper's, in points"),
        _heats(shown, start, "difference"),
        paragraph(
            "Blue is above the paper's value, which stands below, orange is below it. ▲ and ▼: the "
            "95 % interval does not hold that value; = it does; · one run.",
            class_="note",
        ),
        join_markup([tag("h3", "What it comes to"), tag("ul", *standing)]) if standing else "",
        _broken(broken) if broken else "",
        _every_run(shown.results),
    )


def _broken(rows: Sequence[tuple[str, str, str]]) -> Safe:
    heading = tag("h3", "Runs that failed")
    numbers = html_table(
        ("Cell", "Seeds", "Message"), rows, caption="Runs that failed", words=(0, 1, 2)
    )
    return join_markup([heading, numbers])


def _heats(shown: TableView, start: int, kind: str) -> Safe:
    """A table of coloured cells; the data set is written once above its columns."""
    headings = [heading for block in shown.blocks for heading in block]
    places = {(r.cell.system, r.cell.heading): (start + i, r) for i, r in enumerate(shown.results)}
    spans = {heading: _span(shown, heading) for heading in headings}
    groups = [
        (key, len(list(each))) for key, each in groupby(headings, lambda h: h.rpartition(" ")[0])
    ]
    above = [tag("th", key, scope="colgroup", colspan=count) for key, count in groups]
    below = [tag("th", heading.rpartition(" ")[2], scope="col") for heading in headings]
    corner = tag("th", tag("span", "System", class_="hidden"), rowspan=2, scope="col")
    body = []
    for system in shown.systems:
        cells = []
        for heading in headings:
            place, result = places[system, heading]
            make = _accuracy if kind == "accuracy" else _difference
            said, shade = make(result, spans[heading])
            cells.append(tag("td", said, class_=f"heat {shade}", tabindex=-1, data_cell=place))
        body.append(tag("tr", tag("th", system, scope="row"), *cells))
    caption = f"{shown.table.title}: {kind}"
    made = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", corner, *above), tag("tr", *below)),
        tag("tbody", *body),
        class_="heats",
    )
    return tag("div", made, class_="scroll", role="region", aria_label=caption)


def _span(shown: TableView, heading: str) -> tuple[float, float]:
    """The worst and the best mean in a column."""
    summaries = [r.summary for r in shown.results if r.cell.heading == heading]
    means = [summary.mean for summary in summaries if summary is not None]
    return min(means, default=0.0), max(means, default=0.0)


def _two(large: str, small: str) -> Safe:
    return join_markup([large, tag("small", small)])


def _accuracy(result: CellResult, span: tuple[float, float]) -> tuple[Safe, str]:
    summary = result.summary
    if summary is None:
        return (_two("✗", "failed"), "failed") if result.failures else (_two("–", ""), "none")
    low, high = span
    shade = round((SHADES - 1) * (summary.mean - low) / (high - low)) if high > low else 0
    ends = [end for end in summary.ci95 if end is not None]
    # One end may be cut off at 0 or 1, so the other is the one that tells.
    half = f"± {percent(max(abs(end - summary.mean) for end in ends))}" if ends else "1 run"
    mark = " ✗" if result.failures else ""
    return _two(percent(summary.mean) + mark, half), f"shade-{shade}"


def _difference(result: CellResult, span: tuple[float, float]) -> tuple[Safe, str]:
    paper = percent(result.cell.paper)
    if result.difference is None:
        return _two("✗" if result.verdict == "failed" else "–", paper), "none"
    size = sum(round(abs(result.difference), DIGITS) >= step for step in STEPS)
    side = "over" if result.difference > 0 else "under"
    mark = MARKS.get(result.verdict, "")
    return _two(f"{signed(result.difference)} {mark}", paper), f"{side}-{size}"


def _known(result: CellResult) -> dict[str, Any]:
    """What the script shows of a cell; accuracies in per cent."""
    summary = result.summary
    facts = [["Verdict", result.verdict]]
    if summary is not None:
        low, high = summary.ci95
        facts.append(["Mean", f"{percent(summary.mean)}, {plural(summary.n, 'run')}"])
        if low is not None:
            facts.append(["95 % interval", f"{percent(low)} to {percent(high)}"])
    if result.cell.paper is not None:
        beside = "" if result.difference is None else f" ({signed(result.difference)})"
        facts.append(["Paper", f"{percent(result.cell.paper)}{beside}"])
    if result.settings_source is not None:
        facts.append(["Settings", result.settings_source])
    facts += [["Failed", f"seed {seeds}: {said}"] for _, seeds, said in failures([result])]
    low, high = summary.ci95 if summary else (None, None)
    return {
        "name": str(result.cell),
        "facts": facts,
        "runs": [[row.seed, _points(row.test_accuracy)] for row in result.rows],
        "mean": _points(summary.mean if summary else None),
        "low": _points(low),
        "high": _points(high),
        "paper": _points(result.cell.paper),
    }


def _points(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 3)


def _every_run(results: Sequence[CellResult]) -> Safe:
    """All runs, which the script sorts and filters."""
    rows = [
        (
            row.system,
            result.cell.heading,
            row.seed,
            percent(row.test_accuracy),
            percent(row.validation_accuracy),
            "–" if row.epochs is None else row.epochs,
            "–" if row.seconds is None else f"{row.seconds:.1f}",
            row.operator,
            row.settings_source,
            row.split_digest[:8],
            row.finished[:10],
            row.error or "",
        )
        for result in results
        for row in (*result.rows, *result.failures)
    ]
    if not rows:
        return paragraph("There are no runs yet.")
    heads = [tag("button", each, type="button", class_="sort") for each in RUN_HEADINGS]
    made = html_table(heads, rows, caption="Every run", words=RUN_WORDS, class_="runs")
    field = tag("label", "Only runs with ", tag("input", type="search", class_="filter"))
    return folded(f"Every run ({len(rows):,})", tag("p", field, class_="finder"), made)
