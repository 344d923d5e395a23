"""Progress of a sweep: how many of its runs are done, and about how long the rest will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kryograph.durations import duration
from kryograph.report.terminal import err, note, percent
from kryograph.store import Row


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
