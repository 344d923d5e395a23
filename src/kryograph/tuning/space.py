"""The search space of `kryograph tune`: our ranges of settings, joined with those of the paper.

The paper optimised its own three systems over its ranges and took the numbers of the others from
elsewhere. For its three systems the space is therefore the union of both ranges, for the others it
is ours alone. The paper's ranges are those of its text except for weight decay: 50 of its 81
published settings exceed the stated 0.01, and all are within the 0.05 of an earlier draft.
"""

from __future__ import annotations

from collections.abc import Iterable

from kryograph.errors import UsageError, unknown
from kryograph.experiments.published import published
from kryograph.operators import OPERATORS
from kryograph.systems import SYSTEMS, System
from kryograph.systems.settings import SearchRange, SearchValues, containing, join_spaces

PAPER_RANGES: dict[str, SearchValues] = {
    "lr": SearchRange(1e-6, 5e-3, log=True),
    "weight_decay": SearchRange(1e-5, 5e-2, log=True),
    "hidden": SearchRange(50, 5000, log=True),
    "layers": SearchRange(1, 15),
    "dropout": SearchRange(0, 0.99),
    "order": SearchRange(4, 30),
    "optimizer": ("rmsprop", "adam"),
    "classifier": (False, True),
}
"""Ranges of the paper by the names of our settings. The text does not mention the last two: the
published settings differ in the optimiser, and equation and code differ in the classifier (D2)."""


def search_space(name: str, starts: Iterable[System] = ()) -> dict[str, SearchValues]:
    """Build the ranges in which the settings of a system, and its operator, are searched.

    Args:
        name: The name of the system.
        starts: Systems whose settings must lie in the space. Some published settings lie outside
            of the ranges that the paper states.

    >>> search_space("truncated-krylov")["order"], search_space("gcn")["operator"]
    (SearchRange(low=2, high=30, log=False), ('sym', 'rw'))
    """
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    record = SYSTEMS[name].settings_type
    space = record.search_space()
    if any(row.system == name for row in published()):
        for setting in record().as_dict():
            if setting in PAPER_RANGES:
                paper = PAPER_RANGES[setting]
                space[setting] = join_spaces(space[setting], paper) if setting in space else paper
    if SYSTEMS[name].uses_operator:
        space["operator"] = tuple(o for o, kind in OPERATORS.items() if kind.searched)
    for start in starts:
        space = containing(space, {**start.settings.as_dict(), "operator": start.operator})
    if not space:
        raise UsageError(f"The system {name} has no setting that a search could change.")
    return space
