"""Tuned settings: what searches on validation labels found, as data.

`tuned.toml` comes with kryograph. `kryograph tune` adds to a file of the same form beside the
results store; where both know a system and a column, the person's own is used.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kryograph.errors import UsageError, unknown
from kryograph.files import read_text, replaced
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS, System, system

_KEYS = (
    *("system", "dataset", "split", "protocol", "operator", "settings"),
    *("validation_accuracy", "provenance"),
)
_OPTIONAL = ("searched",)


@dataclass(frozen=True)
class Tuned:
    """The best that a search found for a system in a column, and how."""

    system: System
    column: Scenario
    validation_accuracy: float
    """Mean over the splits of the search, none of which a table is measured on."""
    provenance: str
    """The command, the sampler, how many trials."""
    searched: str | None = None
    """The split that the search ran on, and its accuracy is of; not always the column's own."""


def tuned_file(store: Path) -> Path:
    """The person's own tuned settings, beside a results store."""
    return store.parent / "tuned.toml"


def read_tuned(own: Path | None = None) -> tuple[Tuned, ...]:
    """All that is known; a person's own, in that file if it exists, come first."""
    mine = _parse(read_text(own), str(own)) if own is not None and own.exists() else ()
    return (*mine, *_packaged())


@cache
def _packaged() -> tuple[Tuned, ...]:
    text = resources.files(__package__).joinpath("tuned.toml").read_text("utf-8")
    return _parse(text, "tuned.toml")


def find_tuned(name: str, column: Scenario, among: Iterable[Tuned]) -> Tuned | None:
    """That of a system and a column, if there is one."""
    for each in among:
        if each.system.name == name and each.column == column:
            return each
    return None


def add_tuned(path: Path, found: Tuned) -> None:
    """Put it into a file, in the place of what that had for the same system and column."""
    there = _parse(read_text(path), str(path)) if path.exists() else ()
    kept = [t for t in there if (t.system.name, t.column) != (found.system.name, found.column)]
    with replaced(path) as new:
        new.write_text("\n".join(_written(each) for each in [*kept, found]), "utf-8")


def _written(found: Tuned) -> str:
    column, method = found.column, found.system
    values = {
        "system": method.name,
        "dataset": column.dataset,
        "split": column.split,
        "protocol": column.protocol,
        "operator": method.operator,
        "validation_accuracy": round(found.validation_accuracy, 4),
        "provenance": found.provenance,
    }
    if found.searched is not None:
        values["searched"] = found.searched
    # JSON's texts, numbers and truth values are TOML's.
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    settings = method.settings.as_dict().items()
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in settings)
    return "\n".join(["[[tuned]]", *lines, f"settings = {{ {pairs} }}", ""])


def _parse(text: str, where: str) -> tuple[Tuned, ...]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}.") from None
    try:
        for key in data:
            if key != "tuned":
                raise unknown("key", key, ["tuned"])
        return tuple(_entry(each) for each in data.get("tuned", []))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _entry(given: Mapping[str, Any]) -> Tuned:
    for key in given:
        if key not in _KEYS + _OPTIONAL:
            raise unknown("key", key, _KEYS + _OPTIONAL)
    for key in _KEYS:
        if key not in given:
            raise UsageError(f"The key {key!r} is missing.")
    name = given["system"]
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    return Tuned(
        system(name, given["settings"], operator=given["operator"]),
        Scenario(given["dataset"], given["split"], given["protocol"]),
        float(given["validation_accuracy"]),
        given["provenance"],
        given.get("searched"),
    )
