"""Which settings a run has: the default's, the paper's, or what a search found for its column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kryograph.data.splits import LEAKY
from kryograph.errors import UsageError, unknown
from kryograph.experiments.published import find_published, paper_settings
from kryograph.experiments.tuned import Tuned, find_tuned
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS, System, system

SETTINGS_CHOICES = ("default", "paper", "tuned", "best")
"""The settings that a run can have."""


def cell_settings(
    name: str,
    column: Scenario,
    which: str,
    tuned: Iterable[Tuned],
    too_long: Callable[[System], bool] = lambda method: False,
) -> tuple[System, str] | None:
    """The settings of a cell and their source, which goes into every row; None if it has none.

    Args:
        name: The system.
        column: The column.
        which: "default"; "paper": those published, the default where there are none; "tuned": those
            that a search found, and nothing else; "best": those, or the default.
        tuned: What searches have found.
        too_long: Whether a published setting would take too long; then it is replaced by the tuned
            one, or by the default, and the source says so.
    """
    if which not in SETTINGS_CHOICES:
        raise unknown("kind of settings", which, SETTINGS_CHOICES)
    # A leak is measured by the same settings as the honest column that it is compared with.
    column = replace(column, split=column.split.removesuffix(LEAKY))
    found = find_tuned(name, column, tuned)
    default = (system(name), "default")
    best = (found.system, "tuned") if found else default
    if which == "tuned":
        return best if found else None
    if which == "best":
        return best
    row = find_published(name, column) if which == "paper" else None
    if row is None:
        return default
    paper = system(name, row.settings, operator=row.operator)
    if too_long(paper):
        return best[0], f"{best[1]}, as the paper's are over budget"
    return paper, "paper"


def settings_to_run(
    name: str,
    column: Scenario,
    which: str,
    tuned: Iterable[Tuned],
    too_long: Callable[[System], bool] = lambda method: False,
) -> list[tuple[System, str]]:
    """All settings that a cell is run with, its own first; none if it has none.

    Where a run sees validation labels, "best" is decided by these: on every split the default's,
    the published ones unless they take too long, and all that searches found on the data set are
    run, and `cells.gather` takes those whose validation accuracy is the highest. A leak is measured
    by one setting, so that nothing else differs.
    """
    tuned = tuple(tuned)
    own = cell_settings(name, column, which, tuned, too_long)
    if own is None:
        return []
    if which != "best" or column.protocol != "validation" or column.split.endswith(LEAKY):
        return [own]
    found = [own, (system(name), "default")]
    paper = cell_settings(name, column, "paper", tuned, too_long)
    if paper is not None and paper[1] == "paper":
        found.append(paper)
    for each in tuned:
        if each.system.name == name and each.column.dataset == column.dataset:
            found.append((each.system, f"tuned for {each.column}"))
    return [pair for k, pair in enumerate(found) if pair[0] not in [m for m, _ in found[:k]]]


def resolve_settings(
    name: str,
    column: Scenario,
    which: str = "default",
    changes: Mapping[str, object] | None = None,
    operator: str | None = None,
    tuned: Iterable[Tuned] = (),
) -> tuple[System, str]:
    """A system for a column as a person asks for it, and where its settings come from.

    Args:
        name: A registered system.
        column: What it will be run on.
        which: As in `chosen`, but what is not there is an error.
        changes: Settings that the person wants otherwise.
        operator: One that the person wants instead of that of the settings.
        tuned: What searches have found.
    """
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    if which == "paper":
        paper_settings(name, column)
    found = cell_settings(name, column, which, tuned)
    if found is None:
        raise UsageError(
            f"No search has found settings of {name} for {column}: use --settings best, or make "
            "one with `kryograph tune`."
        )
    method, source = found
    settings = method.settings.replace(changes or {})
    if changes:
        source = f"{source}, with changed {', '.join(changes)}"
    return system(name, settings, operator=operator or method.operator), source
