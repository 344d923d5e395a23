"""Tuned settings: results of searches on validation labels, kept in TOML files.

`tuned.toml` comes with kryograph. `kryograph tune` adds to a file of the same form beside the
results store. If both have an entry for a system and a scenario, that of the user is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from kryograph.errors import unknown
from kryograph.experiments.result_tables import check_keys
from kryograph.files import parse_toml, read_text, replaced
from kryograph.runs.job import Scenario
from kryograph.systems import SYSTEMS, System, system

_KEYS = {
    *("system", "dataset", "split", "protocol", "operator", "settings"),
    *("validation_accuracy", "provenance"),
}


@dataclass(frozen=True)
class Tuned:
    """Best settings that a search found for a system.

    Args:
        system: The system with these settings.
        scenario: The scenario that the settings are for.
        validation_accuracy: Mean over the splits of the search, which no result table uses.
        provenance: Command, sampler and number of trials of the search.
        searched: Kind of split of the search, which may differ from that of `scenario`; None if
            it is not known.
    """

    system: System
    scenario: Scenario
    validation_accuracy: float
    provenance: str
    searched: str | None = None


def tuned_file(store: Path) -> Path:
    """Path of the user's own tuned settings, beside a results store."""
    return store.parent / "tuned.toml"


def read_tuned(own: Path | None = None) -> tuple[Tuned, ...]:
    """All tuned settings; those of the file `own`, if it exists, come first."""
    return (*_read(own), *_packaged()) if own else _packaged()


@cache
def _packaged() -> tuple[Tuned, ...]:
    text = resources.files(__package__).joinpath("tuned.toml").read_text("utf-8")
    return _parse(text, "tuned.toml")


def _read(path: Path) -> tuple[Tuned, ...]:
    return _parse(read_text(path), str(path)) if path.exists() else ()


def find_tuned(name: str, scenario: Scenario, among: Iterable[Tuned]) -> Tuned | None:
    """The first entry for a system and a scenario; None if there is none."""
    return next((t for t in among if (t.system.name, t.scenario) == (name, scenario)), None)


def add_tuned(path: Path, tuned: Tuned) -> None:
    """Write an entry to a file; it replaces those for the same system and scenario."""
    key = tuned.system.name, tuned.scenario
    kept = [other for other in _read(path) if (other.system.name, other.scenario) != key]
    with replaced(path) as new:
        new.write_text("\n".join(map(_toml, [*kept, tuned])), "utf-8")


def _toml(tuned: Tuned) -> str:
    scenario, method = tuned.scenario, tuned.system
    values = {
        "system": method.name,
        "dataset": scenario.dataset,
        "split": scenario.split,
        "protocol": scenario.protocol,
        "operator": method.operator,
        "validation_accuracy": round(tuned.validation_accuracy, 4),
        "provenance": tuned.provenance,
    }
    if tuned.searched is not None:
        values["searched"] = tuned.searched
    # JSON writes strings, numbers and booleans as TOML does.
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    settings = method.settings.as_dict().items()
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in settings)
    return "\n".join(["[[tuned]]", *lines, f"settings = {{ {pairs} }}", ""])


def _parse(text: str, location: str) -> tuple[Tuned, ...]:
    def convert(data: Mapping[str, Any]) -> tuple[Tuned, ...]:
        check_keys(data, set(), {"tuned"})
        return tuple(_entry(entry) for entry in data.get("tuned", []))

    return parse_toml(text, location, convert)


def _entry(entry: Mapping[str, Any]) -> Tuned:
    check_keys(entry, _KEYS, {"searched"})
    name = entry["system"]
    if name not in SYSTEMS:
        raise unknown("system", name, SYSTEMS)
    return Tuned(
        system(name, entry["settings"], operator=entry["operator"]),
        Scenario(entry["dataset"], entry["split"], entry["protocol"]),
        float(entry["validation_accuracy"]),
        entry["provenance"],
        entry.get("searched"),
    )
