from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kryograph.data.tables import Tables
from kryograph.data.tables.recipe import Recipe
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.text import ignore_progress
from tests.data.tables.examples import (
    dense,
    learned,
    read,
    sheet,
    words,
)


def test_an_empty_column_is_ignored() -> None:
    columns, features, notes = learned(sheet(x=["1", "2"], nothing=["", " "]))
    assert columns.ignored == ("nothing",)
    assert features.shape == (2, 1)
    assert notes == ["The column 'nothing' of nodes.csv is empty and was ignored."]


def test_no_block_drowns_another() -> None:
    table = sheet(
        income=["10000", "20000", "90000", "1"],
        colour=["red", "blue", "red", "red"],
        title=["one two three four five six", "one", "two", ""],
    )
    columns, features, _ = learned(table, text=("title",))
    blocks = features[:, :1], features[:, 1:3], features[:, 3:]
    for block in blocks:
        assert np.linalg.norm(block, axis=1).mean() == pytest.approx(0.2)
    assert len(columns.features) == features.shape[1]


def test_the_recipe_survives_json() -> None:
    table = sheet(
        **words(50, 20),
        age=[str(at / 7) for at in range(50)],
        kind=["ü", "é"] * 25,
        title=["one", "two"] * 25,
    )
    ids = [str(at) for at in range(50)]
    columns, features, _ = learned(table, text=("title",))
    again = Recipe.from_json(json.loads(json.dumps(columns.to_json(), allow_nan=False)))
    assert again == columns
    np.testing.assert_array_equal(dense(again.apply(table, ids, ignore_progress)[0]), features)


GOOD = learned(sheet(x=["1", "2"], kind=["a", "b"], title=["one", "two"]), text=("title",))[
    0
].to_json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 2),
        ("format", None),
        ("numbers", "x"),
        ("numbers", [1]),
        ("means", [float("nan")]),
        ("means", ["x"]),
        ("means", []),
        ("idf", [1.0]),
        ("factors", [1.0, 2.0]),
        ("categories", {"kind": 3}),
        ("categories", [["kind"]]),
        ("categories", [["x", ["a"]]]),
        ("label", 3),
        ("text", None),
    ],
)
def test_a_damaged_recipe_is_refused(name: str, value: object) -> None:
    Recipe.from_json(GOOD)
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json({**GOOD, name: value})
    fewer = {key: kept for key, kept in GOOD.items() if key != name}
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json(fewer)


def test_a_recipe_that_is_no_dictionary_is_refused() -> None:
    for found in (None, [], "x", 3):
        with pytest.raises(UsageError, match="not one that this version knows"):
            Recipe.from_json(found)


TRAIN = "id,age,colour,title,topic\na,1,red,one two,x\nb,3,blue,two,y\nc,5,red,three,\n"


@pytest.fixture
def trained(tmp_path: Path) -> Tables:
    return read(tmp_path, "a,b\nb,c\n", TRAIN, label="topic", text=["title"])


def test_the_recipe_gives_the_same_features_again(trained: Tables, tmp_path: Path) -> None:
    again = read(tmp_path, "a,b\nb,c\n", TRAIN, columns=trained.columns)
    assert again.graph.fingerprint == trained.graph.fingerprint
    assert again.classes == ("x", "y")
    assert again.columns is trained.columns


def test_a_table_of_another_order_and_one_row(trained: Tables, tmp_path: Path) -> None:
    other = "title,age,colour,id\ntwo,3,blue,zz\n"
    tables = read(tmp_path, None, other, columns=trained.columns)
    assert tables.graph.names == ("zz",)
    expected = sp.csr_array(trained.graph.features).toarray()[1]
    np.testing.assert_array_equal(sp.csr_array(tables.graph.features).toarray()[0], expected)
    assert tables.labels.tolist() == [UNKNOWN]


def test_missing_columns_are_named(trained: Tables, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lacks the columns 'colour', 'title', which the model"):
        read(tmp_path, None, "id,age\na,1\n", columns=trained.columns)
    with pytest.raises(UsageError, match=r"lacks the column 'title', which"):
        read(tmp_path, None, "id,age,colour\na,1,red\n", columns=trained.columns)


def test_extra_columns_and_unseen_categories_are_ignored_with_a_count(
    trained: Tables, tmp_path: Path
) -> None:
    nodes = "id,age,colour,title,mood,size\na,1,green,x y,good,1\nb,,pink,z,bad,2\nc,2,,z,bad,2\n"
    tables = read(tmp_path, None, nodes, columns=trained.columns)
    said = " ".join(tables.notes)
    assert "2 columns of" in said
    assert "'mood', 'size'" in said
    assert "2 cells in column 'colour' with a category that the model has not seen" in said
    assert "1 empty cell in column 'colour'" in said
    assert "1 empty cell in column 'age' filled with its mean" in said
    features = sp.csr_array(tables.graph.features).toarray()
    assert features.shape[1] == trained.graph.features.shape[1]
    assert not features[1].any()  # the mean age, no known colour, no known word


def test_a_number_that_was_text_is_refused_at_its_place(trained: Tables, tmp_path: Path) -> None:
    nodes = "id,age,colour,title\na,old,red,x\nb,older,red,x\n"
    with pytest.raises(UsageError, match=r"line 2, column 'age': 'old' is not a number"):
        read(tmp_path, None, nodes, columns=trained.columns)


def test_nodes_without_features_are_known_by_their_ids(tmp_path: Path) -> None:
    first = read(tmp_path, "a,b\nb,c\n", None)
    again = read(tmp_path, "c,b\nb,a\na,new\n", None, columns=first.columns)
    assert again.graph.names == ("c", "b", "a", "new")
    expected = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert sp.csr_array(again.graph.features).toarray().tolist() == expected
    assert any(note.startswith("1 node without features") for note in again.notes)


def test_a_label_that_is_asked_for_must_be_there(trained: Tables, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no column 'topic' of labels"):
        read(
            tmp_path,
            None,
            "id,age,colour,title\na,1,red,x\n",
            label="topic",
            columns=trained.columns,
        )
