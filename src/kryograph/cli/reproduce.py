"""`kryograph reproduce table1 | table2 | leak | own`: what a person types to fill a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kryograph.cli.console import note, sweeping
from kryograph.errors import UsageError
from kryograph.experiments.resolve import settings_to_run
from kryograph.experiments.result_tables import Cell, read_result_table, result_table
from kryograph.experiments.tuned import read_tuned, tuned_file
from kryograph.runs.job import Scenario
from kryograph.runs.store import Store
from kryograph.runs.sweep import breadth_first, missing, over_budget, seconds_left, sweep
from kryograph.runs.workers import cores
from kryograph.systems import System
from kryograph.text import duration, parse_duration

STORE = Path("results") / "runs.sqlite"

StoreFile = Annotated[
    Path,
    typer.Option("--store", envvar="KRYOGRAPH_STORE", help="The file with all finished runs."),
]
Systems = Annotated[
    list[str] | None, typer.Option("--systems", help="Only these: 'gcn,gat', or several times.")
]
ColumnsOption = Annotated[
    list[str] | None, typer.Option("--columns", help="Only these, such as 'Cora 1%,PubMed 0.1%'.")
]
Runs = Annotated[int, typer.Option(help="How many runs of each cell; their seeds are 0, 1, …")]
Which = Annotated[
    str,
    typer.Option(
        "--settings",
        help="'best': found by searches on validation labels, else 'default'; where a run sees "
        "validation labels, all of these and the paper's, and they choose; 'tuned': only those "
        "found for the column; 'paper': the published ones.",
    ),
]
Budget = Annotated[
    str,
    typer.Option(help="Published settings that would take longer per run are left out."),
]
Jobs = Annotated[int | None, typer.Option(help="How many runs at once. Default: one per core.")]
Retry = Annotated[bool, typer.Option("--retry", help="Repeat the runs that failed.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="A folder with ind.* files (or set KRYOGRAPH_DATA)."),
]


@dataclass(frozen=True)
class SweepOptions:
    """How a person wants cells to be filled."""

    runs: int
    which: str
    budget: str
    jobs: int | None
    retry: bool
    data_dir: Path | None


def reproducer(name: str) -> Callable[..., None]:
    """The command that fills one of the tables that come with kryograph."""

    def reproduce(
        systems: Systems = None,
        columns: ColumnsOption = None,
        runs: Runs = 10,
        which: Which = "best",
        budget: Budget = "1m",
        jobs: Jobs = None,
        retry: Retry = False,
        store: StoreFile = STORE,
        data_dir: DataDir = None,
    ) -> None:
        cells = result_table(name).part(split_commas(systems), split_commas(columns))
        fill(cells, Store(store), SweepOptions(runs, which, budget, jobs, retry, data_dir))

    summary = f"{result_table(name).title}. Stop it whenever you like: it goes on where it was."
    reproduce.__doc__ = summary
    return reproduce


def own(
    file: Annotated[Path, typer.Argument(help="TOML with title, source, protocol, columns, …")],
    runs: Runs = 10,
    which: Which = "best",
    budget: Budget = "1m",
    jobs: Jobs = None,
    retry: Retry = False,
    store: StoreFile = STORE,
    data_dir: DataDir = None,
) -> None:
    """A table of your own, in a file like those of the paper's tables."""
    fill(
        read_result_table(file).cells,
        Store(store),
        SweepOptions(runs, which, budget, jobs, retry, data_dir),
    )


def split_commas(texts: Sequence[str] | None) -> list[str]:
    """What a person wrote with commas, or as several options.

    >>> split_commas(["gcn, gat", "lp"])
    ['gcn', 'gat', 'lp']
    """
    parts = (part.strip() for text in texts or () for part in text.split(","))
    return [part for part in parts if part]


def fill(cells: Sequence[Cell], store: Store, order: SweepOptions) -> None:
    """Do the runs that are missing, and say how it goes."""
    if order.jobs is not None and order.jobs < 1:
        raise UsageError(f"--jobs must be at least 1; it is {order.jobs}.")
    workers = order.jobs or cores()
    rows = store.rows()
    wanted = breadth_first(_methods(cells, store, order), order.runs)
    left = missing(wanted, rows, retry=order.retry)
    there = len(wanted) - len(left)
    note(f"{len(cells)} cells, {len(wanted):,} runs; {there:,} of them are in {store.path}.")
    if not left:
        note("Nothing is missing: `kryograph results` shows the table.")
        return
    expected = duration(seconds_left(left, rows, workers))
    note(f"{len(left):,} to do, {workers} at a time; expected time: {expected}.")
    waiting = dict.fromkeys(left)
    with sweeping(len(left)) as tell:
        going = sweep(
            left,
            store,
            workers=workers,
            data_dir=order.data_dir,
            on_epoch=lambda job, epoch: tell.now(str(job)),
        )
        try:
            with closing(going):
                for job, row in going:
                    rows.append(row)
                    del waiting[job]
                    tell.done(str(job), row, seconds_left(waiting, rows, workers))
        finally:
            done = len(left) - len(waiting)
            note(f"{done:,} runs were added to {store.path}: `kryograph results` shows the table.")


def _methods(
    cells: Sequence[Cell], store: Store, order: SweepOptions
) -> list[tuple[System, str, Scenario]]:
    """The system of each cell with all settings that it is run with, and where these are from."""
    tuned, budget = read_tuned(tuned_file(store.path)), parse_duration(order.budget)
    methods = []
    for cell in cells:

        def too_long(method: System, column: Scenario = cell.column) -> bool:
            return over_budget(method, column, budget, order.data_dir)

        for found in settings_to_run(cell.system, cell.column, order.which, tuned, too_long):
            methods.append((*found, cell.column))
    if not methods:
        raise UsageError("None of these cells has tuned settings: use --settings best.")
    return methods
