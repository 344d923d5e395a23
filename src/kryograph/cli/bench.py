"""`kryograph bench`: one command for each benchmark of speed, and `bench graphs` for accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import kryograph
from kryograph.bench import benchmark_summaries, load_benchmark
from kryograph.cli import options
from kryograph.cli.console import Progress, note, print_json, print_table
from kryograph.files import check_own_file, write_text
from kryograph.lazy import lazy_imports
from kryograph.text import parse_duration, percent, plural

with lazy_imports():
    from kryograph.engine import machine
    from kryograph.experiments import (
        graph_accuracy,
        graph_rows,
        graph_summary,
        suggest_accuracy,
        suggest_rows,
    )
    from kryograph.labelling import suggestion_rules
    from kryograph.report import graph_page, graph_tables

bench_app = typer.Typer(rich_markup_mode=None, help="Measure speed and accuracy on this machine.")


def _command(name: str) -> Callable[..., None]:
    """Build the command of a benchmark."""

    def run(quick: options.Quick = False, as_json: options.Json = False) -> None:
        benchmark = load_benchmark(name)
        result = benchmark.run(quick=quick, on_case=note)
        if as_json:
            print_json(result)
            return
        for headings, rows in benchmark.tables(result):
            print_table(headings, rows)

    return run


for _name, _summary in benchmark_summaries().items():
    bench_app.command(_name, help=_summary, epilog=options.example(f"bench {_name} --quick"))(
        _command(_name)
    )


GraphFiles = Annotated[
    list[str],
    options.option(
        "--data", "DATA", "A folder of .npz graphs, or data sets: cora,citeseer; repeatable."
    ),
]


@bench_app.command(
    "graphs", epilog=options.example("bench graphs --data graphs --draws 1 --html graphs.html")
)
def bench_graphs(
    data: GraphFiles,
    per_class: Annotated[
        str, options.numbers("--per-class", "Labels of each class: 3,10,20.")
    ] = "3,10,20",
    draws: Annotated[int, options.count("--draws", "Number of random draws; seeds 0, 1, …")] = 3,
    methods: Annotated[
        list[str] | None,
        options.option(
            "--method", "NAME", "Only 'portfolio', or a system as NAME:SETTING=VALUE,…; repeatable."
        ),
    ] = None,
    budget: Annotated[
        str, options.time_limit("--budget", "Leave out a method that takes longer for a draw.")
    ] = "5m",
    retry: options.Retry = False,
    out: Annotated[
        Path | None, options.option("--out", "FILE", "CSV file of rows; those in it are kept.")
    ] = None,
    html: Annotated[
        Path | None, options.option("--html", "FILE", "Write a page that opens without network.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Accuracy of `fit`, of its heads and of reference methods.

    Each graph is labelled from a few labels of each class; all other labels are for the test.
    """
    if html is not None:
        check_own_file(html)
    benchmark = graph_accuracy.GraphBenchmark(
        graph_accuracy.find_graphs(options.split_commas(data)),
        tuple(options.read_numbers("--per-class", per_class)),
        draws,
        tuple(methods or graph_accuracy.GRAPH_METHODS),
        parse_duration(budget),
    )
    with Progress(benchmark.count, unit="rows") as progress:
        rows = benchmark.run(
            out,
            retry=retry,
            notify=note,
            on_row=lambda row, done: progress.finished(
                row.key, _line(row), failed=bool(row.error), completed=done
            ),
        )
    summary = graph_summary.summarise_rows(rows)
    if html is not None:
        source = plural(len(benchmark.graphs), "graph")
        page = graph_page.render_graph_page(summary, source=source, version=kryograph.__version__)
        write_text(html, page)
        note(f"Written to {html}: open it in a browser.")
    if as_json:
        print_json(
            {
                "summary": summary.as_dict(),
                "rows": [asdict(row) for row in rows],
                "machine": machine.describe(),
            }
        )
        return
    for table in graph_tables.summary_tables(summary):
        for part in graph_tables.narrow_tables(table):
            print(part.title)
            print_table(part.headings, part.rows)
    for graph, method, reason, number in summary.errors:
        note(f"{graph}, {method}, {plural(number, 'draw')}: {reason}")


def _line(row: graph_rows.GraphRow) -> str:
    result = row.error or f"{percent(row.accuracy)} % in {row.seconds or 0.0:.1f} s"
    return f"{row.graph}, {row.per_class} per class, seed {row.seed}, {row.method}: {result}"


@bench_app.command("suggest", epilog=options.example("bench suggest --data graphs --draws 5"))
def bench_suggest(
    data: GraphFiles,
    per_class: Annotated[
        str, options.numbers("--per-class", "Labels per class on average: 5,10,20.")
    ] = "5,10,20",
    draws: Annotated[int, options.count("--draws", "Number of random draws.")] = 5,
    first: Annotated[int, options.count("--first", "Seed of the first draw.", least=0)] = 0,
    rules: Annotated[
        list[str] | None,
        options.option(
            "--rule", "NAME", "Rule beside random labels, or 'all'; default: that of suggest."
        ),
    ] = None,
    quick: Annotated[
        bool, options.flag("--quick", "Score the closed-form heads of the rounds, not `fit`.")
    ] = False,
    retry: options.Retry = False,
    out: Annotated[
        Path | None, options.option("--out", "FILE", "CSV file of rows; those in it are kept.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Accuracy of `fit` after suggested labels or random ones.

    Both begin with the same two labels of each class and are tested on the same nodes, a third of
    the graph, which no rule may choose.
    """
    names = options.split_commas(rules) or [suggestion_rules.DEFAULT_RULE]
    if names == ["all"]:
        names = list(suggestion_rules.SUGGESTION_RULES)
    benchmark = suggest_accuracy.SuggestBenchmark(
        graph_accuracy.find_graphs(options.split_commas(data)),
        tuple(options.read_numbers("--per-class", per_class)),
        draws,
        first,
        tuple(names),
        quick,
    )
    with Progress(benchmark.count, unit="rows") as progress:
        rows = benchmark.run(
            out,
            retry=retry,
            notify=note,
            on_row=lambda row, done: progress.finished(
                row.key, _suggest_line(row), failed=bool(row.error), completed=done
            ),
        )
    gains = suggest_rows.gains(rows)
    if as_json:
        print_json(
            {
                "gains": [asdict(gain) for gain in gains],
                "rows": [asdict(row) for row in rows],
                "machine": machine.describe(),
            }
        )
        return
    print("Accuracy with random labels in percent, and what a rule adds to it in points:")
    headings = ("rule", "graph", "random", *(f"{k} labels" for k in benchmark.per_class))
    table = [
        (
            gain.rule,
            gain.graph or f"all {gain.count} graphs",
            percent(gain.random),
            *(f"{value:+.1f}" for value in gain.per_class.values()),
            f"{gain.mean:+.1f}" + (f" ± {gain.half:.1f}" if gain.half is not None else ""),
        )
        for gain in gains
    ]
    print_table((*headings, "mean"), table)


def _suggest_line(row: suggest_rows.SuggestRow) -> str:
    result = row.error or f"{percent(row.accuracy)} % in {row.seconds or 0.0:.1f} s"
    return f"{row.graph}, seed {row.seed}, {row.rule}, {row.per_class} per class: {result}"
