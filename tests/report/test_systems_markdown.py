from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kryograph.report.systems_markdown import systems_markdown
from kryograph.systems import SYSTEMS


def test_the_catalogue_in_the_documentation_is_what_the_systems_say() -> None:
    written = Path(__file__).parents[2] / "docs" / "systems.md"
    assert written.read_text(encoding="utf-8") == systems_markdown()


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_catalogue_has_everything_that_a_system_says(name: str) -> None:
    cls = SYSTEMS[name]
    [section] = [part for part in systems_markdown().split("\n## ") if part.startswith(f"{name}\n")]
    for said in (cls.summary, cls.paper, cls.equation):
        assert said in section
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{field.name}`" for field in dataclasses.fields(cls.settings_type)]
