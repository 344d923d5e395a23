"""Compare what the code computes with the golden files.

A change that is meant: `python -m tests.golden.generate`, and commit the new file with its reason.
Tolerances are for processors, which add floating-point numbers in different orders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import kryograph as kg
from tests.golden.generate import GOLDEN, HERE, MODEL

TOLERANCES = {"train": 1e-6, "systems": 1e-6, "fit": 1e-4, "model": 1e-4}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums of floating-point numbers depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def differences(found: Any, golden: Any, tolerance: float, where: str = "") -> list[str]:
    """The places where two JSON values differ.

    Numbers, also those in cells of CSV, may differ by the tolerance, which is relative above 1.
    """
    if isinstance(golden, dict) and isinstance(found, dict):
        return [
            line
            for key in sorted(golden.keys() | found.keys())
            for line in (
                differences(found[key], golden[key], tolerance, f"{where}/{key}")
                if key in found and key in golden
                else [f"{where}/{key}: only {'found' if key in found else 'golden'}"]
            )
        ]
    if isinstance(golden, list) and isinstance(found, list):
        if len(golden) != len(found):
            return [f"{where}: {len(found)} entries, golden {len(golden)}"]
        pairs = enumerate(zip(found, golden, strict=True))
        return [d for i, (f, g) in pairs for d in differences(f, g, tolerance, f"{where}/{i}")]
    close = found == golden and type(found) is type(golden)
    if not close and tolerance and (numbers := decimals(found, golden)):
        close = abs(numbers[0] - numbers[1]) <= tolerance * max(1.0, abs(numbers[1]))
    return [] if close else [f"{where}: {found!r}, golden {golden!r}"]


def decimals(*values: object) -> list[float]:
    """The values as numbers if all are floats, or all are texts that can be read as numbers."""
    if all(type(value) is float for value in values):
        return [value for value in values if isinstance(value, float)]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return []
    try:
        return [float(text) for text in texts]
    except ValueError:
        return []


@pytest.mark.parametrize("name", GOLDEN)
def test_nothing_has_changed(name: str) -> None:
    golden = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    found = json.loads(json.dumps(GOLDEN[name]()))
    changed = differences(found, golden, TOLERANCES.get(name, 0.0))
    assert not changed, "\n".join(changed[:20])


def test_every_system_has_golden_values() -> None:
    for name in ("jobs", "systems"):
        assert json.loads((HERE / f"{name}.json").read_text("utf-8")).keys() == set(kg.SYSTEMS)


def test_the_golden_model_was_written_by_the_first_version() -> None:
    description = json.loads((MODEL / "model.json").read_text("utf-8"))
    assert (description["format"], description["kryograph"]) == (1, "0.1.0")


def test_a_change_is_found() -> None:
    golden = {"a": [1.0, "x", "0.5"], "b": None}
    assert differences({"a": [1.0 + 1e-7, "x", "0.50000001"], "b": None}, golden, 1e-6) == []
    assert differences([-12.390804], [-12.390806], 1e-6) == []
    assert differences({"a": [1.1, "y", "0.6"]}, golden, 1e-6) == [
        "/a/0: 1.1, golden 1.0",
        "/a/1: 'y', golden 'x'",
        "/a/2: '0.6', golden '0.5'",
        "/b: only golden",
    ]
    assert differences([1], [1.0], 1e-6) == ["/0: 1, golden 1.0"]
    assert differences([1, 2], [1], 1e-6) == [": 2 entries, golden 1"]
