"""`kryograph tune`: what a person types to find settings for a column, and what is shown of it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from kryograph.cli.console import State, note, out, searching, show_table
from kryograph.cli.reproduce import STORE, DataDir, StoreFile
from kryograph.data import load
from kryograph.data.catalogue import entry
from kryograph.data.splits import PUBLIC, one_split
from kryograph.errors import KryographError
from kryograph.experiments.tuned import Tuned, add_tuned, read_tuned, tuned_file
from kryograph.runs.job import Scenario
from kryograph.runs.workers import cores
from kryograph.systems.settings import parsed
from kryograph.text import duration, parse_duration, percent
from kryograph.tuning.database import open_database, sqlite_address, without_password
from kryograph.tuning.problem import FIRST_SEED, TuningProblem
from kryograph.tuning.study import SearchBudget, Study, Trial

TRIALS_SHOWN = 5
"""How many of the best trials are shown."""


def tune(
    system_name: Annotated[str, typer.Argument(metavar="SYSTEM", help="See `kryograph systems`.")],
    dataset: Annotated[str, typer.Option(help="See `kryograph datasets`.")] = "cora",
    split: Annotated[str | None, typer.Option(help="'public', the default.")] = None,
    label_rate: Annotated[
        str | None, typer.Option(help="Random splits instead: '1%' of each class, rounded up.")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(help="Random splits instead: this many nodes of each class.")
    ] = None,
    also: Annotated[
        str | None,
        typer.Option(help="Label rates that take the same settings, by commas: '0.5%,2%'."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="'validation' or 'no-validation': may training see validation labels? Trials are "
            "judged by them in both."
        ),
    ] = "validation",
    fix: Annotated[
        list[str] | None,
        typer.Option(help="A setting that is not searched: 'layers=1'. May be given again."),
    ] = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            help="Settings to try before any that the search proposes: 'lr=0.001,dropout=0.7', the "
            "others as in the default. May be given again.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(help="How many there are to be, those of earlier calls included.")
    ] = 100,
    timeout: Annotated[str, typer.Option(help="After that no more trial is begun.")] = "30m",
    seeds: Annotated[
        int, typer.Option(help=f"On how many splits each is run: {FIRST_SEED}, {FIRST_SEED + 1}, …")
    ] = 3,
    sampler: Annotated[
        str, typer.Option(help="'tpe' (Parzen estimators) or 'gp' (Gaussian processes).")
    ] = "tpe",
    budget: Annotated[
        str, typer.Option(help="Settings that would take longer per run are not tried.")
    ] = "1m",
    storage: Annotated[
        str | None,
        typer.Option(
            help="Database for the trials: postgresql://user:password@host/name, mysql+pymysql://… "
            "or sqlite:///file. Default: tuning.sqlite beside the store."
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option(help="Name in the database. Default: the system and column.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="How many trials at once. Default: one per core.")
    ] = None,
    store: StoreFile = STORE,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Find good settings by Bayesian optimisation, on validation labels only.

    It begins with the default, what the paper printed, what you --try, and what earlier searches
    found for other columns. The best become the tuned settings, in tuned.toml beside the store.
    Stop it whenever you like: the same command goes on where it was. The same command on several
    machines, with one --storage, shares the work.
    """
    column = Scenario(entry(dataset).name, one_split(split, label_rate, per_class), protocol)
    rates = [] if also is None else also.split(",")
    others = [replace(column, split=one_split(None, rate.strip(), None)) for rate in rates]
    at_once = cores() if jobs is None else jobs
    data = load(dataset, data_dir=data_dir, notify=note)
    known = read_tuned(tuned_file(store))
    problem = TuningProblem.of(system_name, data, column, seeds, known).requesting(tries or ())
    stay = parsed(problem.space, fix or (), problem.defaults)
    limits = parse_duration(timeout), parse_duration(budget)
    effort = SearchBudget(trials, *limits, sampler, at_once, stay)
    address = storage or sqlite_address(store.parent / "tuning.sqlite")
    with open_database(address) as database:
        search = Study(problem, database, study or f"{system_name}, {column}")
        note(f"Study {search.name!r} in {without_password(address)}.")
        added = _run(search, effort)
        found = _found(search, effort, added, store)
    for each in (column, *others):
        add_tuned(tuned_file(store), replace(found.tuned, column=each))
    _show(found, as_json)


def _run(search: Study, effort: SearchBudget) -> int:
    """Do the trials that are missing, and say how it goes; how many were done here."""
    there = search.finished()
    note(f"Trials: {len(there)} are there, {max(effort.trials - len(there), 0)} to do.")
    for source in search.enqueue(effort.seconds_per_run):
        note(
            f"The settings {source!r} are not tried: a run is predicted to take over "
            f"{duration(effort.seconds_per_run)} (--budget)."
        )
    begun, added, waiting = time.monotonic(), 0, False

    def wait() -> None:
        nonlocal waiting
        if not waiting:
            note("Waiting for trials of other processes, which may have been killed just now.")
        waiting = True

    with searching(effort.trials, len(there)) as tell:
        going = search.run(effort, lambda slot, epoch: tell.now(f"epoch {epoch.number}"), wait)
        try:
            with closing(going):
                for tried in going:
                    added += 1
                    tell.done(_said(tried), _state(search, effort, time.monotonic() - begun))
        except KeyboardInterrupt:
            note(
                f"Stopped: {len(search.finished())} of {effort.trials} trials are finished and "
                "kept. The same command goes on; with fewer --trials it takes the best so far."
            )
            raise
    return added


