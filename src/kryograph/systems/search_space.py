"""Search spaces: where each setting may be looked for, and how a trial of Optuna is asked for them.

>>> containing({"lr": Range(1e-4, 1e-1, log=True)}, {"lr": 1e-5, "hidden": 64})
{'lr': Range(low=1e-05, high=0.1, log=True)}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kryograph.errors import UsageError, unknown
from kryograph.systems.settings import Range, Search, Settings

if TYPE_CHECKING:
    import optuna

Space: TypeAlias = Mapping[str, Search]


def suggest(trial: optuna.Trial, space: Space, settings: Settings) -> dict[str, Any]:
    """A value for every name in the space.

    Args:
        trial: Is asked.
        space: Where to look.
        settings: Some settings of the kind that is looked for: whole numbers stay whole.
    """
    values: dict[str, Any] = {}
    for name, where in space.items():
        if not isinstance(where, Range):
            values[name] = trial.suggest_categorical(name, where)
        elif isinstance(getattr(settings, name), int):
            low, high = round(where.low), round(where.high)
            values[name] = trial.suggest_int(name, low, high, log=where.log)
        else:
            values[name] = trial.suggest_float(name, where.low, where.high, log=where.log)
    return values


def parsed(space: Space, given: Iterable[str], settings: Settings) -> dict[str, Any]:
    """The values in a space that texts such as "lr=0.01" give.

    >>> from kryograph.systems.gcn import GCNSettings
    >>> parsed(GCNSettings.search_space(), ["hidden=32", "lr=0.01"], GCNSettings())
    {'hidden': 32, 'lr': 0.01}
    """
    values: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        where = space.get(name.strip())
        if where is None:
            raise unknown("setting", name.strip(), space)
        values[name.strip()] = _value(name.strip(), value.strip(), where, settings)
    return values


def _value(name: str, text: str, where: Search, settings: Settings) -> Any:
    if isinstance(where, Range):
        kind = int if isinstance(getattr(settings, name), int) else float
        try:
            number = kind(text)
        except ValueError:
            number = kind(where.low) - 1
        if where.low <= number <= where.high:
            return number
        raise UsageError(f"{name} is searched from {where.low:g} to {where.high:g}, not {text!r}.")
    for value in where:
        if str(value).lower() == text.lower():
            return value
    raise UsageError(f"{name} is one of {', '.join(map(str, where))}, not {text!r}.")


def joined(one: Search, other: Search) -> Search:
    """What is in either, and between them if one is a range.

    >>> joined((1, 2, 3), Range(2, 15)), joined(("rw",), ("sym", "rw"))
    (Range(low=1, high=15, log=False), ('rw', 'sym'))
    """
    if not isinstance(one, Range) and not isinstance(other, Range):
        return tuple(dict.fromkeys((*one, *other)))
    parts = [
        each if isinstance(each, Range) else Range(min(each), max(each)) for each in (one, other)
    ]
    low = min(part.low for part in parts)
    return Range(low, max(part.high for part in parts), any(p.log for p in parts) and low > 0)


def containing(space: Space, values: Mapping[str, Any]) -> dict[str, Search]:
    """The same space, widened where a value is outside; other names are passed over."""
    return {
        name: joined(where, (values[name],)) if name in values else where
        for name, where in space.items()
    }
