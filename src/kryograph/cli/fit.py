"""`kryograph fit`, `predict` and `suggest`: label the nodes of a person's own graph."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kryograph.cli import table_options
from kryograph.cli.console import note, print_json, print_table, print_text, stages
from kryograph.cli.options import (
    Coverage,
    FittedFolder,
    Json,
    ModelFolder,
    Overwrite,
    Seed,
    choice,
    count,
    option,
    time_limit,
)
from kryograph.cli.table_options import TableFlags, takes_tables
from kryograph.errors import UsageError
from kryograph.files import replaced
from kryograph.lazy import lazy_imports
from kryograph.text import parse_duration, plural

with lazy_imports():
    from kryograph import labelling, model, systems
    from kryograph.data import tables
    from kryograph.data.tables import recipe
    from kryograph.labelling import output, run_folder
    from kryograph.report import fit_page, fit_text


POOL_METRICS = ("accuracy", "balanced-accuracy", "f1", "average-precision")
"""Choices of the setting `metric` of the pool, which is not imported for the help of a command."""

CLASSES_PRINTED = 20
"""Number of classes in the table of the summary; the page has them all."""


@takes_tables
def fit_command(
    flags: TableFlags,
    out: Annotated[
        Path | None, option("--out", "FOLDER", "Folder to write; needed unless --check is set.")
    ] = None,
    system_name: Annotated[
        str | None, option("--system", "NAME", "Use this system instead of the pool of heads.")
    ] = None,
    overrides: Annotated[
        list[str] | None, option("--set", "NAME=VALUE", "Change a setting of --system: hidden=64.")
    ] = None,
    balanced: Annotated[
        bool | None,
        typer.Option(
            "--balanced-labels/--random-labels",
            help="Whether the number of labels of each class was chosen (balanced), or labelled "
            "nodes were drawn at random. Default: balanced if most classes have equally many.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        str,
        choice(
            "--metric",
            "metric",
            POOL_METRICS,
            "What the labels are to be good for: 'accuracy', 'balanced-accuracy'; with two classes "
            "also 'f1', 'average-precision'.",
        ),
    ] = "accuracy",
    positive: Annotated[
        str | None,
        option(
            "--positive",
            "CLASS",
            "Of two classes the one by which nodes are ranked. Default: the rarer one.",
        ),
    ] = None,
    class_weight: Annotated[
        str | None,
        choice(
            "--class-weight",
            "class weight",
            ("none", "balanced"),
            "Whether all labels count alike in the weights of the pool ('none') or all classes "
            "('balanced'). Default: 'none', but 'balanced' with --metric balanced-accuracy.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        time_limit("--budget", "Networks join the pool if they take at most this long: 5m."),
    ] = None,
    search: Annotated[
        str | None, time_limit("--search", "Look for better settings that long: 10m.")
    ] = None,
    coverage: Coverage = 0.9,
    coverage_by: Annotated[
        str,
        choice(
            "--coverage-by",
            "kind of coverage",
            ("all", "class"),
            "Whether --coverage holds for all nodes together ('all') or for each class ('class').",
        ),
    ] = "all",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Label the nodes of your own graph.

    From two tables it writes predictions, a model and a page.
    """
    if overrides and system_name is None:
        raise UsageError("--set changes the settings of a system: name it with --system.")
    if system_name is not None and (balanced is not None or budget or class_weight):
        raise UsageError(
            "--balanced-labels, --random-labels, --class-weight and --budget belong to the pool: "
            "leave --system out, or leave them out."
        )
    if system_name not in (None, "pool") and metric != "accuracy" and search is None:
        raise UsageError(
            "With --system, --metric says by what --search compares settings: add --search, or "
            "leave --metric or --system out."
        )
    if flags.check:
        check = partial(
            labelling.check_fit,
            metric=metric,
            positive=positive,
            class_weight=class_weight or "by metric",
            coverage=coverage,
            coverage_by=coverage_by,
        )
        check_tables(flags, as_json, check=check)
        return
    if out is None:
        raise UsageError("Where are the results to be written? Say --out FOLDER.")
    run_folder.check_fit_output(out, overwrite, folder=True)
    only = None
    if system_name is not None:
        only = [systems.system(system_name, systems.read_pairs(overrides or []))]
    start = time.perf_counter()
    with stages() as stage:
        labelled = labelling.label_tables(
            table_options.read(flags, stage),
            systems=only,
            search=None if search is None else parse_duration(search),
            budget=0.0 if budget is None else parse_duration(budget),
            metric=metric,
            positive=positive,
            class_weight=class_weight or "by metric",
            label_design={None: "guess", True: "balanced", False: "as drawn"}[balanced],
            coverage=coverage,
            coverage_by=coverage_by,
            seed=seed,
            progress=stage,
        )
        stage("drawing the map", 0.0)
        page = fit_page.page_of(
            labelled,
            command=shlex.join(["kryograph", *sys.argv[1:]]),
            seconds=time.perf_counter() - start,
            run=str(out),
        )
        run_folder.write(out, labelled, page)
    for sentence in labelled.notes:
        note(sentence)
    if as_json:
        print_json(labelled.as_dict() | {"out": str(out)})
    else:
        for line in fit_text.summary_lines(labelled, CLASSES_PRINTED):
            print_text(line)
        disputed = []
        if labelled.disputed:
            content = f"{plural(len(labelled.disputed), 'given label')} to check"
            disputed.append((run_folder.DISPUTED, content))
        for name, content in (
            (run_folder.PREDICTIONS, "every node's label, probabilities and prediction set"),
            (run_folder.PAGE, "open it in a browser"),
            (run_folder.SUGGESTIONS, f"nodes to label next: kryograph suggest {out}"),
            *disputed,
            (
                run_folder.MODEL,
                f"for new nodes: kryograph predict {out / run_folder.MODEL} --edges …",
            ),
        ):
            print_text(f"  {out / name}  ({content})")


