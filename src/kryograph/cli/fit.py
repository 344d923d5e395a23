"""`kryograph fit`, `predict` and `suggest`: a person's own graph on the command line."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from kryograph.cli.console import note, show_rows, stages
from kryograph.data.tables import Tables, check_for_fit, read_tables
from kryograph.data.tables.recipe import Recipe
from kryograph.errors import UsageError
from kryograph.files import replaced
from kryograph.graph import UNKNOWN
from kryograph.labelling import output as folder
from kryograph.labelling.label import LabelledGraph, label_nodes
from kryograph.model import Model
from kryograph.report.fit_page import page
from kryograph.report.layout import positions
from kryograph.systems import System, system
from kryograph.systems.settings import read_pairs
from kryograph.text import parse_duration, percent

Edges = Annotated[
    Path, typer.Option("--edges", help="Table of edges (CSV, TSV, Parquet), .npz or GraphML.")
]
Nodes = Annotated[
    Path | None, typer.Option("--nodes", help="Table of nodes: id, features, labels.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier command wrote there.")
]
IdColumn = Annotated[str | None, typer.Option("--id", help="The column of node ids.")]


def fit(
    edges: Edges,
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")],
    nodes: Nodes = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column of labels; empty means unknown.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Columns of text: --text title,abstract.")
    ] = None,
    ignore: Annotated[
        str | None, typer.Option("--ignore", help="Columns that are not used, by commas.")
    ] = None,
    id_column: IdColumn = None,
    system_name: Annotated[
        str | None,
        typer.Option("--system", help="Only this one; default: chosen by the given labels."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting of --system: hidden=64.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", help="Look for better settings that long: 10m.")
    ] = None,
    coverage: Annotated[
        float, typer.Option("--coverage", help="How often a prediction set has the true class.")
    ] = 0.9,
    seed: Annotated[int, typer.Option("--seed", help="Fixes every random draw.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Label the nodes of your own graph: predictions, a model and a page, from two tables."""
    if not 0 < coverage < 1:
        raise UsageError(f"--coverage must lie between 0 and 1; it is {coverage:g}.")
    if seed < 0:
        raise UsageError(f"--seed must not be negative; it is {seed}.")
    folder.check_fit_output(out, overwrite, folder=True)
    chosen = _system(system_name, overrides or [])
    budget = None if search is None else parse_duration(search)
    start = time.perf_counter()
    with stages() as stage:
        tables = read_tables(
            edges,
            nodes,
            label=label,
            text=_columns(text),
            ignore=_columns(ignore),
            id=id_column,
            progress=lambda name, share: stage(f"reading {name}", share),
        )
        if label is None and not tables.classes:
            raise UsageError(f"Which column of {nodes or edges} has the labels? Say --label NAME.")
        check_for_fit(tables)
        labelled = label_nodes(
            tables.graph,
            tables.labels,
            tables.classes,
            systems=chosen,
            search=budget,
            coverage=coverage,
            seed=seed,
            progress=lambda name, done, total: stage(name, done / total),
        )
        _write(out, edges, nodes, tables, labelled, seed, start, stage)
    _show_fit(out, tables, labelled, as_json)


