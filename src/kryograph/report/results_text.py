"""Result tables as plain text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kryograph.errors import UsageError
from kryograph.experiments.cells import CellResult
from kryograph.experiments.result_tables import Cell, ResultTable
from kryograph.experiments.standings import (
    FAR_BELOW_PAPER,
    RUNS,
    TRIALS,
    Standing,
    standings,
    together,
)
from kryograph.stats import Summary, student_half_width
from kryograph.text import percent, plural

MARKS = {"above": "▲", "reproduced": "=", "below": "▼", "one run": "·", "failed": "✗"}
"""Sign of each verdict; verdicts that are not listed have no sign."""

LEGEND = (
    "Each cell: mean ± half of the 95 % interval (number of runs), then the paper's value and the "
    "difference from it. ▲ the interval is above the paper's value, = it contains it, ▼ it is "
    "below; · one run, so no interval; ✗ failed runs; – not run."
)

MARK_STYLES = {
    r"\d+\.\d [+−]?\d+\.\d ▲": "green",
    r"\d+\.\d [+−]?\d+\.\d ▼": "red",
    r"(failed )?✗\d*": "red",
    r"\d+\.\d [+−]?\d+\.\d [=·]": "dim",
}
"""Terminal style of each part of a plain-text cell, by regular expression."""

CSV_COLUMNS = (
    *("table", "system", "column", "dataset", "label_rate", "split", "protocol", "n", "mean"),
    *("ci95_low", "ci95_high", "paper", "difference", "verdict", "settings_source", "failures"),
)


@dataclass(frozen=True)
class TableView:
    """The part of a result table that is displayed."""

    table: ResultTable  # the whole result table
    results: tuple[CellResult, ...]  # its displayed cells with their runs
    standings: tuple[Standing, ...]  # proposals compared with the paper and with the baselines
    metric: str = "accuracy"  # metric of all numbers, as in `stats.METRICS`

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, one for each row."""
        return tuple(dict.fromkeys(result.cell.system for result in self.results))

    @property
    def blocks(self) -> list[tuple[str, ...]]:
        """Headings of the columns, grouped by data set: in one block they would be too wide."""
        headings: dict[str, dict[str, None]] = {}
        for result in self.results:
            headings.setdefault(result.cell.scenario.dataset, {})[result.cell.heading] = None
        return [tuple(block) for block in headings.values()]

    def result(self, system: str, heading: str) -> CellResult:
        """Return the cell of `system` in the column with this heading."""
        [cell] = [r for r in self.results if (r.cell.system, r.cell.heading) == (system, heading)]
        return cell

    @property
    def runs(self) -> int:
        """Number of runs, including failed ones."""
        return sum(len(result.rows) + len(result.failures) for result in self.results)


def table_views(
    tables: Sequence[ResultTable],
    systems: Sequence[str],
    headings: Sequence[str],
    gather: Callable[[Sequence[Cell]], list[CellResult]],
    *,
    skip_tables: bool,
) -> list[TableView]:
    """Select some systems and columns of each table; empty sequences select all.

    `gather` finds the runs of cells. A table without such a system or column is a `UsageError`;
    with `skip_tables` it is skipped, and only if all are skipped it is an error.
    """
    views: list[TableView] = []
    problem: UsageError | None = None
    for table in tables:
        try:
            selected = set(table.part(systems, headings))
        except UsageError as error:
            if not skip_tables:
                raise
            problem = problem or error
            continue
        # The standing of a proposal depends on all systems, also on those that are not selected.
        results = gather(table.part((), headings))
        part = tuple(result for result in results if result.cell in selected)
        proposals = {result.cell.system for result in part}
        standing = [s for s in standings(results) if s.system in proposals]
        views.append(TableView(table, part, (*standing, *together(part))))
    if not views and problem is not None:
        raise problem
    return views


def signed(difference: float | None, digits: int = 1) -> str:
    """Format a difference of fractions in points with its sign; None is a dash.

    >>> signed(0.0123), signed(-0.04), signed(-0.0001), signed(None), signed(-0.0001, 2)
    ('+1.2', '−4.0', '0.0', '–', '−0.01')
    """
    if difference is None:
        return "–"
    points = f"{100 * difference:+.{digits}f}"
    return points.replace("-", "−") if float(points) else points[1:]


