"""The command line: one command per thing that a person wants.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed,
2 misused, 130 interrupted.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

import kryograph
from kryograph.cli import bench, figures, reproduce
from kryograph.cli import fit as own
from kryograph.cli import results as show_results
from kryograph.cli.console import note, progress, show_list, show_result
from kryograph.cli.tune import tune
from kryograph.data import DATASETS, fetch, load
from kryograph.data.catalogue import entry
from kryograph.data.splits import one_split
from kryograph.engine.cost import USUAL_EPOCHS
from kryograph.engine.machine import available_memory, measure_rates
from kryograph.errors import KryographError, UsageError, unknown
from kryograph.experiments.published import paper_settings
from kryograph.experiments.resolve import resolve_settings
from kryograph.experiments.result_tables import TABLES
from kryograph.experiments.tuned import read_tuned, tuned_file
from kryograph.report.systems_markdown import systems_markdown
from kryograph.runs.job import Scenario
from kryograph.runs.perform import Run
from kryograph.runs.runner import Plan
from kryograph.systems import SYSTEMS
from kryograph.systems.settings import read_pairs
from kryograph.text import gigabytes
from kryograph.training.loop import Conditions
from kryograph.training.stopping import RULES

app = typer.Typer(
    name="kryograph",
    help="Label the nodes of a graph when only a handful of labels are known.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(rich_markup_mode=None, help="Files of the data sets.")
app.add_typer(data_app, name="data")
app.add_typer(bench.app, name="bench")
reproduce_app = typer.Typer(rich_markup_mode=None, help="The paper's tables and figures.")
app.add_typer(reproduce_app, name="reproduce")
for _table in TABLES:
    reproduce_app.command(
        _table, epilog=f"Example: kryograph reproduce {_table} --columns 'Cora 1%' --runs 3"
    )(reproduce.reproducer(_table))
reproduce_app.command(epilog="Example: kryograph reproduce own mine.toml --runs 5")(reproduce.own)
for _name, _figure in figures.FIGURES.items():
    reproduce_app.command(_name, epilog=f"Example: kryograph reproduce {_name} --quick")(_figure)
app.command(epilog="Example: kryograph theory --datasets cora --seeds 5")(figures.theory)
app.command(epilog="Example: kryograph depth --depths 1,4,16 --seeds 5")(figures.depth)
app.command(
    epilog="Example: kryograph fit --edges edges.csv --nodes nodes.csv --label topic --out run"
)(own.fit)
app.command(
    epilog="Example: kryograph predict run/model --edges e.csv --nodes n.csv --out new.csv"
)(own.predict)
app.command(epilog="Example: kryograph suggest run --count 5")(own.suggest)
app.command(epilog="Example: kryograph results table2 --columns 'Cora 1%' --html table2.html")(
    show_results.results
)
app.command(epilog="Example: kryograph compare truncated-krylov gcn --column 'Cora 1%'")(
    show_results.compare
)
app.command(epilog="Example: kryograph tune truncated-krylov --label-rate 1% --timeout 30m")(tune)

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="A folder with ind.* files (or set KRYOGRAPH_DATA)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command(epilog="Example: kryograph train --dataset citeseer --label-rate 1% --seeds 10")
def train(
    system_name: Annotated[
        str, typer.Option("--system", help="See `kryograph systems`.")
    ] = "truncated-krylov",
    dataset: Annotated[str, typer.Option(help="See `kryograph datasets`.")] = "cora",
    split: Annotated[str | None, typer.Option(help="'public', the default.")] = None,
    label_rate: Annotated[
        str | None, typer.Option(help="Draw random splits instead: '1%' of each class, rounded up.")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Draw random splits instead: this many nodes of each class.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many runs; their seeds are 0, 1, …")] = 10,
    protocol: Annotated[
        str, typer.Option(help="'validation' or 'no-validation': may validation labels be seen?")
    ] = "validation",
    stop: Annotated[
        str,
        typer.Option(
            help="'paper'; 'june' (the authors' earlier code); 'text' (as the paper says it); "
            "'li' (the printed rows without validation); '200' epochs."
        ),
    ] = "paper",
    settings: Annotated[
        str,
        typer.Option(
            help="'default'; 'paper': those published for this column; 'tuned': found for it by a "
            "search; 'best': those, or the default."
        ),
    ] = "default",
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: --set hidden=64.")
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(help="Diffusion operator: 'sym' (default), or 'rw' (with --settings paper)."),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to train, as torch names it.")] = "cpu",
    precision: Annotated[str, typer.Option(help="'float32' or 'bfloat16' (mixed).")] = "float32",
    remove_unlabelled: Annotated[
        bool,
        typer.Option("--remove-unlabelled", help="Take nodes without a class out of the graph."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(help="How many runs at once. Default: decided from their cost."),
    ] = None,
    store: Annotated[
        Path,
        typer.Option(envvar="KRYOGRAPH_STORE", help="Your own tuned settings lie beside it."),
    ] = reproduce.STORE,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Train a system over several seeds and print its test accuracy with a 95 % interval."""
    column = Scenario(entry(dataset).name, one_split(split, label_rate, per_class), protocol)
    changes = read_pairs(overrides or [])
    method, source = resolve_settings(
        system_name, column, settings, changes, operator, read_tuned(tuned_file(store))
    )
    if settings == "paper":
        row = paper_settings(system_name, column)
        note(f"Settings: {row.source}, {row.column}." + (f" lr is {row.note}." if row.note else ""))
    if stop not in RULES:
        raise unknown("stop rule", stop, RULES)
    conditions = Conditions(RULES[stop], device, precision)
    for option, count in (("--seeds", seeds), ("--jobs", jobs)):
        if count is not None and count < 1:
            raise UsageError(f"{option} must be at least 1; it is {count}.")
    data = load(dataset, data_dir=data_dir, remove_unlabelled=remove_unlabelled, notify=note)
    _train(Plan(method, source, data, column, seeds, conditions), jobs, as_json)


