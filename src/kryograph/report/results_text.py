"""A table's results as text: for a terminal, as Markdown, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.markup import escape

from kryograph.cli import console as terminal
from kryograph.cli.console import show_table
from kryograph.experiments.cells import CellResult
from kryograph.experiments.result_tables import ResultTable
from kryograph.experiments.standings import FAR_BELOW_PAPER, RUNS, TRIALS, Standing
from kryograph.stats import student_half_width
from kryograph.text import percent

MARKS = {"above": "▲", "reproduced": "=", "below": "▼", "one run": "·", "failed": "✗"}
"""The signs of verdicts; the others need none."""

LEGEND = (
    "Each cell: mean ± half of the 95 % interval (runs), then the paper's value and ours less the "
    "paper's. ▲ the interval is above the paper's value, = it holds it, ▼ it is below; · one run "
    "has no interval; ✗ failed runs; – not run."
)

_STYLES = {"above": "green", "below": "red", "failed": "red"}
_COLUMNS = (
    *("table", "system", "column", "dataset", "label_rate", "split", "protocol", "n", "mean"),
    *("ci95_low", "ci95_high", "paper", "difference", "verdict", "settings_source", "failures"),
)


@dataclass(frozen=True)
class TableView:
    """What is shown of a table: some of its cells, and how the paper's proposals stand in it."""

    table: ResultTable
    results: tuple[CellResult, ...]
    standings: tuple[Standing, ...]

    @property
    def systems(self) -> tuple[str, ...]:
        """The rows."""
        return tuple(dict.fromkeys(result.cell.system for result in self.results))

    @property
    def blocks(self) -> list[tuple[str, ...]]:
        """The columns, those of a data set together: side by side all would be too wide."""
        found: dict[str, dict[str, None]] = {}
        for result in self.results:
            found.setdefault(result.cell.column.dataset, {})[result.cell.heading] = None
        return [tuple(block) for block in found.values()]

    def result(self, system: str, heading: str) -> CellResult:
        """One of the cells."""
        [found] = [r for r in self.results if (r.cell.system, r.cell.heading) == (system, heading)]
        return found

    @property
    def runs(self) -> int:
        """How many there are, failed ones included."""
        return sum(len(result.rows) + len(result.failures) for result in self.results)


def signed(difference: float | None, digits: int = 1) -> str:
    """Points with their sign; a dash for none.

    >>> signed(0.0123), signed(-0.04), signed(-0.0001), signed(None), signed(-0.0001, 2)
    ('+1.2', '−4.0', '0.0', '–', '−0.01')
    """
    if difference is None:
        return "–"
    points = f"{100 * difference:+.{digits}f}"
    return points.replace("-", "−") if float(points) else points[1:]


def format_mean(result: CellResult) -> str:
    """What came out: "73.9 ± 0.8 (10)"."""
    summary = result.summary
    failed = f" ✗{len(result.failures)}" if result.failures else ""
    if summary is None:
        return f"failed{failed}" if failed else "–"
    half = (
        "" if summary.std is None else f" ± {percent(student_half_width(summary.std, summary.n))}"
    )
    return f"{percent(summary.mean)}{half} ({summary.n}){failed}"


def beside_paper(result: CellResult) -> str:
    """What the paper prints, and how far we are from it: "77.4 −3.5 ▼"."""
    if result.cell.paper is None:
        return ""
    if result.difference is None:
        return percent(result.cell.paper)
    mark = MARKS.get(result.verdict, "")
    return f"{percent(result.cell.paper)} {signed(result.difference)} {mark}".rstrip()


def about(standing: Standing) -> str:
    """How a proposal stands, in sentences without its name."""
    said = []
    if standing.mean_difference is not None:
        cells = len(standing.differences)
        many = f"on average over {cells} cells" if cells > 1 else "in one cell"
        half, seeds = standing.half_width, len(standing.by_seed)
        within = "" if half is None else f" ± {100 * half:.1f}"
        over = "" if half is None else f" (95 % interval over {seeds} seeds)"
        mean = signed(standing.mean_difference)
        said.append(f"Ours less the paper's is {mean}{within} {many}{over}.")
    if standing.mean_alone is not None:
        said.append(f"By one setting for each column it is {signed(standing.mean_alone)}.")
    if standing.mean_luck is not None:
        said.append(
            f"Had the paper printed the best of {TRIALS} settings as good as ours, each on {RUNS} "
            f"draws of its own, luck alone would be worth {signed(standing.mean_luck)}."
        )
    if standing.mean_searched is not None:
        where_chosen, here = standing.mean_searched
        many = _columns(len(standing.searched))
        said.append(
            f"In the {many} that its settings were searched for in, it is {signed(where_chosen)} "
            f"on the splits that chose them, and {signed(here)} on those of the table."
        )
    if standing.leads:
        won, clear = len(standing.wins), len(standing.clear_wins)
        beyond = f" ({clear} of them beyond chance)" if won else ""
        subject = "By one setting, as they have, it" if standing.alone else "It"
        said.append(
            f"{subject} beats every baseline in {won} of {_columns(len(standing.leads))}{beyond}; "
            f"on average it is {_place(standing.mean_margin or 0.0)} the best of them."
        )
    if standing.incomplete:
        said.append(
            f"In {standing.incomplete} of these columns not every baseline has been run yet."
        )
    if standing.far_below:
        cells_below = ", ".join(f"{heading} ({signed(d)})" for heading, d in standing.far_below)
        said.append(f"Further below the paper than {signed(FAR_BELOW_PAPER)}: {cells_below}.")
    elif standing.differences:
        said.append(f"No cell is further below the paper than {signed(FAR_BELOW_PAPER)}.")
    return " ".join(said)


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count > 1)}"


