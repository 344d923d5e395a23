"""`kryograph train` and `kryograph demo`: runs of one system in one scenario."""

from __future__ import annotations

import re
from contextlib import closing
from functools import partial
from typing import Annotated, Any

from kryograph.cli import options
from kryograph.cli.console import Progress, note, print_json, print_table, print_text
from kryograph.errors import KryographError, UsageError
from kryograph.lazy import lazy_imports
from kryograph.text import percent, plural

with lazy_imports():
    from kryograph import data, runs, systems
    from kryograph.experiments import resolve, tuned
    from kryograph.training import loop


def train_system(
    system_name: options.SystemName = "truncated-krylov",
    dataset: options.DatasetName = "cora",
    split: options.SplitName = None,
    label_rate: options.LabelRate = None,
    per_class: options.PerClass = None,
    seeds: options.Seeds = 10,
    protocol: options.ProtocolName = "validation",
    stop: options.StopRuleName = "paper",
    settings: options.RunSettings = "default",
    changes: options.Changes = None,
    operator: options.OperatorName = None,
    device: options.Device = "cpu",
    precision: options.Precision = "float32",
    remove_unlabelled: Annotated[
        bool,
        options.flag("--remove-unlabelled", "Remove nodes without a class from the graph."),
    ] = False,
    jobs: options.AutomaticJobs = None,
    record: Annotated[
        bool, options.flag("--record", "Add the finished runs to the results store.")
    ] = False,
    store: options.StoreFile = options.STORE,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Train a system with several seeds and print its accuracy.

    Prints the test accuracy of each run, and their mean with its 95 % interval.
    """
    if record and (remove_unlabelled or device != "cpu"):
        option = "--remove-unlabelled" if remove_unlabelled else f"--device {device}"
        raise UsageError(
            f"--record cannot be combined with {option}: a row of the results store does not hold "
            "this option, so that it would be taken for the row of another run."
        )
    scenario = runs.Scenario(
        data.find_source(dataset).name, data.one_split(split, label_rate, per_class), protocol
    )
    resolved = resolve.resolve_settings(
        system_name,
        scenario,
        settings,
        systems.read_pairs(changes or []),
        operator,
        partial(tuned.read_tuned, tuned.tuned_file(store)),
    )
    if settings == "paper" and (row := resolved.published) is not None:
        note(
            f"Settings: {row.source}, {row.scenario}." + (f" lr is {row.note}." if row.note else "")
        )
    first = runs.Job(resolved.system, resolved.source, scenario, 0, stop, precision, device)
    first.conditions.check()
    loaded = data.load(dataset, data_dir=data_dir, remove_unlabelled=remove_unlabelled, notify=note)
    _train(first, resolved, loaded, seeds, jobs, as_json, runs.Store(store) if record else None)


def demo(data_dir: options.DataDir = None) -> None:
    """Train truncated Krylov networks on Cora with five seeds.

    A synthetic graph is used if Cora cannot be loaded.
    """
    try:
        loaded = data.load("cora", data_dir=data_dir, notify=note)
    except UsageError:
        raise
    except KryographError as error:
        note(error)
        note("Cora could not be loaded. Using the built-in synthetic graph instead.")
        loaded = data.load("synthetic")
    scenario = runs.Scenario(loaded.name, "public", "validation")
    resolved = resolve.resolve_settings("truncated-krylov", scenario)
    _train(runs.Job(resolved.system, resolved.source, scenario), resolved, loaded, seeds=5)


def _train(
    job: runs.Job,
    resolved: resolve.ResolvedSettings,
    dataset: data.Dataset,
    seeds: int,
    jobs: int | None = None,
    as_json: bool = False,
    store: runs.Store | None = None,
) -> None:
    """Do the runs of a job with the seeds 0, 1, … and print them; add them to `store`, if any.

    The runs that are finished are printed also after Ctrl-C or after a run that failed.
    """
    estimate = runs.sweep.estimate_run(job, dataset)
    note(f"{dataset.graph} ({dataset.origin})")
    if str(dataset.graph.cleaning):
        note(f"Edges: {dataset.graph.cleaning}.")
    workers = runs.sweep.choose_workers(estimate, seeds, jobs)
    if estimate is not None:
        note(runs.sweep.describe_estimate(estimate, seeds, workers))
    new = 0
    rows: list[runs.Row] = []
    try:
        with Progress(seeds, unit="runs") as progress:
            outcomes = runs.execute(
                runs.over_seeds([job], seeds),
                workers=workers,
                load=runs.Datasets(loaded=[dataset]),
                on_epoch=lambda job, epoch: progress.working(job, _epoch_text(job, epoch)),
            )
            with closing(outcomes):
                for finished, outcome in outcomes:
                    if isinstance(outcome, Exception):
                        raise outcome
                    rows.append(outcome)
                    if store is not None:
                        new += store.add(outcome)
                    progress.finished(finished, _run_text(outcome))
    finally:
        rows.sort(key=lambda row: row.seed)
        if len(rows) < seeds:
            note(f"Stopped: {len(rows)} of {seeds} runs are finished.")
        if rows:
            published = resolved.published.accuracy if resolved.published else None
            result = runs.sweep.runs_report(job, dataset, rows, workers, published)
            if as_json:
                print_json(result)
            else:
                _print_result(result)
        if store is not None:
            note(f"{plural(new, 'new run')} added to {store.path}.")


def _epoch_text(job: runs.Job, epoch: loop.Epoch) -> str:
    nodes, accuracy = (
        ("training", epoch.training_accuracy)
        if epoch.validation_accuracy is None
        else ("validation", epoch.validation_accuracy)
    )
    return f"seed {job.seed}: epoch {epoch.number:4d}, {nodes} {percent(accuracy)} %"


def _run_text(row: runs.Row) -> str:
    score = row.validation_accuracy
    validation = "" if score is None else f", validation {percent(score)} %"
    return f"seed {row.seed}: {row.epochs} epochs in {row.seconds:.1f} s{validation}"


def _print_result(result: dict[str, Any]) -> None:
    """Print a row for each run, then the mean with its interval beside the paper's value."""
    system, dataset = result["system"], result["dataset"]
    settings = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    print_text(
        f"{system} on {dataset}, split {result['split']}, {result['protocol']} protocol, "
        f"stop rule {result['stop']}, operator {result['operator']}",
        {rf"^{re.escape(system)}| on {re.escape(dataset)}": "bold"},
    )
    print_text(f"settings ({result['settings_source']}): {settings}", {".+": "dim"})
    print_table(
        ("seed", "epochs", "seconds", "validation %", "test %"),
        [
            (
                str(run["seed"]),
                str(run["epochs"]),
                f"{run['seconds']:.1f}",
                percent(run["validation_accuracy"]),
                percent(run["test_accuracy"]),
            )
            for run in result["runs"]
        ],
    )
    summary, published = result["test_accuracy"], result["paper"]
    low, high = summary["ci95"]
    interval = f"95 % interval {percent(low)} to {percent(high)}, " if low is not None else ""
    paper = f"   paper: {percent(published)}" if published is not None else ""
    print_text(
        f"test accuracy {percent(summary['mean'])}  "
        f"({interval}{plural(summary['n'], 'run')}){paper}",
        {r"(?<=accuracy )\S+": "bold"},
    )
