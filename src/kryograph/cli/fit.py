"""`kryograph fit`, `predict` and `suggest`: label the nodes of a person's own graph."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

import kryograph
from kryograph.cli import table_options
from kryograph.cli.console import note, print_json, print_table, stages
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
from kryograph.text import parse_duration, percent, plural

with lazy_imports():
    from kryograph import features, labelling, model, systems
    from kryograph.data import tables
    from kryograph.data.tables import recipe
    from kryograph.labelling import calibration, output
    from kryograph.report import fit_page, layout


POOL_METRICS = ("accuracy", "balanced-accuracy")
"""Choices of the setting `metric` of the pool, which is not imported for the help of a command."""


@takes_tables
def fit(
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
            ("accuracy", "balanced-accuracy"),
            "'accuracy' or 'balanced-accuracy'.",
        ),
    ] = "accuracy",
    budget: Annotated[
        str | None,
        time_limit("--budget", "Networks join the pool if they take at most this long: 5m."),
    ] = None,
    search: Annotated[
        str | None, time_limit("--search", "Look for better settings that long: 10m.")
    ] = None,
    coverage: Coverage = 0.9,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Label the nodes of your own graph.

    From two tables it writes predictions, a model and a page.
    """
    if overrides and system_name is None:
        raise UsageError("--set changes the settings of a system: name it with --system.")
    if system_name is not None and (balanced is not None or budget or metric != "accuracy"):
        raise UsageError(
            "--balanced-labels, --random-labels, --metric and --budget belong to the pool: leave "
            "--system out, or leave them out."
        )
    if flags.check:
        check_tables(flags, as_json)
        return
    if out is None:
        raise UsageError("Where are the results to be written? Say --out FOLDER.")
    output.check_fit_output(out, overwrite, folder=True)
    only = None
    if system_name is not None:
        only = [systems.system(system_name, systems.read_pairs(overrides or []))]
    start = time.perf_counter()
    with stages() as stage:
        read = table_options.read(flags, stage)
        tables.check_for_fit(read)
        labelled = labelling.label_nodes(
            read.graph,
            read.labels,
            read.classes,
            recipe=read.columns,
            systems=only,
            search=None if search is None else parse_duration(search),
            budget=0.0 if budget is None else parse_duration(budget),
            metric=metric,
            label_design={None: "guess", True: "balanced", False: "as drawn"}[balanced],
            coverage=coverage,
            seed=seed,
            progress=stage,
        )
        notes = [*read.notes, *labelled.notes]
        stage("drawing the map", 0.0)
        fitted = labelled.model
        embedding = fitted.embed(labelled.graph)
        files = " and ".join(path.name for path in flags.files)
        page = fit_page.PageInfo(
            title=f"{(read.columns.label or 'label').capitalize()} of {labelled.graph.n:,} nodes",
            notes=[f"Read from {files}.", *notes],
            command=shlex.join(["kryograph", *sys.argv[1:]]),
            version=kryograph.__version__,
            positions=layout.positions(embedding, seed),
            seconds=time.perf_counter() - start,
            seed=seed,
            plan=str(read.plan),
        )
        output.write(out, labelled, fit_page.render_fit_page(labelled, page))
    for sentence in notes:
        note(sentence)
    if as_json:
        plan = read.plan.as_dicts()
        print_json(labelled.as_dict() | {"plan": plan, "notes": notes, "out": str(out)})
    else:
        _print_fit(labelled)
        for name, content in (
            (output.PREDICTIONS, "every node's label, probabilities and prediction set"),
            (output.PAGE, "open it in a browser"),
            (output.SUGGESTIONS, f"nodes to label next: kryograph suggest {out}"),
            (output.MODEL, f"for new nodes: kryograph predict {out / output.MODEL} --edges …"),
        ):
            print(f"  {out / name}  ({content})")


def check_tables(flags: TableFlags, as_json: bool, columns: recipe.Recipe | None = None) -> None:
    """Read the tables and print the plan; a fault is an error. Nothing is trained or predicted."""
    with stages() as stage:
        read = table_options.read(flags, stage, columns)
        if columns is None:
            tables.check_for_fit(read)
    for sentence in read.notes:
        note(sentence)
    if as_json:
        print_json({"plan": read.plan.as_dicts(), "notes": list(read.notes)})
    else:
        print(f"{plural(read.graph.n, 'node')}, {plural(read.graph.edges, 'edge')}: no fault.")


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
        output.check_fit_output(out, overwrite, folder=False)
    elif not flags.check:
        raise UsageError("Where are the predictions to be written? Say --out FILE.")
    inside = model_folder / output.MODEL
    fitted = model.Model.load(inside if inside.is_dir() else model_folder)
    calibrated = calibration.Calibration.from_extra(fitted.extra)
    if "columns" not in fitted.extra:
        raise UsageError(
            f"The model in {model_folder} does not know how features are made from tables: pass "
            "recipe=tables.columns to label_nodes, or use Model.predict_proba in Python."
        )
    columns = recipe.Recipe.from_json(fitted.extra["columns"])
    if flags.check or out is None:
        check_tables(flags, as_json, columns)
        return
    with stages() as stage:
        read = table_options.read(flags, stage, columns)
        stage("predicting", 0.0)
        probabilities = calibrated.probabilities(fitted.predict_proba(read.graph))
        with replaced(out) as new:
            sets = calibrated.sets(probabilities)
            output.write_predictions(new, read.graph, fitted.classes, probabilities, sets)
    for sentence in read.notes:
        note(sentence)
    predicted = Counter(probabilities.argmax(axis=1).tolist())
    counts = {name: predicted[c] for c, name in enumerate(fitted.classes)}
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
        print(f"{read.graph.n:,} nodes labelled by {fitted.system.name}: {out}")
        print_table(("class", "nodes"), [(name, f"{n:,}") for name, n in counts.items()])


def suggest(
    run: FittedFolder,
    number: Annotated[int, count("--count", "How many nodes.")] = 10,
    as_json: Json = False,
) -> None:
    """List the nodes that are best labelled next, and why."""
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


def _print_fit(labelled: labelling.LabelledGraph) -> None:
    summary = labelled.as_dict()
    accuracy = summary["held_out_accuracy"]
    low, high = accuracy["ci95"]
    # A graph without features has the identity in their place.
    none = features.is_identity(labelled.graph.features)
    number = "no features" if none else plural(summary["features"], "feature")
    print(
        f"Read {plural(summary['nodes'], 'node')}, {plural(summary['edges'], 'edge')}, {number}, "
        f"{plural(summary['labels'], 'label')} of {len(labelled.classes)} classes."
    )
    print(
        f"Held-out accuracy {percent(accuracy['mean'])} % (95 % interval {percent(low)} to "
        f"{percent(high)}, {accuracy['n']} labels) by {summary['system']}; mean over the classes "
        f"{percent(summary['held_out_balanced_accuracy'])} %."
    )
