"""`kryograph results` and `kryograph compare`: what the runs in a store come to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from kryograph.cli.console import note, stages
from kryograph.cli.reproduce import STORE, ColumnsOption, StoreFile, Systems, Which, split_commas
from kryograph.errors import UsageError
from kryograph.experiments.cells import CellResult, gather
from kryograph.experiments.comparison import Comparison, paired, rank_columns
from kryograph.experiments.result_tables import TABLES, ResultTable, read_result_table, result_table
from kryograph.experiments.standings import standings, together
from kryograph.experiments.tuned import read_tuned, tuned_file
from kryograph.files import check_output, replaced
from kryograph.report.rank_diagram import rank_svg, rank_text, show_comparisons
from kryograph.report.results_page import results_page
from kryograph.report.results_text import LEGEND, TableView, csv_text, markdown, show_results
from kryograph.runs.store import Row, Store, read_csv, write_csv

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def results(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="table1, table2, leak, or a TOML file."),
    ] = None,
    systems: Systems = None,
    columns: ColumnsOption = None,
    which: Which = "best",
    store: StoreFile = STORE,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for documents.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each cell.")] = False,
    as_json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page that opens without network.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write all runs to CSV files in this folder, then stop."),
    ] = None,
    imports: Annotated[
        list[Path] | None,
        typer.Option("--import", help="Add the runs of exported CSV files, then stop."),
    ] = None,
) -> None:
    """Show the tables so far: means, intervals, the paper's values, and what the two come to."""
    names = list(tables or ())
    if sum((as_markdown, as_csv, as_json)) > 1:
        raise UsageError("Give one of --markdown, --csv and --json, not several.")
    files = [Path(name) for name in names if name.endswith(".csv")]
    if files and not imports:
        raise UsageError(f"To add the runs in {files[0]} to the store, say --import {files[0]}.")
    if imports:
        _import([*imports, *files], Store(store))
    if export is not None:
        _export(export, _rows(store))
    if imports or export is not None:
        return
    if html is not None:
        _check_output(html)
    shown = _shown(names, split_commas(systems), split_commas(columns), which, store)
    if html is not None:
        with stages() as stage:
            stage("writing the page", 0.0)
            _write(html, results_page(shown, source=str(store), version=version("kryograph")))
        note(f"Written to {html}: open it in a browser.")
    cells = [result for each in shown for result in each.results]
    if as_json:
        print(json.dumps([result.as_dict() for result in cells], indent=2))
    elif as_csv:
        print(csv_text(cells), end="")
    elif as_markdown:
        print("\n".join(markdown(each) for each in shown), end="")
    elif html is None:
        for each in shown:
            # Of the tables that nobody asked for, those without runs are not worth a screen.
            if names or each.runs:
                show_results(each)
            else:
                note(f"{each.table.name} has no runs yet: `kryograph reproduce {each.table.name}`.")
        note(LEGEND)


