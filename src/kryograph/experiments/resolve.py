"""Settings of a run: the default ones, the published ones, or those that a search found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from kryograph.data.splits import LEAKY
from kryograph.errors import UsageError, unknown
from kryograph.experiments.published import Published, find_published, paper_settings
from kryograph.experiments.result_tables import Cell
from kryograph.experiments.tuned import Tuned, find_tuned
from kryograph.runs.job import Job, Scenario
from kryograph.systems import SYSTEMS, System, system

SETTINGS_CHOICES = ("default", "paper", "tuned", "best")
"""`default`; `paper`: the published settings; `tuned`: those that a search found for the scenario;
`best`: the tuned settings, or the default if there are none."""

TooLong: TypeAlias = Callable[[Job], bool]
"""Function that says whether a run with published settings would take too long."""


def cell_settings(
    name: str,
    scenario: Scenario,
    choice: str,
    tuned: Iterable[Tuned],
    too_long: TooLong | None = None,
) -> Job | None:
    """Job with seed 0 that has the settings of a cell; None if the cell has no such settings.

    Args:
        name: The name of the system.
        scenario: The scenario of the cell.
        choice: One of `SETTINGS_CHOICES`. "paper" is the default where nothing is published;
            "tuned" has no substitute.
        tuned: Results of searches.
        too_long: If published settings take too long, the best settings are used, and the source
            says so; None if no run takes too long.
    """
    if choice not in SETTINGS_CHOICES:
        raise unknown("kind of settings", choice, SETTINGS_CHOICES)
    # A leak is measured with the settings of the scenario without a leak that it is compared with.
    honest = replace(scenario, split=scenario.split.removesuffix(LEAKY))
    result = find_tuned(name, honest, tuned)
    default = Job(system(name), "default", scenario)
    best = Job(result.system, "tuned", scenario) if result else default
    if choice == "tuned":
        return best if result else None
    if choice == "best":
        return best
    row = find_published(name, honest) if choice == "paper" else None
    if row is None:
        return default
    paper = Job(system(name, row.settings, operator=row.operator), "paper", scenario)
    if too_long is not None and too_long(paper):
        source = f"{best.settings_source}, as the paper's are over budget"
        return replace(best, settings_source=source)
    return paper


def settings_to_run(
    name: str,
    scenario: Scenario,
    choice: str,
    tuned: Iterable[Tuned],
    too_long: TooLong | None = None,
) -> list[Job]:
    """Jobs with seed 0, one for each setting that a cell is run with; its own settings come first.

    If training sees validation labels, these decide what is best: the default, the published
    settings unless they take too long, and the results of all searches on the data set are run on
    every split, and `cells.gather` takes the run with the highest validation accuracy. A leak is
    measured with one setting, so that nothing else differs. Arguments are those of `cell_settings`.
    """
    tuned = tuple(tuned)
    own = cell_settings(name, scenario, choice, tuned, too_long)
    if own is None:
        return []
    if choice != "best" or not scenario.sees_validation or scenario.split.endswith(LEAKY):
        return [own]
    jobs = [own, Job(system(name), "default", scenario)]
    paper = cell_settings(name, scenario, "paper", tuned, too_long)
    if paper is not None and paper.settings_source == "paper":
        jobs.append(paper)
    for result in tuned:
        if result.system.name == name and result.scenario.dataset == scenario.dataset:
            jobs.append(Job(result.system, f"tuned for {result.scenario}", scenario))
    first = {job.system: job for job in reversed(jobs)}  # of equal systems the first job is kept
    return [job for job in jobs if first[job.system] is job]


def cell_jobs(
    cells: Iterable[Cell],
    choice: str,
    tuned: Iterable[Tuned],
    too_long: TooLong | None = None,
) -> list[Job]:
    """Jobs with seed 0 of some cells of a result table, one for each setting of each cell.

    Raises:
        UsageError: If no cell has such settings.
    """
    tuned = tuple(tuned)
    jobs = [
        job
        for cell in cells
        for job in settings_to_run(cell.system, cell.scenario, choice, tuned, too_long)
    ]
    if not jobs:
        raise UsageError("None of these cells has tuned settings: use --settings best.")
    return jobs


@dataclass(frozen=True)
class ResolvedSettings:
    """A system with the settings that the options of the command line select."""

    system: System
    source: str
    """Where the settings come from, with the names of settings that were changed."""
    published: Published | None
    """What the paper prints for the system and the scenario; None if nothing."""


def resolve_settings(
    name: str,
    scenario: Scenario,
    choice: str = "default",
    changes: Mapping[str, object] | None = None,
    operator: str | None = None,
    read_tuned: Callable[[], Iterable[Tuned]] = tuple,
) -> ResolvedSettings:
    """Build the system for a scenario from the options of the command line.

    Args:
        name: The name of the system.
        scenario: The scenario that it will be run in.
        choice: One of `SETTINGS_CHOICES`; settings that do not exist are an error.
        changes: Settings that override those of the source.
        operator: Diffusion operator that overrides that of the source.
        read_tuned: Reads the results of searches; called only if the choice needs them.
    """
    SYSTEMS.find(name)  # an unknown name is an error
    find = paper_settings if choice == "paper" else find_published
    published = find(name, scenario)
    tuned = read_tuned() if choice in ("tuned", "best") else ()
    job = cell_settings(name, scenario, choice, tuned)
    if job is None:
        raise UsageError(
            f"No search has found settings of {name} for {scenario}: use --settings best, or "
            "search with `kryograph tune`."
        )
    settings, source = job.system.settings, job.settings_source
    if changes:
        settings = settings.replace(changes)
        source = f"{source}, with changed {', '.join(changes)}"
    method = system(name, settings, operator=operator or job.system.operator)
    return ResolvedSettings(method, source, published)
