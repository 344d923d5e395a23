from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.errors import UsageError
from kryograph.experiments.tuned import Tuned, add_tuned, find_tuned, read_tuned
from kryograph.runs.job import Scenario
from kryograph.systems import system

COLUMN = Scenario("cora", "1%", "validation")
OTHER = Scenario("cora", "3%", "validation")
FOUND = Tuned(
    system("truncated-krylov", {"hidden": 100, "classifier": True}, operator="rw"),
    COLUMN,
    0.75,
    'kryograph tune "x", 40 trials',
    "1%",
)


def test_what_is_added_is_read_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tuned.toml"
    add_tuned(path, Tuned(FOUND.system, COLUMN, 0.5, "before"))
    add_tuned(path, Tuned(FOUND.system, OTHER, 0.5, "other"))
    add_tuned(path, FOUND)
    mine = [each for each in read_tuned(path) if each.provenance in (FOUND.provenance, "other")]
    assert sorted(mine, key=lambda t: t.provenance) == [
        FOUND,
        Tuned(FOUND.system, OTHER, 0.5, "other"),
    ]
    assert [entry.name for entry in path.parent.iterdir()] == ["tuned.toml"]


def test_ones_own_come_first(tmp_path: Path) -> None:
    path = tmp_path / "tuned.toml"
    add_tuned(path, FOUND)
    assert find_tuned("truncated-krylov", COLUMN, read_tuned(path)) == FOUND


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[[tuned]]", "[[tunde]]", "Unknown key 'tunde'"),
        ("operator =", "opertor =", "Unknown key 'opertor'"),
        ('operator = "rw"\n', "", "The key 'operator' is missing"),
        ("truncated-krylov", "truncated", "Unknown system 'truncated'"),
        ("hidden = 100", "hidden = -1", "'hidden' must be at least 1"),
        ("hidden =", "hiden =", "Unknown setting 'hiden'"),
        ("[[tuned]]", "[[tuned", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "tuned.toml"
    add_tuned(path, FOUND)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=said) as raised:
        read_tuned(path)
    assert "tuned.toml" in str(raised.value)