def predict(
    model_folder: Annotated[Path, typer.Argument(metavar="MODEL", help="A fit's model folder.")],
    edges: Edges,
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    nodes: Nodes = None,
    id_column: IdColumn = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Label the nodes of a new graph, or of a larger one, by a model that was fitted before."""
    folder.check_fit_output(out, overwrite, folder=False)
    inside = model_folder / folder.MODEL
    model = Model.load(inside if inside.is_dir() else model_folder)
    calibration = folder.calibration_of(model.extra)
    columns = Recipe.from_json(model.extra.get("columns"))
    with stages() as stage:
        tables = read_tables(
            edges,
            nodes,
            label=None,
            id=id_column,
            columns=columns,
            progress=lambda name, share: stage(f"reading {name}", share),
        )
        stage("predicting", 0.0)
        probabilities = calibration.probabilities(model.predict_proba(tables.graph))
        sets = calibration.sets(probabilities)
        with replaced(out) as new:
            folder.write_predictions(new, tables.graph, model.classes, probabilities, sets)
    for said in tables.notes:
        note(said)
    counts = np.bincount(probabilities.argmax(axis=1), minlength=len(model.classes))
    summary = {
        "nodes": tables.graph.n,
        "edges": tables.graph.edges,
        "predicted": dict(zip(model.classes, counts.tolist(), strict=True)),
        "notes": list(tables.notes),
        "out": str(out),
    }
    if as_json:
        print(json.dumps(summary, indent=2))
    else:
        print(f"{tables.graph.n:,} nodes labelled by {model.system.name}: {out}")
        show_rows(
            ("class", "nodes"), [(c, f"{n:,}") for c, n in zip(model.classes, counts, strict=True)]
        )


def suggest(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a fit.")],
    count: Annotated[int, typer.Option("--count", help="How many.")] = 10,
    as_json: Json = False,
) -> None:
    """Which unlabelled nodes to label next, and why."""
    if count < 1:
        raise UsageError(f"--count must be at least 1; it is {count}.")
    rows = folder.read_suggestions(run)[:count]
    if as_json:
        typed = [
            row
            | {"lead": float(row["lead"]), "similar": int(row["similar"])}
            | {"hops": int(row["hops"]) if row["hops"] else None}
            for row in rows
        ]
        print(json.dumps(typed, indent=2, ensure_ascii=False))
    else:
        show_rows(("node", "why"), [(row["id"], row["why"]) for row in rows])


def _write(
    out: Path,
    edges: Path,
    nodes: Path | None,
    tables: Tables,
    labelled: LabelledGraph,
    seed: int,
    start: float,
    stage: Any,
) -> None:
    stage("drawing the map", 0.0)
    model = labelled.model
    embedding = model.system.embed(model.weights, labelled.graph, len(labelled.classes))
    where = positions(embedding, seed)
    files = " and ".join(path.name for path in (edges, nodes) if path is not None)
    extra = {
        "columns": tables.columns.to_json(),
        "calibration": dataclasses.asdict(labelled.calibration),
        "seed": seed,
        "epochs": labelled.epochs,
    }
    whole = page(
        labelled,
        title=f"{(tables.columns.label or 'label').capitalize()} of {labelled.graph.n:,} nodes",
        source=[f"Read from {files}.", *tables.notes],
        command=shlex.join(["kryograph", *sys.argv[1:]]),
        version=version("kryograph"),
        seconds=time.perf_counter() - start,
        positions=where,
        seed=seed,
    )
    with replaced(out) as new:
        new.mkdir()
        folder.write_predictions(
            new / folder.PREDICTIONS,
            labelled.graph,
            labelled.classes,
            labelled.probabilities,
            labelled.sets,
            labelled.given,
        )
        folder.write_suggestions(new / folder.SUGGESTIONS, labelled)
        dataclasses.replace(model, extra=extra).save(new / folder.MODEL)
        (new / folder.PAGE).write_text(whole, encoding="utf-8")


def _show_fit(out: Path, tables: Tables, labelled: LabelledGraph, as_json: bool) -> None:
    share, low, high = labelled.accuracy
    given = int((labelled.given != UNKNOWN).sum())
    summary: Mapping[str, Any] = {
        "nodes": labelled.graph.n,
        "edges": labelled.graph.edges,
        "features": labelled.graph.features.shape[1],
        "labels": given,
        "classes": list(labelled.classes),
        "system": labelled.model.system.name,
        "settings": labelled.model.system.settings.as_dict(),
        "epochs": labelled.epochs,
        "held_out_accuracy": {
            "mean": share,
            "ci95": [low, high],
            "n": len(labelled.held_out.nodes),
        },
        "candidates": [
            {
                "system": c.system.name,
                "settings": c.system.settings.as_dict(),
                "accuracy": c.accuracy,
            }
            for c in labelled.candidates
        ],
        "temperature": labelled.calibration.temperature,
        "coverage": labelled.calibration.coverage,
        "notes": list(tables.notes),
        "out": str(out),
    }
    for said in tables.notes:
        note(said)
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    print(
        f"Read {summary['nodes']:,} nodes, {summary['edges']:,} edges, {summary['features']:,} "
        f"features, {given:,} labels of {len(labelled.classes)} classes."
    )
    print(
        f"Held-out accuracy {percent(share)} % (95 % interval {percent(low)} to {percent(high)}, "
        f"{len(labelled.held_out.nodes)} labels) by {labelled.model.system.name}."
    )
    for name, what in (
        (folder.PREDICTIONS, "every node's label, probabilities and prediction set"),
        (folder.PAGE, "open it in a browser"),
        (folder.SUGGESTIONS, f"nodes to label next: kryograph suggest {out}"),
        (folder.MODEL, f"for new nodes: kryograph predict {out / folder.MODEL} --edges …"),
    ):
        print(f"  {out / name}  ({what})")


def _system(name: str | None, pairs: list[str]) -> list[System] | None:
    if name is None:
        if pairs:
            raise UsageError("--set changes the settings of a system: name it with --system.")
        return None
    return [system(name, read_pairs(pairs))]


def _columns(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]
