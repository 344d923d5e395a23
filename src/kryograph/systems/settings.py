"""A system's hyperparameters as a frozen record that knows what is allowed.

>>> @dataclass(frozen=True)
... class Example(Settings):
...     hidden: int = setting(64, "units", low=1)
>>> Example().replace({"hidden": "32"})
Example(hidden=32)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from kryograph.errors import UsageError, unknown


@dataclass(frozen=True)
class Range:
    """Where to look for a number, both ends included; `log` if its order of magnitude matters."""

    low: float
    high: float
    log: bool = False


Search: TypeAlias = Range | tuple[Any, ...]
"""A range of numbers, or the values to try."""


def setting(
    default: Any,
    summary: str,
    *,
    low: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    search: Search | None = None,
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
    def search_space(cls) -> dict[str, Search]:
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
