"""`kryograph reproduce`: the runs of a result table, of the paper or of one's own."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import typer

from kryograph.cli import options
from kryograph.cli.console import Progress, note
from kryograph.cli.figures import FIGURES
from kryograph.experiments import table_titles
from kryograph.lazy import lazy_imports
from kryograph.text import duration, parse_duration, percent

with lazy_imports():
    from kryograph import data, runs
    from kryograph.experiments import resolve, result_tables, tuned

reproduce_app = typer.Typer(
    rich_markup_mode=None, help="Do the runs of a result table, or draw a figure of the paper."
)


def fill_known(
    context: typer.Context,
    systems: options.SystemNames = None,
    columns: options.ColumnNames = None,
    runs: options.Runs = 10,
    which: options.TableSettings = "best",
    budget: options.TimePerRun = "1m",
    jobs: options.Jobs = None,
    retry: options.Retry = False,
    store: options.StoreFile = options.STORE,
    data_dir: options.DataDir = None,
) -> None:
    """Do the missing runs of the result table that has the name of the command."""
    table = str(context.info_name)
    fill(table, systems, columns, runs, which, budget, jobs, retry, store, data_dir)


for _name, _title in table_titles().items():
    reproduce_app.command(
        _name,
        help=f"{_title}. After Ctrl-C the same command continues.",
        epilog=options.example(f"reproduce {_name} --columns 'Cora 1%' --runs 3"),
    )(fill_known)


@reproduce_app.command(epilog=options.example("reproduce own mine.toml --runs 5"))
def own(
    file: options.TableFile,
    runs: options.Runs = 10,
    which: options.TableSettings = "best",
    budget: options.TimePerRun = "1m",
    jobs: options.Jobs = None,
    retry: options.Retry = False,
    store: options.StoreFile = options.STORE,
    data_dir: options.DataDir = None,
) -> None:
    """A result table of your own, described by a TOML file."""
    fill(str(file), None, None, runs, which, budget, jobs, retry, store, data_dir)


for _name, _figure in FIGURES.items():
    reproduce_app.command(_name, epilog=options.example(f"reproduce {_name} --quick"))(_figure)


def fill(
    table: str,
    systems: list[str] | None,
    columns: list[str] | None,
    number_of_runs: int,
    which: str,
    budget: str,
    workers: int | None,
    retry: bool,
    store_file: Path,
    data_dir: Path | None,
) -> None:
    """Do the missing runs of a result table, a name or the path of a TOML file.

    None stands for all systems or columns, and for one worker per core.
    """
    cells = result_tables.find_table(table).part(
        options.split_commas(systems), options.split_commas(columns)
    )
    store, workers = runs.Store(store_file), workers or runs.cores()
    rows = store.rows()
    datasets = runs.Datasets(partial(data.load, data_dir=data_dir))
    seconds = parse_duration(budget)

    def too_long(job: runs.Job) -> bool:
        return runs.sweep.over_budget(job, datasets(job.scenario.dataset), seconds)

    known = tuned.read_tuned(tuned.tuned_file(store.path))
    jobs = runs.over_seeds(resolve.cell_jobs(cells, which, known, too_long), number_of_runs)
    missing = runs.sweep.missing(jobs, rows, retry=retry)
    present = len(jobs) - len(missing)
    note(f"{len(cells)} cells, {len(jobs):,} runs; {present:,} of them are in {store.path}.")
    if not missing:
        note("No run is missing: `kryograph results` shows the table.")
        return
    expected = duration(runs.sweep.seconds_left(missing, rows, workers))
    note(f"{len(missing):,} to do, {workers} at a time; expected time: {expected}.")
    waiting = dict.fromkeys(missing)
    with Progress(len(missing), unit="runs") as progress:
        finished = runs.sweep.sweep(
            missing,
            store,
            workers=workers,
            load=datasets,
            on_epoch=lambda job, epoch: progress.working(job, str(job)),
        )
        try:
            with closing(finished):
                for job, row in finished:
                    rows.append(row)
                    del waiting[job]
                    left = duration(runs.sweep.seconds_left(waiting, rows, workers))
                    line, failed = f"{job}: {_outcome(row)}", row.error is not None
                    progress.finished(job, line, f"about {left} left", failed=failed)
        finally:
            added = len(missing) - len(waiting)
            note(f"{added:,} runs were added to {store.path}: `kryograph results` shows the table.")


def _outcome(row: runs.Row) -> str:
    """Describe a stored run in a few words."""
    outcome = f"failed: {row.error}" if row.error else f"test {percent(row.test_accuracy)} %"
    return outcome if row.seconds is None else f"{outcome}, {row.seconds:.1f} s"
