"""`kryograph tune`: search settings for a scenario."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

from kryograph.cli import options
from kryograph.cli.console import Progress, note, print_json, print_table, print_text
from kryograph.lazy import lazy_imports
from kryograph.text import duration, parse_duration, percent

with lazy_imports():
    from kryograph import data, runs
    from kryograph.experiments import tuned
    from kryograph.training import loop
    from kryograph.tuning import database, outcome, problem, space, study


def tune(
    system_name: options.SystemArgument,
    dataset: options.DatasetName = "cora",
    split: options.SplitName = None,
    label_rate: options.LabelRate = None,
    per_class: options.PerClass = None,
    also: Annotated[
        str | None,
        options.option(
            "--also", "RATES", "Other label rates that get the same settings: '0.5%,2%'."
        ),
    ] = None,
    protocol: options.ProtocolName = "validation",
    fix: Annotated[
        list[str] | None,
        options.option("--fix", "NAME=VALUE", "Fix a setting: 'layers=1'; may be repeated."),
    ] = None,
    tries: Annotated[
        list[str] | None,
        options.option(
            "--try",
            "NAME=VALUE",
            "Settings to try first: 'lr=0.001,dropout=0.7', the others as in the default; may be "
            "repeated.",
        ),
    ] = None,
    trials: Annotated[
        int, options.count("--trials", "Number of trials in the study, earlier ones included.")
    ] = 100,
    timeout: Annotated[
        str, options.time_limit("--timeout", "Start no trial after this time.")
    ] = "30m",
    seeds: Annotated[
        int, options.count("--seeds", "Number of splits on which a trial is run.")
    ] = 3,
    sampler: Annotated[
        str,
        options.choice(
            "--sampler",
            "sampler",
            ("tpe", "gp"),
            "'tpe' (Parzen estimators) or 'gp' (Gaussian processes).",
        ),
    ] = "tpe",
    budget: Annotated[
        str, options.time_limit("--budget", "Do not try settings with a longer predicted run.")
    ] = "1m",
    storage: Annotated[
        str | None,
        options.option(
            "--storage",
            "URL",
            "Database of the trials: postgresql://user:password@host/name, mysql+pymysql://… "
            "or sqlite:///file. Default: tuning.sqlite beside the store.",
        ),
    ] = None,
    study_name: Annotated[
        str | None,
        options.option("--study", "NAME", "Name in the database. Default: system and scenario."),
    ] = None,
    jobs: options.Jobs = None,
    store: options.StoreFile = options.STORE,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
) -> None:
    """Search settings of a system by Bayesian optimisation.

    A trial is judged by validation labels only. The first trials have the default settings, the
    published ones, those of --try and the tuned ones of other scenarios. The best settings are
    written to tuned.toml beside the store, where `--settings tuned` reads them. After Ctrl-C the
    same command continues the search; several machines with one --storage share it.
    """
    scenario = runs.Scenario(
        data.find_source(dataset).name, data.one_split(split, label_rate, per_class), protocol
    )
    similar = [
        replace(scenario, split=data.one_split(None, rate, None))
        for rate in options.split_commas(also)
    ]
    loaded = data.load(dataset, data_dir=data_dir, notify=note)
    tuned_file = tuned.tuned_file(store)
    searched = problem.TuningProblem.of(
        system_name, loaded, scenario, seeds, tuned.read_tuned(tuned_file)
    ).requesting(tries or ())
    search_budget = study.SearchBudget(
        trials,
        parse_duration(timeout),
        parse_duration(budget),
        sampler,
        jobs or runs.cores(),
        space.parse_values(searched.space, fix or (), searched.defaults),
    )
    address = storage or database.sqlite_address(store.parent / "tuning.sqlite")
    with database.open_database(address) as opened:
        search = study.Study(searched, opened, study_name or f"{system_name}, {scenario}")
        note(f"Study {search.name!r} in {database.without_password(address)}.")
        added = _run(search, search_budget)
        result = outcome.search_outcome(search, search_budget, added)
    for target in (scenario, *similar):
        tuned.add_tuned(tuned_file, replace(result.tuned, scenario=target))
    if as_json:
        print_json(result.as_dict() | {"file": str(tuned_file)})
    else:
        _print_outcome(result, tuned_file)


def _run(search: study.Study, budget: study.SearchBudget) -> int:
    """Run the missing trials and display progress; return how many were run by this process."""
    present = len(search.finished())
    note(f"Trials: {present} finished, {max(budget.trials - present, 0)} to do.")
    for source in search.enqueue(budget.seconds_per_run):
        note(
            f"The settings {source!r} are not tried: a run is predicted to take over "
            f"{duration(budget.seconds_per_run)} (--budget)."
        )
    start, added = time.monotonic(), 0

    @cache  # so that the line is printed once
    def wait() -> None:
        note("Waiting for trials of other processes, which may have been killed just now.")

    with Progress(budget.trials, present, unit="trials") as progress:

        def on_epoch(slot: int, epoch: loop.Epoch) -> None:
            progress.working(slot, f"epoch {epoch.number}")

        try:
            with closing(search.run(budget, on_epoch, wait)) as trials:
                for trial in trials:
                    added += 1
                    finished, best = search.finished(), search.best()
                    elapsed = time.monotonic() - start
                    left = duration(outcome.search_seconds_left(finished, budget, elapsed))
                    progress.finished(
                        None,
                        _trial_text(trial),
                        (f"best {percent(best[0].accuracy)} %, " if best else "")
                        + f"about {left} left",
                        failed=trial.error is not None,
                        completed=len(finished),
                    )
        except KeyboardInterrupt:
            note(
                f"Stopped: {len(search.finished())} of {budget.trials} trials are finished and "
                "kept. The same command continues; with fewer --trials it uses the best one so far."
            )
            raise
    return added


def _trial_text(trial: study.Trial) -> str:
    source = f" ({trial.source})" if trial.source else ""
    if trial.error:
        return f"trial {trial.number}{source} failed: {trial.error}"
    pruned = ", pruned" if trial.state == "pruned" else ""
    score = f"{percent(trial.accuracy)} %" if trial.scores else "no score"
    return f"trial {trial.number}{source}: {score}{pruned}, {trial.seconds:.1f} s"


def _print_outcome(result: outcome.SearchOutcome, tuned_file: Path) -> None:
    problem, winner = result.study.problem, result.best[0]
    counts = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in result.counts.items())
    print_text(f"{problem.name} on {problem.scenario}; trials: {counts}", {"^[^;]+": "bold"})
    names = list(problem.space)
    print_table(
        ["settings", "trial", "validation %", "per seed", *names],
        [
            [
                trial.source or "search",
                str(trial.number),
                percent(trial.accuracy),
                " ".join(percent(score) for score in trial.scores),
                *(
                    f"{v:.4g}" if isinstance(v, float) else str(v)
                    for v in map(trial.values.get, names)
                ),
            ]
            for trial in result.listed
        ],
    )
    others = "".join(f", {name} {percent(t.accuracy)} %" for name, t in result.starts.items())
    print_text(
        f"winner: trial {winner.number}, validation accuracy {percent(winner.accuracy)} %{others}; "
        f"its settings were added to {tuned_file}",
        {r"(?<=accuracy )\S+": "bold"},
    )