def _place(margin: float) -> str:
    points = percent(abs(margin))
    if points == "0.0":
        return "level with"
    return f"{points} points {'ahead of' if margin > 0 else 'behind'}"


def failures(results: Sequence[CellResult]) -> Iterator[tuple[str, str, str]]:
    """Cells in which runs failed: which, their seeds, and each message once."""
    for result in results:
        messages: dict[str, dict[int, None]] = {}
        for row in result.failures:
            messages.setdefault(row.error or "", {})[row.seed] = None
        for message, seeds in messages.items():
            yield str(result.cell), ", ".join(map(str, seeds)), message


def sources(results: Sequence[CellResult]) -> str:
    """Where the settings come from, in how many cells."""
    counts: dict[str, int] = {}
    for result in results:
        if result.settings_source is not None:
            counts[result.settings_source] = counts.get(result.settings_source, 0) + 1
    return "; ".join(f"{source} ({count})" for source, count in sorted(counts.items())) or "none"


def show_results(shown: TableView) -> None:
    """On the terminal: a block for each data set, then what it comes to."""

    def say(*words: str) -> None:
        terminal.out.print(*words, soft_wrap=True, markup=False)

    terminal.out.print(
        f"[bold]{escape(shown.table.name)}[/]: {escape(shown.table.title)}", soft_wrap=True
    )
    for block in shown.blocks:
        results = [[shown.result(system, each) for each in block] for system in shown.systems]
        pairs = [[(format_mean(r), beside_paper(r), r.verdict) for r in row] for row in results]
        between = "\n" if _narrow(pairs, shown.systems) else "  "
        rows = (
            [system, *(_cell(*pair, between) for pair in row)]
            for system, row in zip(shown.systems, pairs, strict=True)
        )
        show_table(["", *map(escape, block)], rows)
    for standing in shown.standings:
        say(f"{standing.system}: {about(standing)}")
    for cell, seeds, message in failures(shown.results):
        say(f"✗ {cell}, seed {seeds}: {message}")
    say(f"Settings (cells): {sources(shown.results)}.")
    say("")


def _narrow(rows: Sequence[Sequence[tuple[str, str, str]]], names: Sequence[str]) -> bool:
    """Whether cells in one line each would be too wide; a file or a pipe is as wide as need be."""
    if not terminal.out.is_terminal:
        return False
    widths = (max(len(a) + len(b) + 4 for a, b, _ in column) for column in zip(*rows, strict=True))
    return max(map(len, names)) + 4 + sum(widths) > terminal.out.width


def _cell(mean: str, paper: str, verdict: str, between: str) -> str:
    style = _STYLES.get(verdict, "dim")
    mean = f"[{style}]{mean}[/]" if verdict in ("failed", "not run") else mean
    return mean if not paper else f"{mean}{between}[{style}]{paper.rjust(12)}[/]"


def markdown(shown: TableView) -> str:
    """For documents: a table for each data set, then what it comes to."""
    lines = [f"## {shown.table.title}", "", f"`{shown.table.name}`, {shown.table.source}.", ""]
    for block in shown.blocks:
        lines += [_md_row(["system", *block]), "|---|" + "---:|" * len(block)]
        for system in shown.systems:
            cells = [shown.result(system, heading) for heading in block]
            words = (" / ".join(filter(None, (format_mean(r), beside_paper(r)))) for r in cells)
            lines.append(_md_row([f"`{system}`", *words]))
        lines.append("")
    lines += [f"- `{each.system}`: {about(each)}" for each in shown.standings]
    for cell, seeds, message in failures(shown.results):
        # A message is code, where nothing is markup but what ends the code.
        code = message.replace("`", "'")
        lines.append(f"- ✗ {cell}, seed {seeds}: `{code}`")
    lines += [f"- Settings (cells): {sources(shown.results)}.", "", LEGEND, ""]
    return "\n".join(lines)


def _md_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def csv_text(results: Sequence[CellResult]) -> str:
    """A line for each cell; accuracies are fractions."""
    made = io.StringIO()
    writer = csv.DictWriter(made, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in results:
        values = result.as_dict()
        low, high = values.pop("ci95")
        said = " | ".join(values.pop("failures"))
        more = {"column": result.cell.heading, "ci95_low": low, "ci95_high": high}
        writer.writerow({**values, **more, "failures": said})
    return made.getvalue()
