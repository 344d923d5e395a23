"""`kryograph results` and `kryograph compare`: result tables and comparisons of stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import kryograph
from kryograph.cli import options
from kryograph.cli.console import note, print_json, print_text, stages, terminal_width
from kryograph.errors import UsageError
from kryograph.experiments import TABLES
from kryograph.files import check_own_file, write_text
from kryograph.lazy import lazy_imports

with lazy_imports():
    from kryograph import runs
    from kryograph.experiments import cells, comparison, ranking, result_tables, tuned
    from kryograph.report import rank_diagram, results_page, results_text


def results(
    tables: options.TableNames = None,
    systems: options.SystemNames = None,
    columns: options.ColumnNames = None,
    which: options.TableSettings = "best",
    store: options.StoreFile = options.STORE,
    as_markdown: options.Markdown = False,
    as_csv: Annotated[bool, options.flag("--csv", "Print CSV, a line for each cell.")] = False,
    as_json: options.Json = False,
    html: Annotated[
        Path | None, options.option("--html", "FILE", "Write a page that opens without network.")
    ] = None,
    export: Annotated[
        Path | None,
        options.option("--export", "FOLDER", "Write all runs to CSV files in a folder, then stop."),
    ] = None,
    imports: options.ImportedFiles = None,
) -> None:
    """Show result tables beside the paper's values."""
    flags = {"markdown": as_markdown, "csv": as_csv, "json": as_json}
    formats = [name for name, chosen in flags.items() if chosen]
    if len(formats) > 1:
        raise UsageError("Give one of --markdown, --csv and --json, not several.")
    names = list(tables or ())
    files = [Path(name) for name in names if name.endswith(".csv")]
    if files and not imports:
        raise UsageError(f"To add the runs in {files[0]} to the store, say --import {files[0]}.")
    if html is not None:
        check_own_file(html)
    if not imports:
        options.check_store(store)
    else:
        added = [row for file in (*imports, *files) for row in runs.read_csv(file)]
        new = runs.Store(store).add_all(added)
        note(f"{len(added):,} runs read, {new:,} of them new in {store}.")
    rows = _stored_rows(store)
    if export is not None:
        for file, number in result_tables.export_rows(export, rows).items():
            note(f"{file}: {number:,} runs.")
    if imports or export is not None:
        return
    known = tuned.read_tuned(tuned.tuned_file(store))
    views = results_text.table_views(
        [result_tables.find_table(name) for name in names or TABLES],
        options.split_commas(systems),
        options.split_commas(columns),
        lambda selected: cells.gather(selected, rows, which, known),
        skip_tables=not names,
    )
    if html is not None:
        with stages() as stage:
            stage("writing the page", 0.0)
            source, version = str(store if store.exists() else store.parent), kryograph.__version__
            page = results_page.render_results_page(views, source=source, version=version)
            write_text(html, page)
        note(f"Written to {html}: open it in a browser.")
    if formats:
        print(results_text.FORMATS[formats[0]](views), end="")
    elif html is None:
        # If no table was named, mention tables without runs in one line instead of printing them.
        printed = [view for view in views if names or view.runs]
        for name in (view.table.name for view in views if view not in printed):
            note(f"{name} has no runs yet: `kryograph reproduce {name}`.")
        text = results_text.render_text(printed, terminal_width())
        print_text(text, results_text.MARK_STYLES)
        note(results_text.LEGEND)


def compare(
    systems: Annotated[
        list[str],
        options.argument("SYSTEMS", "The first is compared with each of the others ('all')."),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "--columns", metavar="NAMES", help="Only these: 'Cora 1%'."),
    ] = None,
    table_name: options.TableName = "table2",
    which: options.TableSettings = "best",
    store: options.StoreFile = options.STORE,
    svg: Annotated[
        Path | None, options.option("--svg", "FILE", "Write the diagram of average ranks as SVG.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compare systems on the same splits.

    Over several columns the systems are also compared by their average ranks.
    """
    if svg is not None:
        check_own_file(svg)
    options.check_store(store)
    table, headings = result_tables.find_table(table_name), options.split_commas(columns)
    names = _table_systems(table, systems)
    known = tuned.read_tuned(tuned.tuned_file(store))
    cell_results = cells.gather(table.part((), headings), _stored_rows(store), which, known)
    pairs, incomparable = comparison.compare_first(cell_results, names)
    if incomparable:
        more = f" (and {len(incomparable) - 1} other pairs)" * (len(incomparable) > 1)
        name = f"own {table_name}" if table_name.endswith(".toml") else table.name
        message = (
            f"Fewer than two splits in common: {incomparable[0]}{more}. Run them: "
            f"`kryograph reproduce {name} --runs 10`."
        )
        if headings or not pairs:
            raise UsageError(message)
        note(message)
    several = len({result.cell.heading for result in cell_results}) > 1
    ranks = ranking.rank_columns(cell_results, names) if several else None
    if svg is not None:
        if ranks is None:
            raise UsageError(
                "There is no diagram to write: average ranks need two columns in which all these "
                "systems were run on the same splits."
            )
        write_text(svg, rank_diagram.rank_svg(ranks, table.title))
        note(f"Written to {svg}.")
    if as_json:
        values = {"table": table.name, "comparisons": [pair.as_dict() for pair in pairs]}
        print_json(values | {"ranking": ranks.as_dict() if ranks else None})
        return
    print(rank_diagram.comparison_text(pairs))
    if ranks is not None:
        print(rank_diagram.rank_text(ranks))
    elif several:
        note("Fewer than two columns have all these systems on the same splits: no ranks.")


def _stored_rows(store: Path) -> list[runs.Row]:
    """Read the runs; if there is no store, as in a clone of the project, say where they are."""
    if not store.exists():
        note(f"There is no {store} yet: these are the exported runs in {store.parent}.")
    return runs.stored_rows(store)


def _table_systems(table: result_tables.ResultTable, names: Sequence[str]) -> list[str]:
    """Return the named systems as the table spells them; "all" stands for those not yet named."""
    names = options.split_commas(names)
    listed = [system for name in names for system in (table.systems if name == "all" else [name])]
    systems = list(dict.fromkeys(table.part([name])[0].system for name in listed))
    if len(systems) < 2:
        raise UsageError("Name at least two systems to compare, or one and 'all'.")
    return systems