def _said(tried: Trial) -> str:
    whose = f" ({tried.source})" if tried.source else ""
    if tried.error:
        return f"number {tried.number}{whose} failed: {tried.error}"
    pruned = ", pruned" if tried.state == "pruned" else ""
    scores = f"{percent(tried.accuracy)} %" if tried.scores else "no score"
    return f"number {tried.number}{whose} {scores}{pruned}, {tried.seconds:.1f} s"


def _state(search: Study, effort: SearchBudget, elapsed: float) -> State:
    finished, best = search.finished(), search.best()
    left = (effort.trials - len(finished)) * fmean(t.seconds for t in finished) / effort.jobs
    if effort.timeout is not None:
        left = min(left, effort.timeout - elapsed)
    return State(len(finished), best[0].accuracy if best else None, max(left, 0.0))


@dataclass(frozen=True)
class TuneResult:
    """What a search has come to."""

    search: Study
    best: Sequence[Trial]
    starts: dict[str, Trial]
    counts: dict[str, int]
    tuned: Tuned
    file: Path

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        column = self.tuned.column
        return {
            "study": self.search.name,
            "system": self.tuned.system.name,
            "dataset": column.dataset,
            "split": column.split,
            "protocol": column.protocol,
            "seeds": [lesson.seed for lesson in self.search.problem.tasks],
            "trials": self.counts,
            "winner": self._trial(self.best[0]),
            "default": self._start("default"),
            "paper": self._start("paper"),
            "best": [self._trial(tried) for tried in self.best[:TRIALS_SHOWN]],
            "provenance": self.tuned.provenance,
            "file": str(self.file),
        }

    def _start(self, source: str) -> dict[str, Any] | None:
        tried = self.starts.get(source)
        return self._trial(tried) if tried else None

    def _trial(self, tried: Trial) -> dict[str, Any]:
        method = self.search.problem.system_at(tried.values)
        return {
            "number": tried.number,
            "source": tried.source or "search",
            "validation_accuracy": tried.accuracy,
            "scores": list(tried.scores),
            "operator": method.operator,
            "settings": method.settings.as_dict(),
        }


def _found(search: Study, effort: SearchBudget, added: int, store: Path) -> TuneResult:
    finished, best = search.finished(), search.best()
    if not best:
        errors = [tried.error for tried in finished if tried.error]
        why = f"the last failed with {errors[-1]!r}" if errors else "give a longer --timeout"
        raise KryographError(
            f"None of the {len(finished)} trials of the study {search.name!r} was finished: {why}."
        )
    states = [tried.state for tried in finished]
    counts = {state: states.count(state) for state in ("complete", "pruned", "failed")}
    counts |= {"over_budget": search.over_budget(), "here": added}
    problem, column = search.problem, search.problem.scenario
    runs = len(problem.tasks)
    provenance = (
        f"{_command(problem, effort)}: {effort.sampler}, {len(finished)} trials "
        f"({counts['pruned']} pruned, {counts['failed']} failed), each on {runs} "
        f"seed{'s' * (runs > 1)} from {FIRST_SEED}; number {best[0].number}"
        + (f", which is {best[0].source}" if best[0].source else "")
    )
    return TuneResult(
        search,
        best,
        {tried.source: tried for tried in reversed(best) if tried.source in problem.starts},
        counts,
        Tuned(
            problem.system_at(best[0].values), column, best[0].accuracy, provenance, column.split
        ),
        tuned_file(store),
    )


def _command(problem: TuningProblem, effort: SearchBudget) -> str:
    """What leads to the same search; where its trials are kept is nobody else's business."""
    column = problem.scenario
    split = (
        f"--split {column.split}"
        if column.split == PUBLIC
        else f"--label-rate {column.split}"
        if column.split.endswith("%")
        else f"--per-class {column.split.split()[0]}"
    )
    return (
        f"kryograph tune {problem.name} --dataset {column.dataset} {split} "
        f"--protocol {column.protocol} --trials {effort.trials} --seeds {len(problem.tasks)} "
        f"--sampler {effort.sampler} --budget {effort.seconds_per_run:g}s"
        + "".join(f" --fix {name}={value}" for name, value in effort.fixed.items())
        + "".join(f" {source}" for source in problem.requested)
    )


def _show(found: TuneResult, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
        return
    problem = found.search.problem
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.counts.items())
    out.print(
        f"[bold]{problem.name}[/] on [bold]{problem.scenario}[/]; trials: {counts}", soft_wrap=True
    )
    kept = [*found.best[:TRIALS_SHOWN]]
    kept += [tried for tried in found.starts.values() if tried not in kept]
    names = list(problem.space)
    rows = [
        [
            tried.source or "search",
            str(tried.number),
            percent(tried.accuracy),
            " ".join(percent(score) for score in tried.scores),
            *(_setting_text(tried.values[name]) for name in names),
        ]
        for tried in kept
    ]
    show_table(["settings", "trial", "validation %", "of each seed", *names], rows)
    winner = found.best[0]
    beside = "".join(
        f", {source} {percent(tried.accuracy)} %" for source, tried in found.starts.items()
    )
    out.print(
        f"winner: trial {winner.number}, validation accuracy [bold]{percent(winner.accuracy)}[/] %"
        f"{beside}; it is in {found.file} as the tuned settings",
        soft_wrap=True,
    )


def _setting_text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
