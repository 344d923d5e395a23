"""`kryograph bench`: what a person types, and the tables that come of it.

Benchmarks import PyTorch Geometric's layers, so each command imports its own when it is called.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kryograph.cli.console import note, show_table, stages
from kryograph.engine.machine import describe
from kryograph.stats import summarise
from kryograph.text import gigabytes, percent

app = typer.Typer(
    rich_markup_mode=None, help="Measure how fast and how good it is on this machine."
)

Quick = Annotated[bool, typer.Option("--quick", help="A subset, in less than a minute.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command(epilog="Example: kryograph bench epoch --quick")
def epoch(quick: Quick = False, as_json: Json = False) -> None:
    """A full epoch: the engine against the literal form and PyTorch Geometric's way."""
    from kryograph.bench import epoch as benchmark

    result = benchmark.measure_epochs(quick=quick, on_case=note)
    if as_json:
        return _print(result)
    headings = ("setting", "engine s", "literal", "PyG", "of floor", "logits", "gradient", "memory")
    show_table(
        headings,
        [
            (
                row["setting"],
                f"{row['engine_seconds']:.4f}",
                f"{row['speedup_literal']:.1f}×",
                f"{row['speedup_pyg']:.1f}×",
                f"{row['floor_fraction']:.2f}",
                f"{row['logits_difference']:.0e}",
                f"{row['gradient_difference']:.0e}",
                _bytes(row["engine_peak_bytes"]),
            )
            for row in result["settings"]
        ],
    )
    show_table(
        ("geometric mean", "literal", "PyG"),
        [
            (name, f"{means['speedup_literal']:.1f}×", f"{means['speedup_pyg']:.1f}×")
            for name, means in result["summary"].items()
        ],
    )
    return None


@app.command(epilog="Example: kryograph bench growth")
def growth(quick: Quick = False, as_json: Json = False) -> None:
    """How time and memory grow with the number of nodes, up to a million."""
    from kryograph.bench import growth as benchmark

    result = benchmark.measure_growth(quick=quick, on_case=note)
    if as_json:
        return _print(result)
    headings = ("system", "nodes", "prepare s", "epoch s", "predict all s", "memory")
    rows = [
        (
            row["system"],
            f"{row['nodes']:,}",
            f"{row['prepare_seconds']:.3f}",
            f"{row['epoch_seconds']:.4f}",
            f"{row['predict_seconds']:.3f}",
            _bytes(row["peak_bytes"]),
        )
        for row in result["sizes"]
    ]
    rows += [
        (name, "exponent", *("–" if e is None else f"{e:.2f}" for e in exponents.values()))
        for name, exponents in result["exponents"].items()
    ]
    show_table(headings, rows)
    return None


@app.command(epilog="Example: kryograph bench spmm")
def spmm(quick: Quick = False, as_json: Json = False) -> None:
    """The sparse product against torch's, SciPy's and PyTorch Geometric's."""
    from kryograph.bench import spmm as benchmark

    rows = benchmark.measure_spmm(quick=quick)
    if as_json:
        return _print({"products": rows})
    headings = ("nodes", "width", "ours s", *benchmark.THEIRS, "of copy rate")
    show_table(
        headings,
        [
            (
                f"{row['nodes']:,}",
                str(row["width"]),
                f"{row['kryograph_seconds']:.4f}",
                *(_ratio(row[f"speedup_{name}"]) for name in benchmark.THEIRS),
                f"{row['copy_fraction']:.2f}",
            )
            for row in rows
        ],
    )
    return None


@app.command(epilog="Example: kryograph bench apply --quick")
def apply(quick: Quick = False, as_json: Json = False) -> None:
    """exp(L)X on 100,000 nodes by block Lanczos, against SciPy."""
    from kryograph.bench import apply as benchmark

    result = benchmark.measure_apply(quick=quick, on_case=note)
    if as_json:
        return _print(result)
    show_table(
        ("way", "seconds", benchmark.THEIRS, "products", "error"),
        [
            (
                row["way"],
                f"{row['seconds']:.3f}",
                _ratio(row["speedup"]),
                "–" if row["steps"] is None else str(row["steps"]),
                f"{row['error']:.0e}",
            )
            for row in result["ways"]
        ],
    )
    return None


@app.command(epilog="Example: kryograph bench baselines --quick")
def baselines(quick: Quick = False, as_json: Json = False) -> None:
    """An epoch of GCN and GAT against PyTorch Geometric's example scripts."""
    from kryograph.bench import pyg as benchmark

    result = benchmark.measure_baselines(quick=quick, on_case=note)
    if as_json:
        return _print(result)
    show_table(
        ("system", "data set", "ours s", "script s", "ratio"),
        [
            (
                row["system"],
                row["dataset"],
                f"{row['kryograph_seconds']:.4f}",
                f"{row['script_seconds']:.4f}",
                _ratio(row["speedup"]),
            )
            for row in result["epochs"]
        ],
    )
    return None


@app.command(epilog="Example: kryograph bench seeds")
def seeds(quick: Quick = False, as_json: Json = False) -> None:
    """Ten seeds of a default run, start of the workers included, against literal runs in turn."""
    from kryograph.bench import seeds as benchmark

    result = benchmark.measure_seeds(quick=quick, on_case=note)
    if as_json:
        return _print(result)
    show_table(
        ("runs", "at a time", "seconds", "literal, in turn", "ratio"),
        [
            (
                str(result["seeds"]),
                str(result["jobs"]),
                f"{result['seconds']:.1f}",
                f"{result['literal_seconds']:.1f}",
                f"{result['speedup']:.1f}×",
            )
        ],
    )
    return None


@app.command(epilog="Example: kryograph bench fit --dataset cora --per-class 20 --draws 10")
def fit(
    dataset: Annotated[str, typer.Option(help="See `kryograph datasets`.")] = "cora",
    per_class: Annotated[int, typer.Option(help="Labels of each class that are given.")] = 20,
    draws: Annotated[int, typer.Option(help="Random draws; seeds 0, 1, …")] = 10,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to add the draws to; those it has are kept.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What `kryograph fit` chooses by itself: its accuracy, and how often its sets are right."""
    from kryograph.data import load
    from kryograph.experiments import fit_accuracy as benchmark

    data = load(dataset, notify=note)

    def said(made: benchmark.FitEvaluation) -> None:
        note(
            f"seed {made.seed}: {made.chosen}, test {percent(made.test_accuracy)} %, "
            f"sets right {percent(made.coverage)} %"
        )

    with stages() as stage:
        made = benchmark.draws(
            data, per_class, draws, out, lambda name, done, total: stage(name, done / total), said
        )
    measured = {
        name: summarise([getattr(each, name) for each in made])
        for name in ("test_accuracy", "prototypes_accuracy", "held_out_accuracy", "coverage")
    }
    if as_json:
        summary = {name: asdict(found) for name, found in measured.items()}
        return _print({"draws": [asdict(each) for each in made], "summary": summary})
    show_table(
        (f"{data.name}, {per_class} per class", "mean %", "95 % interval", "draws"),
        [
            (name.replace("_", " "), percent(found.mean), _interval(found.ci95), str(len(made)))
            for name, found in measured.items()
        ],
    )
    return None


def _interval(ends: tuple[float | None, float | None]) -> str:
    low, high = ends
    return "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _print(result: dict[str, Any]) -> None:
    print(json.dumps({**result, "machine": describe()}, indent=2))


def _bytes(count: int | None) -> str:
    return "–" if count is None else gigabytes(count)


def _ratio(value: object) -> str:
    return f"{value:.1f}×" if isinstance(value, float) else "–"
