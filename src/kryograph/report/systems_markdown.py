"""The catalogue of systems as Markdown, made from what the systems say of themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from kryograph.systems import SYSTEMS, System
from kryograph.systems.settings import SearchRange, SearchValues

HEAD = """\
# Systems

Made by `kryograph systems --markdown`; a test compares the two. Every system is asked for by its
name (`kryograph train --system NAME`), its settings are changed by `--set NAME=VALUE`, and a search
looks for better ones where the last column says so. How the systems do: [results](results.md);
where they differ from what was published: the deviations in [theory](theory.md).
"""


def systems_markdown() -> str:
    """All systems: a table of contents, then one section each."""
    contents = [f"| [`{name}`](#{name}) | {cls.summary} |" for name, cls in SYSTEMS.items()]
    table = "\n".join(["| system | what it does |", "|---|---|", *contents])
    return "\n".join([HEAD, table, "", *("\n".join(_section(cls)) for cls in SYSTEMS.values())])


def _section(cls: type[System]) -> Iterator[str]:
    yield from (f"## {cls.name}", "", f"{cls.summary} {cls.paper}.", "")
    yield from ("```", cls.equation, "```", "")
    traits = [
        "" if cls.uses_features else "looks at the edges only",
        "" if cls.uses_operator else "has an operator of its own",
        "" if cls.uses_seed else "draws nothing at random",
    ]
    if any(traits):
        yield from (f"It {', '.join(filter(None, traits))}.", "")
    yield from ("| setting | default | what it is | search |", "|---|---|---|---|")
    for field in dataclasses.fields(cls.settings_type):
        summary = field.metadata["summary"].replace("|", "\\|")
        choices = field.metadata.get("choices")
        if choices and not all(choice in summary for choice in choices):
            summary += f" ({', '.join(choices)})"
        yield f"| `{field.name}` | {_value(field.default)} | {summary} | {_search(field)} |"
    yield ""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _search(field: dataclasses.Field[Any]) -> str:
    where: SearchValues | None = field.metadata.get("search")
    if where is None:
        return "–"
    if isinstance(where, SearchRange):
        return f"{where.low:g} to {where.high:g}" + ", log" * where.log
    return ", ".join(_value(value) for value in where)
