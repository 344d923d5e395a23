"""The search space of `kryograph tune`: our ranges of settings, joined with those of the paper.

The paper optimised its own three systems over its ranges and took the numbers of the others from
elsewhere. For its three systems the space is therefore the union of both ranges, for the others it
is ours alone. The paper's ranges are those of its text except for weight decay: 50 of its 81
published settings exceed the stated 0.01, and all are within the 0.05 of an earlier draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kryograph.errors import UsageError, unknown
from kryograph.experiments.published import published
from kryograph.operators import OPERATORS
from kryograph.systems import SYSTEMS, System
from kryograph.systems.settings import SearchRange, SearchSpace, SearchValues, Settings

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
    record = SYSTEMS.find(name).settings_type
    space = record.search_space()
    if any(row.system == name for row in published()):
        for setting in record().as_dict():
            if setting in PAPER_RANGES:
                paper = PAPER_RANGES[setting]
                space[setting] = join_spaces(space[setting], paper) if setting in space else paper
    if SYSTEMS[name].uses_operator:
        space["operator"] = tuple(o for o, kind in OPERATORS.items() if kind.searched)
    for start in starts:
        space = widen_space(space, {**start.settings.as_dict(), "operator": start.operator})
    if not space:
        raise UsageError(f"The system {name} has no setting that a search could change.")
    return space


def join_spaces(first: SearchValues, second: SearchValues) -> SearchValues:
    """All values of both; if one is a range, the smallest range that contains both.

    >>> join_spaces((1, 2, 3), SearchRange(2, 15)), join_spaces(("rw",), ("sym", "rw"))
    (SearchRange(low=1, high=15, log=False), ('rw', 'sym'))
    """
    if not isinstance(first, SearchRange) and not isinstance(second, SearchRange):
        return tuple(dict.fromkeys((*first, *second)))
    ranges = [
        values if isinstance(values, SearchRange) else SearchRange(min(values), max(values))
        for values in (first, second)
    ]
    low, high = min(r.low for r in ranges), max(r.high for r in ranges)
    return SearchRange(low, high, any(r.log for r in ranges) and low > 0)


def widen_space(space: SearchSpace, values: Mapping[str, Any]) -> dict[str, SearchValues]:
    """Widen a search space so that it contains these values; names outside of it are ignored."""
    return {
        name: join_spaces(allowed, (values[name],)) if name in values else allowed
        for name, allowed in space.items()
    }


def parse_values(space: SearchSpace, texts: Iterable[str], settings: Settings) -> dict[str, Any]:
    """Read values such as "lr=0.01"; one outside of the search space is a `UsageError`.

    >>> from kryograph.systems.gcn import GCNSettings
    >>> parse_values(GCNSettings.search_space(), ["hidden=32", "lr=0.01"], GCNSettings())
    {'hidden': 32, 'lr': 0.01}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in space:
            raise unknown("setting", name, space)
        values[name] = _read_in_space(name, value, space[name], settings)
    return values


def _read_in_space(name: str, text: str, allowed: SearchValues, settings: Settings) -> Any:
    """Read the value of one setting, which must be among the allowed values."""
    if isinstance(allowed, SearchRange):
        kind = int if isinstance(getattr(settings, name), int) else float
        try:
            if allowed.low <= kind(text) <= allowed.high:
                return kind(text)
        except ValueError:
            pass
        limits = f"from {allowed.low:g} to {allowed.high:g}"
        raise UsageError(f"The setting {name!r} is searched {limits}, not {text!r}.")
    for value in allowed:
        if str(value).lower() == text.lower():
            return value
    raise UsageError(
        f"The setting {name!r} is one of {', '.join(map(str, allowed))}, not {text!r}."
    )