@app.command(epilog="Example: kryograph demo")
def demo(data_dir: DataDir = None) -> None:
    """Train truncated Krylov on Cora, five seeds (on a synthetic graph if Cora is out of reach)."""
    try:
        data = load("cora", data_dir=data_dir, notify=note)
    except UsageError:
        raise
    except KryographError as error:
        note(error)
        note("Cora cannot be had, so this is the built-in synthetic citation graph.")
        data = load("synthetic")
    column = Scenario(data.name, "public", "validation")
    method, source = resolve_settings("truncated-krylov", column)
    _train(Plan(method, source, data, column, seeds=5))


@app.command(epilog="Example: kryograph systems --json")
def systems(
    as_json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the whole catalogue, with all settings.")
    ] = False,
) -> None:
    """List the systems that there are."""
    if markdown:
        print(systems_markdown(), end="")
        return
    entries = [
        {"name": name, "summary": cls.summary, "paper": cls.paper} for name, cls in SYSTEMS.items()
    ]
    _show_entries(entries, as_json)


@app.command(epilog="Example: kryograph datasets --json")
def datasets(as_json: Json = False) -> None:
    """List the data sets that there are."""
    entries = [
        {"name": name, "summary": entry.summary, "citation": entry.citation}
        for name, entry in DATASETS.items()
    ]
    _show_entries(entries, as_json)


@data_app.command("fetch", epilog="Example: kryograph data fetch cora citeseer pubmed")
def data_fetch(
    names: Annotated[list[str], typer.Argument(help="Data sets; see `kryograph datasets`.")],
    data_dir: DataDir = None,
) -> None:
    """Fill the cache ahead of time, so that later runs need no network.

    Where a folder of your own is named, its files are checked instead.
    """
    for name, files in fetch(names, data_dir=data_dir, notify=note).items():
        note(f"{name}: {len(files.paths)} files in {files.folder}, from {files.source}")


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Label the nodes of a graph when only a handful of labels are known."""
    if version:
        print(kryograph.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line; say what went wrong in a sentence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without "×" gets a "?"
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except KryographError as error:
        _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        _fail(error.format_message(), error.exit_code)
    except OSError as error:  # a folder that may not be read, a pipe that was closed
        _fail(f"{error.strerror or error}: {error.filename or 'standard output'}.", 1)
    except (MemoryError, RuntimeError) as error:
        out_of_memory = (MemoryError, torch.OutOfMemoryError)
        if not isinstance(error, out_of_memory) and "allocate memory" not in str(error):
            raise
        _fail("Out of memory: try smaller settings, such as --set hidden=32.", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"kryograph: {message}", file=sys.stderr)
    sys.exit(code)


def _with_jobs(plan: Plan, requested: int | None) -> Plan:
    """Decides how many runs are done at once, unless it is requested, and says what to expect."""
    estimate = plan.estimate()
    if estimate is None:
        return replace(plan, jobs=requested or 1)
    jobs = plan.choose_jobs(estimate, requested)
    estimate.check(available_memory(), jobs)
    seconds = estimate.seconds(measure_rates())
    at_once = f", {jobs} at a time" if jobs > 1 else ""
    note(
        f"Estimate: {estimate.weights:,} weights, {1000 * seconds / USUAL_EPOCHS:.1f} ms an epoch, "
        f"{gigabytes(jobs * estimate.memory)}; {plan.seeds} run{'s' * (plan.seeds > 1)} of about "
        f"{USUAL_EPOCHS} epochs{at_once}: {plan.seeds * seconds / jobs:.0f} s."
    )
    return replace(plan, jobs=jobs)


def _train(plan: Plan, jobs: int | None = None, as_json: bool = False) -> None:
    graph = plan.dataset.graph
    note(f"{graph} ({plan.dataset.source})")
    if str(graph.cleaning):
        note(f"Edges: {graph.cleaning}.")
    plan = _with_jobs(plan, jobs)
    runs: list[Run] = []
    try:
        with progress(plan.seeds) as tracker, closing(plan.runs(tracker.epoch)) as going:
            for run in going:
                runs.append(run)
                tracker.run(run)
    finally:
        # Also after Ctrl-C or a run that failed: what is finished is shown.
        if len(runs) < plan.seeds:
            note(f"Stopped: {len(runs)} of {plan.seeds} runs are finished.")
        if runs and as_json:
            print(json.dumps(plan.result(runs).as_dict(), indent=2))
        elif runs:
            show_result(plan.result(runs))


def _show_entries(entries: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(entries, indent=2))
    else:
        show_list((entry["name"], entry["summary"]) for entry in entries)
