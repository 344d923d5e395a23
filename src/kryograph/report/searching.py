"""Progress of a search: how many of its trials are over, the best so far, the time that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kryograph.durations import duration
from kryograph.report.terminal import err, note, percent


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
