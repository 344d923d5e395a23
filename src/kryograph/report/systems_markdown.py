"""All systems as Markdown: docs/systems.md, generated from their records."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from kryograph.systems import SYSTEMS, System
from kryograph.systems.settings import SearchRange, SearchValues

HEAD = """\
# Systems

This page is the output of `kryograph systems --markdown`; a test compares the two.
`kryograph train --system NAME` trains a system, and `--set NAME=VALUE` changes one of its settings.
The last column of each table has the values that a search for settings tries.
Accuracies are in [results](results.md).
Deviations from the publications are in [theory](theory.md).
"""


def systems_markdown() -> str:
    """Text of docs/systems.md: a table of contents, then one section for each system."""
    contents = [f"| [`{name}`](#{name}) | {cls.summary} |" for name, cls in SYSTEMS.items()]
    table = "\n".join(["| system | what it does |", "|---|---|", *contents])
    return "\n".join([HEAD, table, "", *("\n".join(_section(cls)) for cls in SYSTEMS.values())])


def _section(cls: type[System]) -> Iterator[str]:
    yield from (f"## {cls.name}", "", f"{cls.summary} {cls.paper}.", "")
    yield from ("```", cls.equation, "```", "")
    traits = {
        "uses only the edges": cls.uses_features,
        "has its own operator": cls.uses_operator,
        "has no randomness": cls.uses_seed,
    }
    if not all(traits.values()):
        yield from (f"It {', '.join(text for text, usual in traits.items() if not usual)}.", "")
    yield from ("| setting | default | what it is | search |", "|---|---|---|---|")
    for field in dataclasses.fields(cls.settings_type):
        summary = field.metadata["summary"].replace("|", "\\|")
        choices = field.metadata.get("choices")
        if choices and not all(choice in summary for choice in choices):
            summary += f" ({', '.join(choices)})"
        yield f"| `{field.name}` | {setting_value(field.default)} | {summary} | {_search(field)} |"
    yield ""


def setting_value(value: object) -> str:
    """Format a value of a setting.

    >>> [setting_value(value) for value in (True, 0.0100, 3, "relu")]
    ['true', '0.01', '3', 'relu']
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _search(field: dataclasses.Field[Any]) -> str:
    """Values that a search tries; a dash if it leaves the setting alone."""
    values: SearchValues | None = field.metadata.get("search")
    if values is None:
        return "–"
    if isinstance(values, SearchRange):
        return f"{values.low:g} to {values.high:g}" + ", log" * values.log
    return ", ".join(setting_value(value) for value in values)
