"""Output of the commands: results on standard output, notes and progress on standard error.

Names from a person's tables may hold control characters; none of them reaches the terminal.

rich takes a tenth of a second to import. It is imported where a table or a bar is displayed.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kryograph.text import printable

if TYPE_CHECKING:
    from rich import progress as rich_progress

STAGE_DELAY_SECONDS = 2.0
"""Time without any output before a stage is mentioned where there is no terminal."""


def note(message: object) -> None:
    """Print a line on standard error.

    While a bar is displayed, `sys.stderr` belongs to rich, which prints the line above the bar.
    """
    print(printable(str(message)), file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """Print JSON that every program can read, also on a terminal that is not UTF-8."""
    print(json.dumps(value, indent=2))


def print_text(text: str, styles: Mapping[str, str] | None = None) -> None:
    """Print text; on a terminal, parts that match a regular expression have its style."""
    text = printable(text)
    if styles is None or not sys.stdout.isatty():
        print(text)
        return
    from rich import console
    from rich.text import Text

    styled = Text(text)
    for pattern, style in styles.items():
        styled.highlight_regex(pattern, style)
    console.Console(highlight=False).print(styled, soft_wrap=True)


def terminal_width() -> int | None:
    """Width of the terminal in characters; None if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_list(entries: Iterable[tuple[str, str]]) -> None:
    """Print a line for each name and what it is; on a terminal the names are bold."""
    lines = list(entries)
    width = max(len(name) for name, _ in lines)
    for name, summary in lines:
        print_text(f"{name.ljust(width)}  {summary}", {r"^\S+": "bold"})


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: bool = True,
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print a table of cells, each as it is, with styles as in `print_text`.

    With `numbers`, all columns but the first are aligned at the right, and the table is as wide as
    it needs to be, so that no number is cut.
    """
    from rich import box, console, table, text

    grid = table.Table(box=box.SIMPLE_HEAD)
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if numbers and i else "left", no_wrap=numbers)
    for row in rows:
        cells = [text.Text(printable(cell)) for cell in row]
        for cell in cells:
            for pattern, style in (styles or {}).items():
                cell.highlight_regex(pattern, style)
        grid.add_row(*cells)
    screen = console.Console(highlight=False)
    if numbers:
        options = screen.options.update(max_width=1000)
        screen.width = max(screen.width, grid.__rich_measure__(screen, options).maximum)
    screen.print(grid)


class Progress:
    """Progress on standard error: a bar on a terminal, elsewhere a line for each finished item.

    The `unit` is the name of the items, such as "runs"; without it they are not counted on the bar.
    """

    def __init__(self, total: int = 1, completed: int = 0, unit: str = "") -> None:
        self.total, self.completed, self.unit = total, completed, unit
        self._bar: rich_progress.Progress | None = None
        self._item: object = None  # what the bar describes, among items that are done at once
        self._start = time.monotonic()
        self._stages: set[str] = set()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich import console, progress

            self._bar = progress.Progress(
                progress.BarColumn(),
                progress.TextColumn("{task.fields[counter]}"),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[detail]}", markup=False),
                progress.TextColumn("{task.description}", markup=False),
                console=console.Console(stderr=True, highlight=False),
                transient=True,
            )
            self._bar.add_task("", total=self.total, detail="", **self._count())
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def working(self, item: object, text: str) -> None:
        """Describe what is being done; of several items at once, only the one that began first."""
        if self._bar is not None and self._item in (None, item):
            self._item = item
            self._bar.update(self._bar.task_ids[0], description=text)

    def finished(
        self,
        item: object,
        line: str,
        detail: str = "",
        *,
        failed: bool = False,
        completed: int | None = None,
    ) -> None:
        """Count an item that is finished.

        Args:
            item: The item, as in `working`.
            line: Outcome of the item; on a terminal it is printed only if the item failed.
            detail: State of the whole, such as the time that is left.
            failed: Whether the item failed.
            completed: Number of finished items, if other processes may have finished some, too.
        """
        self.completed = self.completed + 1 if completed is None else completed
        if item == self._item:
            self._item = None
        if self._bar is None:
            note(f"{self.completed}/{self.total} {line}" + (f"; {detail}" if detail else ""))
            return
        if failed:
            note(line)
        self._bar.update(self._bar.task_ids[0], detail=detail, **self._count())

    def stage(self, name: str, share: float) -> None:
        """Describe work that is not counted in items; `share`, from 0 to 1, is done.

        Where there is no terminal, a stage is mentioned once, and only after two seconds.
        """
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=name, completed=share * self.total)
        elif name not in self._stages and time.monotonic() - self._start > STAGE_DELAY_SECONDS:
            self._stages.add(name)
            note(f"{name} …")

    def _count(self) -> dict[str, Any]:
        counter = f"{self.completed}/{self.total} {self.unit}" if self.unit else ""
        return {"completed": self.completed, "counter": counter}


@contextmanager
def stages() -> Iterator[Callable[[str, float], None]]:
    """Display work in stages: call it with the name of a stage and the share that is done."""
    with Progress() as progress:
        yield progress.stage
