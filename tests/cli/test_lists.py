from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kryograph.data import DATASETS
from kryograph.data.sources import RawFiles
from kryograph.systems import SYSTEMS

Inside = Callable[..., tuple[str, str]]


@pytest.mark.parametrize(("command", "there"), [("systems", SYSTEMS), ("datasets", DATASETS)])
def test_lists(inside: Inside, command: str, there: dict[str, Any]) -> None:
    out, err = inside(command, "--json")
    found = json.loads(out)
    assert [entry["name"] for entry in found] == list(there)
    assert [entry["summary"] for entry in found] == [each.summary for each in there.values()]
    assert err == ""
    plain, _ = inside(command)
    for name, each in there.items():
        assert f"{name} " in plain
        assert each.summary.split()[0] in plain


def test_what_is_there_is_not_fetched_again(
    real_files: dict[str, RawFiles], inside: Inside
) -> None:
    out, err = inside("data", "fetch", "citeseer", "synthetic")
    assert out == ""
    folder = real_files["citeseer"].folder
    assert err.startswith(f"citeseer: 8 files in {folder}, from ")
    assert len(err.splitlines()) == 1
