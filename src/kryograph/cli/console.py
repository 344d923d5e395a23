"""Results and lists on standard output, progress on standard error.

Progress of a sweep: how many of its runs are done, and about how long the rest will take.

Progress of a search: how many of its trials are over, the best so far, the time that is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from kryograph.runs.perform import Run
from kryograph.runs.runner import Result
from kryograph.runs.store import Row
from kryograph.text import duration, percent
from kryograph.training.loop import Epoch

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

PROGRESS_DELAY_SECONDS = 2.0
"""For how many seconds a person waits without being told anything."""


def note(message: object) -> None:
    """A line on standard error, as it is: not wrapped, and no part of it taken for markup."""
    err.print(str(message), soft_wrap=True, markup=False)


def show_result(result: Result) -> None:
    """A row per run, then the mean with its interval, beside the paper's number."""
    chosen = ", ".join(f"{name} {value}" for name, value in result.settings.items())
    out.print(
        f"[bold]{result.system}[/] on [bold]{result.dataset}[/], split {result.split}, "
        f"{result.protocol} protocol, stop rule {result.stop}, operator {result.operator}",
        soft_wrap=True,
    )
    out.print(f"[dim]settings ({result.settings_source}): {chosen}[/]", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("seed", "epochs", "seconds", "validation %", "test %"):
        table.add_column(heading, justify="right")
    for run in result.runs:
        table.add_row(
            str(run.seed),
            str(run.epochs),
            f"{run.seconds:.1f}",
            percent(run.validation_accuracy),
            percent(run.test_accuracy),
        )
    out.print(table)
    summary = result.test_accuracy
    low, high = summary.ci95
    interval = f"95 % interval {percent(low)} to {percent(high)}, " if low is not None else ""
    paper = f"   paper: {percent(result.paper)}" if result.paper is not None else ""
    runs = f"{summary.n} run{'s' * (summary.n > 1)}"
    out.print(f"test accuracy [bold]{percent(summary.mean)}[/]  ({interval}{runs}){paper}")


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table whose first column is words and whose others are numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    # As wide as it is, also where a file or a pipe seems narrow: no number is cut.
    needed = table.__rich_measure__(out, out.options.update(max_width=1000)).maximum
    Console(width=max(needed, out.width), highlight=False).print(table)


def show_list(entries: Iterable[tuple[str, str]]) -> None:
    """Names and what they are."""
    entries = list(entries)
    width = max(len(name) for name, _ in entries)
    for name, summary in entries:
        out.print(f"[bold]{name.ljust(width)}[/]  {summary}", soft_wrap=True)


@dataclass(frozen=True)
class Tracker:
    """Hears of epochs and finished runs."""

    epoch: Callable[[int, Epoch], None]
    run: Callable[[Run], None]


@contextmanager
def progress(runs: int) -> Iterator[Tracker]:
    """A bar on a terminal; a line per run where standard error is a file or a pipe."""
    if not err.is_terminal:
        yield Tracker(epoch=lambda seed, epoch: None, run=lambda run: note(_line(run)))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("starting", total=runs)
        shown: int | None = None  # of several runs at once, the first

        def epoch(seed: int, epoch: Epoch) -> None:
            nonlocal shown
            if shown is None or seed <= shown:
                shown = seed
                bar.update(task, description=_now(seed, epoch))

        def run(run: Run) -> None:
            nonlocal shown
            if run.seed == shown:
                shown = None
            bar.advance(task)

        yield Tracker(epoch, run)


def _now(seed: int, epoch: Epoch) -> str:
    score = epoch.validation_accuracy
    which, value = (
        ("validation", score) if score is not None else ("training", epoch.training_accuracy)
    )
    return f"seed {seed}: epoch {epoch.number:4d}, {which} {percent(value)} %"


def _line(run: Run) -> str:
    score = run.validation_accuracy
    validation = "" if score is None else f", validation {percent(score)} %"
    return f"seed {run.seed}: {run.epochs} epochs in {run.seconds:.1f} s{validation}"


def show_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table of texts, as they are."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


@contextmanager
def stages() -> Iterator[Callable[[str, float], None]]:
    """Work in stages: call it with a stage and its share done.

    A bar on a terminal; where standard error is a file or a pipe, a line for each new stage once
    two seconds are over.
    """
    if not err.is_terminal:
        begun, told = time.monotonic(), {""}

        def tell(stage: str, share: float) -> None:
            if stage not in told and time.monotonic() - begun > PROGRESS_DELAY_SECONDS:
                told.add(stage)
                note(f"{stage} …")

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)


@dataclass(frozen=True)
class Sweeping:
    """Hears what is being run, and of each run that is over with the time that is left."""

    now: Callable[[str], None]
    done: Callable[[str, Row, float | None], None]


@contextmanager
def sweeping(total: int) -> Iterator[Sweeping]:
    """A bar on a terminal; a line per run where standard error is a file or a pipe."""
    finished = 0

    def line(what: str, row: Row, left: float | None) -> None:
        nonlocal finished
        finished += 1
        said = f"failed: {row.error}" if row.error else f"test {percent(row.test_accuracy)} %"
        seconds = "" if row.seconds is None else f", {row.seconds:.1f} s"
        note(f"{finished}/{total} {what}: {said}{seconds}; about {duration(left)} left")

    if not err.is_terminal:
        yield Sweeping(now=lambda what: None, done=line)
        return
    columns = (
        BarColumn(),
        TextColumn("{task.completed}/{task.total} runs"),
        TimeElapsedColumn(),
        TextColumn("about {task.fields[left]} left"),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("starting", total=total, left="unknown")

        def done(what: str, row: Row, left: float | None) -> None:
            bar.update(task, advance=1, left=duration(left))
            if row.error:
                bar.console.print(f"{what}: failed: {row.error}", markup=False, soft_wrap=True)

        yield Sweeping(now=lambda what: bar.update(task, description=what), done=done)


@dataclass(frozen=True)
class State:
    """How far a search is."""

    finished: int
    best: float | None
    """Accuracy on validation nodes, a fraction."""
    left: float | None
    """About how many seconds."""


@dataclass(frozen=True)
class Searching:
    """Hears what is being run, and of each trial that is over what came of it."""

    now: Callable[[str], None]
    done: Callable[[str, State], None]


@contextmanager
def searching(total: int, start: int) -> Iterator[Searching]:
    """A bar on a terminal; a line per trial where standard error is a file or a pipe.

    Args:
        total: How many trials there are to be.
        start: How many there are already.
    """
    if not err.is_terminal:

        def line(what: str, state: State) -> None:
            best = f"best {percent(state.best)} %, " if state.best is not None else ""
            left = f"about {duration(state.left)} left"
            note(f"trial {state.finished}/{total}: {what}; {best}{left}")

        yield Searching(now=lambda what: None, done=line)
        return
    columns = (
        BarColumn(),
        TextColumn("trial {task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("best {task.fields[best]} %, about {task.fields[left]} left"),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("starting", total=total, completed=start, best="–", left="unknown")

        def done(what: str, state: State) -> None:
            bar.update(
                task,
                completed=state.finished,
                best=percent(state.best),
                left=duration(state.left),
            )
            if "failed" in what:
                bar.console.print(what, markup=False, soft_wrap=True)

        yield Searching(now=lambda what: bar.update(task, description=what), done=done)
