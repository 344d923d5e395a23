from __future__ import annotations

from pathlib import Path

import pytest

from kryograph.data.tables.faults import TableFaults
from kryograph.data.tables.opening import Session, open_edges, open_table
from kryograph.data.tables.options import Reading, TableOptions
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.sheet import Sheet
from kryograph.text import ignore_progress
from tests.data.tables.examples import sheet


def session(options: TableOptions, recipe: Recipe | None = None) -> Session:
    return Session(options, recipe, as_dataset=False, progress=ignore_progress)


def test_edges_may_be_one_table_or_several() -> None:
    assert open_edges(None) == []
    assert open_edges("a.csv") == ["a.csv"]
    assert open_edges(["a.csv", "b.csv"]) == ["a.csv", "b.csv"]


def test_faults_of_files_are_collected(tmp_path: Path) -> None:
    current = session(TableOptions())
    assert open_table(tmp_path / "no.csv", "edges", current, alone=True) is None
    assert open_table(7, "nodes", current, alone=True) is None
    with pytest.raises(TableFaults) as raised:
        current.faults.raise_if_any(current.plan)
    assert str(raised.value).count("\n") == 2


def test_words_for_empty_cells_hold_in_every_table() -> None:
    current = session(TableOptions(missing=["?"]))
    table = open_table({"id": ["a", "?", "NA"]}, "nodes", current, alone=True)
    assert isinstance(table, Sheet)
    assert table.text("id").to_pylist() == ["a", "", "NA"]


def test_roles_that_only_a_model_names_may_be_missing() -> None:
    model = TableOptions(source="from", target="to", weight="none", repeat="max")
    recipe = Recipe(None, None, (), (), (), Reading(model, {}, {}))
    current = session(TableOptions(target="whom"), recipe)
    assert current.options.repeat == "max"
    options = current.options_for(sheet(who=["a"], whom=["b"]))
    assert (options.source, options.target, options.weight) == (None, "whom", "none")
    options = current.options_for(sheet(**{"from": ["a"], "whom": ["b"]}))
    assert options.source == "from"