def format_mean(result: CellResult) -> str:
    """Mean, half of the 95 % interval and number of runs, such as '73.9 ± 0.8 (10)'."""
    summary = result.summary
    failed = f" ✗{len(result.failures)}" if result.failures else ""
    if summary is None:
        return f"failed{failed}" if failed else "–"
    half = half_width(summary)
    within = "" if half is None else f" ± {percent(half)}"
    return f"{percent(summary.mean)}{within} ({summary.n}){failed}"


def half_width(summary: Summary) -> float | None:
    """Half of the 95 % interval before it is cut off at 0 and 1; None for a single run."""
    return None if summary.std is None else student_half_width(summary.std, summary.n)


def format_paper(result: CellResult) -> str:
    """The paper's value and our difference from it, such as '77.4 −3.5 ▼'; '' without a value."""
    if result.cell.paper is None:
        return ""
    if result.difference is None:
        return percent(result.cell.paper)
    mark = MARKS.get(result.verdict, "")
    return f"{percent(result.cell.paper)} {signed(result.difference)} {mark}".rstrip()


def describe_standing(standing: Standing) -> str:
    """Sentences about one proposal: its differences from the paper and from the baselines."""
    sentences = []
    if standing.mean_difference is not None:
        cells = plural(len(standing.differences), "cell")
        half, seeds = standing.half_width, len(standing.by_seed)
        within = "" if half is None else f" ± {percent(half)}"
        over = "" if half is None else f" (95 % interval over {seeds} seeds)"
        mean = signed(standing.mean_difference)
        sentences.append(f"Mean difference from the paper: {mean}{within} over {cells}{over}.")
    if standing.mean_alone is not None:
        sentences.append(f"With one setting per column: {signed(standing.mean_alone)}.")
    if standing.mean_luck is not None:
        sentences.append(
            f"If the paper reported the best of {TRIALS} equally good settings, each the mean of "
            f"{RUNS} runs, that choice alone would add {signed(standing.mean_luck)}."
        )
    if standing.mean_searched is not None:
        on_search_splits, on_table_splits = standing.mean_searched
        sentences.append(
            f"In the {plural(len(standing.searched), 'column')} whose settings were searched: "
            f"{signed(on_search_splits)} on the splits of the search, {signed(on_table_splits)} on "
            "the splits of the table."
        )
    if standing.leads:
        won, clear = len(standing.wins), len(standing.clear_wins)
        significant = f" (significantly in {clear} of them)" if won else ""
        subject = "With one setting, as the baselines have, it" if standing.alone else "It"
        sentences.append(
            f"{subject} beats every baseline in {won} of {plural(len(standing.leads), 'column')}"
            f"{significant}; on average it is {_distance(standing.mean_margin or 0.0)} the best "
            "baseline."
        )
    if standing.incomplete:
        sentences.append(
            f"In {standing.incomplete} of these columns some baselines have not been run."
        )
    limit = f"more than {percent(-FAR_BELOW_PAPER)} points below the paper"
    if standing.far_below:
        cells = ", ".join(f"{heading} ({signed(d)})" for heading, d in standing.far_below)
        sentences.append(f"{limit.capitalize()}: {cells}.")
    elif standing.differences:
        sentences.append(f"No cell is {limit}.")
    return " ".join(sentences)


def _distance(margin: float) -> str:
    points = percent(abs(margin))
    if points == "0.0":
        return "level with"
    return f"{points} points {'ahead of' if margin > 0 else 'behind'}"


def failures(results: Sequence[CellResult]) -> Iterator[tuple[str, str, str]]:
    """Failed runs: name of the cell, seeds and message, once for each message of a cell."""
    for result in results:
        seeds_by_message: dict[str, dict[int, None]] = {}
        for row in result.failures:
            seeds_by_message.setdefault(row.error or "", {})[row.seed] = None
        for message, seeds in seeds_by_message.items():
            yield str(result.cell), ", ".join(map(str, seeds)), message


