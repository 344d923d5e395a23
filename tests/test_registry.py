"""The registry, with real plug-ins: folders with a module and a *.dist-info on the path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.registry import Registry

Install = Callable[..., None]


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


def test_a_builtin_name_is_looked_up_without_plugins(
    things: Registry[object], install: Install
) -> None:
    install("plug_a", "table", "raise RuntimeError('imported')")
    assert things["chair"] == "ours"
    assert things.failures == {}


def test_a_plugin_is_listed_after_the_builtin_names(
    things: Registry[object], install: Install
) -> None:
    install("plug_b", "table", "THING = 'theirs'")
    assert list(things) == ["chair", "table"]
    assert len(things) == 2
    assert things.find("table") == "theirs"
    assert things.distribution("table") == ("plug_b", "1.2")
    assert things.distribution("chair") is None


def test_a_builtin_name_wins_over_a_plugin(things: Registry[object], install: Install) -> None:
    install("plug_c", "chair", "THING = 'theirs'")
    assert list(things) == ["chair"]
    assert things["chair"] == "ours"


def test_a_plugin_that_fails_is_named_and_stops_nothing(
    things: Registry[object], install: Install
) -> None:
    install("plug_d", "table", "raise RuntimeError('no licence')")
    install("plug_e", "lamp", "THING = 'lamp'")
    assert sorted(things) == ["chair", "lamp"]
    with pytest.raises(UsageError, match=r"plug_d cannot be loaded \(RuntimeError: no licence\)"):
        things.find("table")


def test_two_plugins_with_one_name_are_refused(things: Registry[object], install: Install) -> None:
    install("plug_f", "table", "THING = 1")
    install("plug_g", "table", "THING = 2")
    with pytest.raises(UsageError, match=r"plug_[fg] and plug_[fg]"):
        list(things)


def test_an_unknown_name_gets_near_misses(things: Registry[object]) -> None:
    with pytest.raises(UsageError, match="Unknown thing 'chiar': did you mean 'chair'"):
        things.find("chiar")
    assert "chiar" not in things
    with pytest.raises(KeyError):
        things["chiar"]


def test_a_name_is_given_once() -> None:
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
