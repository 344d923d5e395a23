from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kryograph.basis import to_dense
from kryograph.errors import UsageError
from kryograph.labelling import LabelledGraph
from kryograph.labelling.table_columns import (
    columns_named,
    empty_cell,
    stored_recipe,
    value_of_cell,
)
from kryograph.systems import system
from tests.labelling.explained import from_table, labelled_graph

FAST = system("diffused-logistic")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> LabelledGraph:
    return from_table(tmp_path_factory.mktemp("people"), [FAST])


def names(labelled: LabelledGraph, column: str) -> list[str]:
    assert labelled.feature_names is not None
    return [labelled.feature_names[f] for f in columns_named(labelled, column)]


def test_the_recipe_comes_from_the_model(people: LabelledGraph) -> None:
    recipe = stored_recipe(people)
    assert recipe is not None
    assert recipe.features == people.feature_names
    assert stored_recipe(labelled_graph(systems=[FAST], n=60)) is None


def test_a_column_has_all_its_features_and_a_feature_has_itself(people: LabelledGraph) -> None:
    assert names(people, "age") == ["age"]
    assert names(people, "country") == ["country = DK", "country = NO", "country = SE"]
    assert names(people, "country = NO") == ["country = NO"]
    assert "word gene" in names(people, "about")
    with pytest.raises(UsageError, match="no feature 'cuntry': did you mean 'country'"):
        columns_named(people, "cuntry")


def test_features_without_a_table_are_called_by_number() -> None:
    labelled = labelled_graph("numbers", [FAST], n=60)
    assert columns_named(labelled, "feature 2") == [2]
    with pytest.raises(UsageError, match="no feature 'feature 9'"):
        columns_named(labelled, "feature 9")


def test_a_value_becomes_the_features_that_it_would_have_had(
    people: LabelledGraph, tmp_path: Path
) -> None:
    x, rows = to_dense(people.graph.features), people_rows(tmp_path)
    for node in (4, 44):
        for column in ("age", "country", "about"):
            numbers, entries, notes = value_of_cell(people, column, rows[node][column])
            np.testing.assert_allclose(entries, x[node, numbers], atol=1e-12)
            assert notes == []


def people_rows(folder: Path) -> list[dict[str, str]]:
    import csv

    from_table(folder, [FAST])
    with (folder / "nodes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_empty_cell_has_the_type_of_its_column() -> None:
    assert empty_cell("age", ["age", "word gene"]).to_pylist() == [""]
    vector = empty_cell("place", ["place[0]", "place[1]"])
    assert vector.to_pylist() == [None]
    assert str(vector.type) == "list<item: double>"


def test_a_category_that_the_model_has_not_seen_is_a_note(people: LabelledGraph) -> None:
    _, entries, notes = value_of_cell(people, "country", "XX")
    assert entries.tolist() == [0.0, 0.0, 0.0]
    assert len(notes) == 1
    assert "not seen" in notes[0]


def test_values_that_cannot_be_are_refused(people: LabelledGraph) -> None:
    with pytest.raises(UsageError, match=r"column 'age'.*'old' is not a number"):
        value_of_cell(people, "age", "old")
    with pytest.raises(UsageError, match="uses no column 'topic'"):
        value_of_cell(people, "topic", "a")