def check_tables(
    flags: TableFlags,
    as_json: bool,
    columns: recipe.Recipe | None = None,
    check: Callable[[tables.Tables], None] | None = None,
) -> None:
    """Read the tables and print the plan; a fault is an error. Nothing is trained or predicted.

    `check` looks for further faults.
    """
    with stages() as stage:
        read = table_options.read(flags, stage, columns)
        if check is not None:
            check(read)
    for sentence in read.notes:
        note(sentence)
    if as_json:
        print_json({"plan": read.plan.as_dicts(), "notes": list(read.notes)})
    else:
        print_text(f"{plural(read.graph.n, 'node')}, {plural(read.graph.edges, 'edge')}: no fault.")


@takes_tables
def predict(
    flags: TableFlags,
    model_folder: ModelFolder,
    out: Annotated[
        Path | None, option("--out", "FILE", "CSV file to write; needed unless --check is set.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Label the nodes of another graph by a fitted model.

    It may be a new graph, or a larger one than that of the fit.
    """
    if out is not None:
        run_folder.check_fit_output(out, overwrite, folder=False)
    elif not flags.check:
        raise UsageError("Where are the predictions to be written? Say --out FILE.")
    inside = model_folder / run_folder.MODEL
    fitted = model.Model.load(inside if inside.is_dir() else model_folder)
    columns = labelling.model_recipe(fitted)
    if flags.check or out is None:
        check_tables(flags, as_json, columns)
        return
    with stages() as stage:
        read = table_options.read(flags, stage, columns)
        stage("predicting", 0.0)
        predicted = labelling.predict_tables(fitted, read)
        with replaced(out) as new:
            output.write_predictions(new, predicted)
    for sentence in predicted.notes:
        note(sentence)
    numbers = Counter(predicted.best.tolist())
    counts = {name: numbers[c] for c, name in enumerate(fitted.classes)}
    if as_json:
        print_json(
            {
                "nodes": read.graph.n,
                "edges": read.graph.edges,
                "predicted": counts,
                "plan": read.plan.as_dicts(),
                "notes": list(read.notes),
                "out": str(out),
            }
        )
    else:
        print_text(f"{read.graph.n:,} nodes labelled by {fitted.system.name}: {out}")
        print_table(("class", "nodes"), [(name, f"{n:,}") for name, n in counts.items()])


def suggest(
    run: FittedFolder,
    number: Annotated[int, count("--count", "How many nodes.")] = 10,
    as_json: Json = False,
) -> None:
    """List the nodes that are best labelled next, and why.

    Measured on nine graphs with 5 to 20 labels per class, such labels gave 2 points more accuracy
    than random ones on average; on a single graph the gain can be negative.
    """
    rows = output.read_suggestions(run)[:number]
    if as_json:
        print_json(
            [
                row
                | {"lead": float(row["lead"]), "similar": int(row["similar"])}
                | {"hops": int(row["hops"]) if row["hops"] else None}
                for row in rows
            ]
        )
    else:
        print_table(("node", "why"), [(row["id"], row["why"]) for row in rows], numbers=False)
