"""A system's hyperparameters as a frozen record that knows what is allowed.

>>> @dataclass(frozen=True)
... class Example(Settings):
...     hidden: int = setting(64, "units", low=1)
>>> Example().replace({"hidden": "32"})
Example(hidden=32)

Search spaces: where each setting may be looked for, and how a trial of Optuna is asked for them.

>>> containing({"lr": SearchRange(1e-4, 1e-1, log=True)}, {"lr": 1e-5, "hidden": 64})
{'lr': SearchRange(low=1e-05, high=0.1, log=True)}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from kryograph.errors import UsageError, unknown

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class SearchRange:
    """Where to look for a number, both ends included; `log` if its order of magnitude matters."""

    low: float
    high: float
    log: bool = False


SearchValues: TypeAlias = SearchRange | tuple[Any, ...]
"""A range of numbers, or the values to try."""


def setting(
    default: Any,
    summary: str,
    *,
    low: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    search: SearchValues | None = None,
    unless: Any = None,
) -> Any:
    """A field of a settings record.

    Args:
        default: Its value unless it is changed; also fixes its type.
        summary: What it is, and where the default comes from.
        low: The value is at least this.
        below: The value is less than this.
        choices: The value is one of these.
        search: Where a search looks for a better one; nowhere if None.
        unless: Of a setting that a system did not always have: the value at which it is what it was
            before. There it says nothing, so that runs of before stay known by the same settings.
    """
    allowed = {"summary": summary, "low": low, "below": below, "choices": choices}
    more = {"search": search, "unless": unless}
    return dataclasses.field(default=default, metadata={**allowed, **more})


def inherited(record: type[Settings], name: str, default: Any, summary: str | None = None) -> Any:
    """The field of that name of another record, with a default, or a summary, of its own."""
    [field] = [field for field in dataclasses.fields(record) if field.name == name]
    own = {"summary": summary} if summary else {}
    return dataclasses.field(default=default, metadata={**field.metadata, **own})


@dataclass(frozen=True)
class Settings:
    """The base of all settings records: every value is checked when the record is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))

    def replace(self, changes: Mapping[str, object]) -> Self:
        """A copy with some values changed; text is read as the setting's own type."""
        fields = {field.name: field for field in dataclasses.fields(self)}
        values = {}
        for name, value in changes.items():
            if name not in fields:
                raise unknown("setting", name, fields)
            values[name] = _read(fields[name], value) if isinstance(value, str) else value
        return dataclasses.replace(self, **values)

    @classmethod
    def search_space(cls) -> dict[str, SearchValues]:
        """The settings that a search may change, and where it looks."""
        fields = dataclasses.fields(cls)
        return {f.name: f.metadata["search"] for f in fields if f.metadata.get("search")}

    def as_dict(self) -> dict[str, Any]:
        """Names and values."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Any]:
        """The same without what says nothing: what a run is known by, now and in later versions."""
        silent = {f.name: f.metadata.get("unless") for f in dataclasses.fields(self)}
        return {
            name: value
            for name, value in self.as_dict().items()
            if silent[name] is None or value != silent[name]
        }


def read_pairs(texts: Iterable[str]) -> dict[str, str]:
    """What a person wrote as NAME=VALUE, several times; empty texts say nothing.

    >>> read_pairs(["hidden=64", "lr = 0.1"])
    {'hidden': '64', 'lr': '0.1'}
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and text.strip():
            raise UsageError(f"A setting is written NAME=VALUE, such as hidden=64, not {text!r}.")
        if equals:
            values[name.strip()] = value.strip()
    return values


def _read(field: dataclasses.Field[Any], text: str) -> object:
    wanted, read = _READERS[type(field.default)]
    try:
        return read(text)
    except (KeyError, ValueError):
        raise UsageError(f"The setting {field.name!r} takes {wanted}, not {text!r}.") from None


_READERS: dict[type, tuple[str, Callable[[str], object]]] = {
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a word", str),
}


def _check(field: dataclasses.Field[Any], value: Any) -> None:
    kind = type(field.default)
    if not (type(value) is kind or (kind is float and type(value) is int)):
        raise UsageError(f"The setting {field.name!r} takes {_READERS[kind][0]}, not {value!r}.")
    choices, low, below = (field.metadata.get(k) for k in ("choices", "low", "below"))
    if choices is not None and value not in choices:
        raise unknown(f"value of the setting {field.name!r}", str(value), choices)
    # Written so that NaN fails, too.
    if (low is not None and not value >= low) or (below is not None and not value < below):
        limits = [f"at least {low:g}"] if low is not None else []
        limits += [f"less than {below:g}"] if below is not None else []
        raise UsageError(
            f"The setting {field.name!r} must be {' and '.join(limits)}; it is {value}."
        )


SearchSpace: TypeAlias = Mapping[str, SearchValues]


def sample_settings(trial: optuna.Trial, space: SearchSpace, settings: Settings) -> dict[str, Any]:
    """A value for every name in the space.

    Args:
        trial: Is asked.
        space: Where to look.
        settings: Some settings of the kind that is looked for: whole numbers stay whole.
    """
    values: dict[str, Any] = {}
    for name, where in space.items():
        if not isinstance(where, SearchRange):
            values[name] = trial.suggest_categorical(name, where)
        elif isinstance(getattr(settings, name), int):
            low, high = round(where.low), round(where.high)
            values[name] = trial.suggest_int(name, low, high, log=where.log)
        else:
            values[name] = trial.suggest_float(name, where.low, where.high, log=where.log)
    return values


def parsed(space: SearchSpace, given: Iterable[str], settings: Settings) -> dict[str, Any]:
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
        values[name.strip()] = _sample(name.strip(), value.strip(), where, settings)
    return values


def _sample(name: str, text: str, where: SearchValues, settings: Settings) -> Any:
    if isinstance(where, SearchRange):
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


def join_spaces(one: SearchValues, other: SearchValues) -> SearchValues:
    """What is in either, and between them if one is a range.

    >>> join_spaces((1, 2, 3), SearchRange(2, 15)), join_spaces(("rw",), ("sym", "rw"))
    (SearchRange(low=1, high=15, log=False), ('rw', 'sym'))
    """
    if not isinstance(one, SearchRange) and not isinstance(other, SearchRange):
        return tuple(dict.fromkeys((*one, *other)))
    parts = [
        each if isinstance(each, SearchRange) else SearchRange(min(each), max(each))
        for each in (one, other)
    ]
    low = min(part.low for part in parts)
    return SearchRange(low, max(part.high for part in parts), any(p.log for p in parts) and low > 0)


def containing(space: SearchSpace, values: Mapping[str, Any]) -> dict[str, SearchValues]:
    """The same space, widened where a value is outside; other names are passed over."""
    return {
        name: join_spaces(where, (values[name],)) if name in values else where
        for name, where in space.items()
    }
