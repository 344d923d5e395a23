"""The registry, with real plug-ins: folders with a module and a *.dist-info on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.registry import Registry

Install = Callable[..., None]
SHARED: Registry[object] = Registry("thing", "example.things")
"""A registry that the module of a plug-in can reach."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with one entry point of the group `example.things` on the path."""

    def write(distribution: str, name: str, source: str) -> None:
        folder = tmp_path / distribution
        info = folder / f"{distribution}-1.2.dist-info"
        info.mkdir(parents=True)
        (folder / f"{distribution}.py").write_text(source)
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[example.things]\n{name} = {distribution}:THING\n")
        monkeypatch.syspath_prepend(folder)

    return write


@pytest.fixture
def things() -> Registry[object]:
    registry: Registry[object] = Registry("thing", "example.things")
    registry.add("chair", "ours")
    return registry


def test_builtin_name_is_looked_up_without_reading_entry_points(
    things: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kryograph.registry.entry_points", None)
    assert things["chair"] == "ours"
    assert "chair" in things
    assert things.find("chair") == "ours"
    with pytest.raises(TypeError):
        list(things)


def test_plugin_is_listed_after_builtin_names(things: Registry[object], install: Install) -> None:
    install("plug_b", "table", "THING = 'theirs'")
    assert list(things) == ["chair", "table"]
    assert len(things) == 2
    assert things.find("table") == "theirs"
    assert things.distribution("table") == ("plug_b", "1.2")
    assert things.distribution("chair") is None


def test_lookup_loads_only_the_plugin_of_that_name(
    things: Registry[object], install: Install
) -> None:
    install("plug_h", "table", "THING = 'table'")
    install("plug_i", "lamp", "THING = 'lamp'")
    assert things["table"] == "table"
    assert "plug_h" in sys.modules
    assert "plug_i" not in sys.modules


def test_builtin_name_wins_over_plugin(things: Registry[object], install: Install) -> None:
    install("plug_c", "chair", "raise RuntimeError('imported')")
    assert list(things) == ["chair"]
    assert things["chair"] == "ours"
    assert things.failures == {}
    assert things.distribution("chair") is None


def test_plugin_that_fails_is_recorded_and_stops_nothing(
    things: Registry[object], install: Install
) -> None:
    install("plug_d", "table", "raise RuntimeError('no licence')")
    install("plug_e", "lamp", "THING = 'lamp'")
    assert sorted(things) == ["chair", "lamp"]
    assert things.failures.keys() == {"table"}
    message = (
        r"The thing 'table' of the plug-in plug_d cannot be loaded "
        r"\(RuntimeError: no licence\): repair or uninstall plug_d"
    )
    with pytest.raises(UsageError, match=message):
        things.find("table")


def test_plugin_that_fails_after_it_registered_is_not_listed(install: Install) -> None:
    source = (
        "from tests import test_registry\n"
        "test_registry.SHARED.add('table', object())\n"
        "raise RuntimeError('too late')\n"
    )
    install("plug_j", "table", source)
    assert list(SHARED) == []
    assert "too late" in SHARED.failures["table"]


def test_two_plugins_with_one_name_are_refused_and_others_work(
    things: Registry[object], install: Install
) -> None:
    install("plug_f", "table", "THING = 1")
    install("plug_g", "table", "THING = 2")
    assert list(things) == ["chair"]
    with pytest.raises(UsageError, match=r"'table' is provided by plug_[fg] and plug_[fg]"):
        things.find("table")


def test_plugin_that_was_imported_before_has_its_distribution(install: Install) -> None:
    registry: Registry[object] = Registry("thing", "example.things")
    install("plug_k", "table", "class THING: pass")
    module = importlib.import_module("plug_k")
    registry.add("table", module.THING)  # as a decorator does
    assert registry.distribution("table") == ("plug_k", "1.2")
    assert list(registry) == ["table"]


def test_check_refuses_what_a_plugin_offers(install: Install) -> None:
    def check(name: str, value: object) -> None:
        if not isinstance(value, str):
            raise TypeError(f"{name} is not a text")

    registry: Registry[str] = Registry("thing", "example.things", check)
    install("plug_l", "table", "THING = 7")
    assert list(registry) == []
    assert "TypeError: table is not a text" in registry.failures["table"]


def test_unknown_name_gets_near_misses(things: Registry[object]) -> None:
    with pytest.raises(UsageError, match="Unknown thing 'chiar': did you mean 'chair'"):
        things.find("chiar")
    assert "chiar" not in things
    with pytest.raises(KeyError):
        things["chiar"]


def test_name_is_used_once() -> None:
    registry: Registry[type] = Registry("thing", "example.things")

    def defined() -> type:
        class Thing:
            pass

        return Thing

    registry.add("thing", defined())
    registry.add("thing", again := defined())  # the same definition, run twice
    assert registry["thing"] is again
    with pytest.raises(UsageError, match="There is a thing 'thing' already"):
        registry.add("thing", int)
    registry.remove("thing")
    registry.add("thing", int)
    assert registry["thing"] is int