def remarks(view: TableView) -> Iterator[tuple[str, str]]:
    """Sentences below a table, each with its subject: the proposals, and the settings.

    The latter are the settings sources and the number of cells of each: 'default (4); tuned (2).'
    """
    yield from ((standing.system, describe_standing(standing)) for standing in view.standings)
    counts = Counter(r.settings_source for r in view.results if r.settings_source is not None)
    sources = "; ".join(f"{source} ({count})" for source, count in sorted(counts.items()))
    yield "Settings (cells)", f"{sources or 'none'}."


def text_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns: the first to the left, the others to the right.

    >>> text_table(["", "n"], [["a", "10"], ["b", "5"]])
    ['    n', '─────', 'a  10', 'b   5']
    """
    lines = [tuple(headings), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return [text[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *text[1:]]


def render_text(views: Sequence[TableView], width: int | None = None) -> str:
    """Tables for a terminal: one block for each data set, then sentences about the proposals.

    Where one line for each cell would be wider than the terminal, which has `width` columns, the
    paper's value goes below the mean. None: there is no limit.
    """
    return "\n".join(line for view in views for line in _text_lines(view, width))


def _text_lines(view: TableView, width: int | None) -> Iterator[str]:
    yield from (f"{view.table.name}: {view.table.title} ({view.metric}, %)", "")
    for block in view.blocks:
        lines = _text_block(view, block)
        if width is not None and max(map(len, lines)) > width:
            lines = _text_block(view, block, two_lines=True)
        yield from (*lines, "")
    yield from (f"{subject}: {sentences}" for subject, sentences in remarks(view))
    yield from (f"✗ {cell}, seed {seeds}: {error}" for cell, seeds, error in failures(view.results))
    yield ""


def _text_block(view: TableView, block: Sequence[str], two_lines: bool = False) -> list[str]:
    rows = []
    for system in view.systems:
        cells = [view.result(system, heading) for heading in block]
        means, papers = [format_mean(r) for r in cells], [format_paper(r) for r in cells]
        if two_lines:
            rows += [[system, *means], ["", *papers]]
        else:
            pairs = zip(means, papers, strict=True)
            rows.append([system, *(f"{mean}  {paper:>12}" for mean, paper in pairs)])
    return text_table(["", *block], rows)


def render_markdown(views: Sequence[TableView]) -> str:
    """Markdown for documents: one table for each data set, then a list of sentences."""
    return "\n".join(line for view in views for line in _markdown_lines(view))


def _markdown_lines(view: TableView) -> Iterator[str]:
    yield from (f"## {view.table.title}", "", f"`{view.table.name}`, {view.table.source}.", "")
    for block in view.blocks:
        yield _markdown_row(["system", *block])
        yield "|---|" + "---:|" * len(block)
        for system in view.systems:
            cells = [view.result(system, heading) for heading in block]
            words = (" / ".join(filter(None, (format_mean(r), format_paper(r)))) for r in cells)
            yield _markdown_row([f"`{system}`", *words])
        yield ""
    yield from (f"- {subject}: {sentences}" for subject, sentences in remarks(view))
    for cell, seeds, message in failures(view.results):
        # A message is set as code, in which only a backtick has a meaning.
        code = message.replace("`", "'")
        yield f"- ✗ {cell}, seed {seeds}: `{code}`"
    yield from ("", LEGEND, "")


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def render_csv(views: Sequence[TableView]) -> str:
    """CSV with one line for each cell; scores are fractions."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in (result for view in views for result in view.results):
        values = result.as_dict()
        low, high = values.pop("ci95")
        messages = " | ".join(values.pop("failures"))
        more = {"column": result.cell.heading, "ci95_low": low, "ci95_high": high}
        writer.writerow({**values, **more, "failures": messages})
    return text.getvalue()


def render_json(views: Sequence[TableView]) -> str:
    """JSON list with one object for each cell; scores are fractions."""
    cells = [result.as_dict() for view in views for result in view.results]
    return json.dumps(cells, indent=2, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[TableView]], str]] = {
    "markdown": render_markdown,
    "csv": render_csv,
    "json": render_json,
}
"""Forms for documents and programs by name, each with its function; texts end with a line break."""