def compare(
    systems: Annotated[
        list[str], typer.Argument(help="The first is compared with each of the others ('all').")
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "--columns", help="Only these, such as 'Cora 1%'."),
    ] = None,
    table_name: Annotated[
        str, typer.Option("--table", help="table1, table2, leak, or a TOML file.")
    ] = "table2",
    which: Which = "best",
    store: StoreFile = STORE,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Write the diagram of average ranks as a picture.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare systems over the same splits; over several columns, also by their average ranks."""
    if svg is not None:
        _check_output(svg)
    where, headings = _table(table_name), split_commas(columns)
    names = _names(where, split_commas(systems))
    found = _gathered(where, headings, which, store, _rows(store))
    cells = {(result.cell.heading, result.cell.system): result for result in found}
    shown = tuple(dict.fromkeys(heading for heading, _ in cells))
    how = f"own {table_name}" if table_name.endswith(".toml") else where.name
    pairs = _pairs(cells, shown, names, how, strict=bool(headings))
    ranking = rank_columns(found, names) if len(shown) > 1 else None
    if svg is not None:
        if ranking is None:
            raise UsageError(
                "There is no diagram to write: average ranks need two columns in which all these "
                "systems were run on the same splits."
            )
        _write(svg, rank_svg(ranking, where.title))
        note(f"Written to {svg}.")
    if as_json:
        said = {
            "table": where.name,
            "comparisons": [pair.as_dict() for pair in pairs],
            "ranking": ranking.as_dict() if ranking else None,
        }
        print(json.dumps(said, indent=2))
        return
    show_comparisons(pairs)
    if ranking is not None:
        print(rank_text(ranking))
    elif len(shown) > 1:
        note("Fewer than two columns have all these systems on the same splits: no ranks.")


def _names(where: ResultTable, asked: Sequence[str]) -> list[str]:
    """The systems as the table has them, the first first; "all" are the others."""
    given = [name for each in asked for name in (where.systems if each == "all" else [each])]
    names = list(dict.fromkeys(where.part([name])[0].system for name in given))
    if len(names) < 2:
        raise UsageError("Name at least two systems to compare, or one and 'all'.")
    return names


def _pairs(
    cells: dict[tuple[str, str], CellResult],
    headings: Sequence[str],
    names: Sequence[str],
    how: str,
    *,
    strict: bool,
) -> list[Comparison]:
    """The first system against the others; what cannot be compared is an error, or a note."""
    first, *others = names
    pairs, lacking = [], []
    for heading in headings:
        for other in others:
            pair = paired(cells[heading, first], cells[heading, other])
            if pair is not None and pair.n > 1:
                pairs.append(pair)
            else:
                lacking.append(f"{first} and {other} in {heading}")
    if not lacking:
        return pairs
    more = f" (and {len(lacking) - 1} other pairs)" * (len(lacking) > 1)
    said = (
        f"Fewer than two splits in common: {lacking[0]}{more}. Run them: "
        f"`kryograph reproduce {how} --runs 10`."
    )
    if strict or not pairs:
        raise UsageError(said)
    note(said)
    return pairs


def _table(name: str) -> ResultTable:
    return read_result_table(Path(name)) if name.endswith(".toml") else result_table(name)


def _rows(store: Path) -> list[Row]:
    if not store.exists():
        raise UsageError(
            f"There is no results store {store} yet: fill it with `kryograph reproduce table2`, "
            "add exported runs with `kryograph results --import FILE.csv`, or name another with "
            "--store."
        )
    return Store(store).rows()


def _gathered(
    where: ResultTable, headings: Sequence[str], which: str, store: Path, rows: Sequence[Row]
) -> list[CellResult]:
    """The cells of all systems in some columns."""
    return gather(where.part((), headings), rows, which, read_tuned(tuned_file(store)))


def _shown(
    names: Sequence[str], systems: Sequence[str], columns: Sequence[str], which: str, store: Path
) -> list[TableView]:
    """What is asked for of each table.

    Where no table is named, those that have no such system or column are passed over.
    """
    rows = _rows(store)
    shown = []
    problem: UsageError | None = None
    for name in names or TABLES:
        where = _table(name)
        try:
            wanted = set(where.part(systems, columns))
        except UsageError as error:
            if names:
                raise
            problem = problem or error
            continue
        found = _gathered(where, columns, which, store, rows)
        part = tuple(result for result in found if result.cell in wanted)
        # How a proposal stands depends on all systems, whether they are shown or not.
        standing = [s for s in standings(found) if s.system in {r.cell.system for r in part}]
        shown.append(TableView(where, part, (*standing, *together(part))))
    if not shown and problem is not None:
        raise problem
    return shown


def _import(files: Sequence[Path], store: Store) -> None:
    rows = [row for file in files for row in read_csv(file)]
    new = store.add_all(rows)
    note(f"{len(rows):,} runs read, {new:,} of them new in {store.path}.")


def _export(folder: Path, rows: Sequence[Row]) -> None:
    """A CSV file for each table, and one for the runs that are in none."""
    places = {
        (cell.system, cell.column.dataset, cell.column.split, cell.column.protocol): name
        for name in TABLES
        for cell in result_table(name).cells
    }
    parts: dict[str, list[Row]] = {name: [] for name in (*TABLES, "other")}
    for row in rows:
        where = places.get((row.system, row.dataset, row.split, row.protocol), "other")
        parts[where].append(row)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--export {folder} cannot be made: {error.strerror}.") from None
    for name, part in parts.items():
        file = folder / f"{name}.csv"
        # What another store exported there must not be lost.
        there = {row.place for row in read_csv(file)} if file.exists() else set()
        if lost := there - {row.place for row in part}:
            raise UsageError(
                f"{file} has {len(lost):,} runs that the store has not: add them first, with "
                f"`kryograph results --import {file}`."
            )
        if part:
            _write(file, write_csv(part))
            note(f"{file}: {len(part):,} runs.")


def _check_output(path: Path) -> None:
    """An error, before any work is done, if a file cannot or must not be written."""
    check_output(path, overwrite=True, is_ours=_is_ours, kind="a file that kryograph wrote")


def _is_ours(path: Path) -> bool:
    return path.is_file() and b"kryograph" in path.read_bytes()[:4096]


def _write(path: Path, text: str) -> None:
    """Write a whole file, or leave it as it was."""
    with replaced(path) as new:
        new.write_text(text, "utf-8")
