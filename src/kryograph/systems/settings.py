"""Settings: the hyperparameters of a system, as a frozen record that checks its values.

>>> @dataclass(frozen=True)
... class Example(Settings):
...     hidden: int = setting(64, "units", low=1, search=SearchRange(16, 512, log=True))
>>> Example().replace({"hidden": "32"})
Example(hidden=32)

>>> Example.search_space()
{'hidden': SearchRange(low=16, high=512, log=True)}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from kryograph.errors import UsageError, check_known, unknown

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class SearchRange:
    """Numbers from `low` to `high`, both included; `log` if they are drawn by magnitude."""

    low: float
    high: float
    log: bool = False


SearchValues: TypeAlias = SearchRange | tuple[Any, ...]
"""Values that a search may try for one setting: a range of numbers, or a list of values."""

SearchSpace: TypeAlias = Mapping[str, SearchValues]
"""Values that a search may try, by the name of the setting."""


def setting(
    default: Any,
    summary: str,
    *,
    low: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    search: SearchValues | None = None,
    neutral: Any = None,
) -> Any:
    """Declare a field of a settings record.

    Args:
        default: Default value; its type is the type of the setting: bool, int, float or str.
        summary: Description of the setting and of where its default comes from.
        low: Smallest allowed value.
        below: Limit that the value must stay below.
        choices: Allowed values of a text; None means any text.
        search: Values that a search may try; None if searches leave the setting alone.
        neutral: Value at which a setting that was added later has no effect. At this value the
            setting is left out of the run's identity, so rows stored before it existed are still
            found. None for a setting that is always part of the identity.
    """
    limits = {"low": low, "below": below, "choices": choices}
    metadata = {"summary": summary, **limits, "search": search, "neutral": neutral}
    return dataclasses.field(default=default, metadata=metadata)


def inherited(record: type[Settings], name: str, default: Any, summary: str | None = None) -> Any:
    """Declare a setting of `record` again, with another default; None keeps its summary."""
    [field] = [field for field in dataclasses.fields(record) if field.name == name]
    metadata = {**field.metadata, "summary": summary or field.metadata["summary"]}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """Base of all settings records. A value that is not allowed is a `UsageError`."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))

    def replace(self, changes: Mapping[str, object]) -> Self:
        """Copy the record with some values changed; a text is read as the setting's type."""
        fields = {field.name: field for field in dataclasses.fields(self)}
        values = {}
        for name, value in changes.items():
            check_known("setting", name, fields)
            values[name] = _read(fields[name], value) if isinstance(value, str) else value
        return dataclasses.replace(self, **values)

    @classmethod
    def search_space(cls) -> dict[str, SearchValues]:
        """Settings that a search may change, with the values that it may try."""
        fields = dataclasses.fields(cls)
        return {f.name: f.metadata["search"] for f in fields if f.metadata.get("search")}

    def as_dict(self) -> dict[str, Any]:
        """Values of all settings by name."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Any]:
        """Settings that identify a run: all values except those at their neutral value."""
        neutral = {f.name: f.metadata.get("neutral") for f in dataclasses.fields(self)}
        return {
            name: value
            for name, value in self.as_dict().items()
            if neutral[name] is None or value != neutral[name]
        }


def read_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Read texts of the form NAME=VALUE; empty texts are ignored.

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


_READERS: dict[type, tuple[str, Callable[[str], object]]] = {
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a word", str),
}
"""For each type of a setting: its description in messages, and how a text is read."""


def _read(field: dataclasses.Field[Any], text: str) -> object:
    """Read the value of a setting from a text."""
    expected, read = _READERS[type(field.default)]
    try:
        return read(text)
    except (KeyError, ValueError):
        raise UsageError(f"The setting {field.name!r} takes {expected}, not {text!r}.") from None


def _check(field: dataclasses.Field[Any], value: Any) -> None:
    """Raise a `UsageError` if a setting may not have this value."""
    kind = type(field.default)
    if not (type(value) is kind or (kind is float and type(value) is int)):
        raise UsageError(f"The setting {field.name!r} takes {_READERS[kind][0]}, not {value!r}.")
    choices, low, below = (field.metadata.get(k) for k in ("choices", "low", "below"))
    if choices is not None and value not in choices:
        raise unknown(f"value of the setting {field.name!r}", str(value), choices)
    # The negated comparisons are true for NaN.
    if (low is not None and not value >= low) or (below is not None and not value < below):
        limits = [f"at least {low:g}"] if low is not None else []
        limits += [f"less than {below:g}"] if below is not None else []
        raise UsageError(
            f"The setting {field.name!r} must be {' and '.join(limits)}; it is {value}."
        )


def sample_settings(trial: optuna.Trial, space: SearchSpace, settings: Settings) -> dict[str, Any]:
    """Draw a value for every setting of a search space; `settings` tell which numbers are whole."""
    values: dict[str, Any] = {}
    for name, allowed in space.items():
        if not isinstance(allowed, SearchRange):
            values[name] = trial.suggest_categorical(name, allowed)
        elif isinstance(getattr(settings, name), int):
            low, high = round(allowed.low), round(allowed.high)
            values[name] = trial.suggest_int(name, low, high, log=allowed.log)
        else:
            values[name] = trial.suggest_float(name, allowed.low, allowed.high, log=allowed.log)
    return values
