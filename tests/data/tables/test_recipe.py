from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data.tables import Tables
from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.data.tables.options import Reading, TableOptions
from kryograph.data.tables.recipe import Recipe
from kryograph.data.tables.sheet import Sheet
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

KINDS = {
    "x": "number",
    "new": "boolean",
    "opened": "date",
    "place": "vector",
    "kind": "category",
    "title": "text",
}
EDGE_KINDS = {"amount": "number", "currency": "category"}


def people(rows: int) -> Sheet:
    """A column of each kind, with empty cells in most."""
    return sheet(
        x=[str(at / 7) if at % 5 else "" for at in range(rows)],
        new=["yes" if at % 3 else "no" for at in range(rows)],
        opened=[f"19{69 + at % 2}-02-{1 + at % 28:02d}" if at % 4 else "" for at in range(rows)],
        place=[[at, 1.0] if at % 6 else None for at in range(1, rows + 1)],
        kind=["ü" if at % 2 else "é" for at in range(rows)],
        title=["one two" if at % 2 else "three" for at in range(rows)],
    )


def payments(rows: int) -> EdgeAttributes:
    """An edge between each node and the next one."""
    ends = np.arange(rows)
    columns = sheet(
        amount=[str(at * 10) for at in range(rows)], currency=["NOK", "EUR"] * (rows // 2)
    )
    return EdgeAttributes(np.stack([ends, (ends + 1) % rows]), columns, EDGE_KINDS)


@pytest.mark.parametrize("kind", ["number", "boolean", "date", "category"])
def test_an_empty_column_is_ignored(kind: str) -> None:
    table = sheet(x=["1", "2"], nothing=["", " "])
    columns, features, notes = learned(table, {"x": "number", "nothing": kind})
    assert columns.unused == ("nothing",)
    assert columns.used == ("x",)
    assert features.shape == (2, 1)
    assert notes == ["The column 'nothing' of nodes.csv is empty and was ignored."]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (pa.nulls(2, pa.list_(pa.float64())), "vector"),
        (pa.nulls(2, pa.date32()), "date"),
        (pa.nulls(2, pa.bool_()), "boolean"),
        (pa.nulls(2), "number"),
    ],
)
def test_an_empty_column_of_any_type_is_ignored(cells: pa.Array, kind: str) -> None:
    columns, _, _ = learned(sheet(x=["1", "2"], nothing=cells), {"x": "number", "nothing": kind})
    assert columns.unused == ("nothing",)


def test_no_block_drowns_another() -> None:
    columns, features, _ = learned(people(40), KINDS, edges=payments(40))
    widths = [len(block.features) for block in columns.blocks]
    parts = np.split(features, np.cumsum(widths)[:-1], axis=1)
    lengths = [np.linalg.norm(part, axis=1).mean() for part in parts if part.shape[1]]
    assert len(lengths) == 8
    np.testing.assert_allclose(lengths, 0.2)
    assert len(columns.features) == features.shape[1]


def test_a_block_of_noise_leaves_the_classes_apart() -> None:
    """32 numbers of noise beside one category that names the class for nine of ten nodes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    seen = np.where(rng.random(400) < 0.9, truth, 1 - truth)
    table = sheet(kind=np.array(["a", "b"])[seen], noise=rng.normal(size=(400, 32)).tolist())
    _, features, _ = learned(table, {"kind": "category", "noise": "vector"})
    ridge = features[:200].T @ features[:200] + 0.1 * np.eye(features.shape[1])
    weights = np.linalg.solve(ridge, features[:200].T @ (2.0 * truth[:200] - 1))
    accuracy = ((features[200:] @ weights > 0) == truth[200:]).mean()
    assert accuracy == pytest.approx((seen == truth)[200:].mean(), abs=0.03)


OPTIONS = TableOptions(source="from", target="to", missing=("NA",), date=("born=day-first",))


def test_the_recipe_survives_json() -> None:
    edges = payments(50)
    for table, kinds in ((people(50), KINDS), (sheet(**words(50, 20)), None)):
        ids = [str(at) for at in range(50)]
        columns, features, _ = learned(table, kinds, edges=edges)
        columns = replace(columns, reading=Reading(OPTIONS, {"age": "number"}, {"n": "number"}))
        again = Recipe.from_json(json.loads(json.dumps(columns.to_json(), allow_nan=False)))
        assert again == columns
        np.testing.assert_array_equal(
            dense(again.apply(table, ids, ignore_progress, edges)[0]), features
        )


CELLS = {
    "number": st.one_of(st.just(""), st.floats(-1e6, 1e6).map(str)),
    "boolean": st.sampled_from(["", "yes", "no"]),
    "date": st.one_of(st.just(""), st.dates().map(str)),
    "category": st.sampled_from(["", "a", "b", "1"]),
    "text": st.text(max_size=20).map(lambda cell: f"word {cell}"),
    "vector": st.one_of(st.none(), st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)),
}


@given(st.data(), st.integers(1, 12))
def test_what_is_learned_is_applied_again(data: st.DataObject, rows: int) -> None:
    cells = {
        kind: data.draw(st.lists(cell, min_size=rows, max_size=rows), kind)
        for kind, cell in CELLS.items()
    }
    cells["vector"] = pa.array(cells["vector"], pa.list_(pa.float64()))
    ends = data.draw(st.lists(st.integers(0, rows - 1), min_size=2 * rows, max_size=2 * rows))
    edges = EdgeAttributes(
        np.array(ends).reshape(2, rows),
        sheet(amount=cells["number"], currency=cells["category"]),
        EDGE_KINDS,
    )
    ids = [str(row) for row in range(rows)]
    columns, features, _ = learned(sheet(**cells), {kind: kind for kind in CELLS}, edges=edges)
    assert np.isfinite(features).all()
    assert np.abs(features).max() < 100
    assert len(columns.features) == features.shape[1]
    again = Recipe.from_json(json.loads(json.dumps(columns.to_json(), allow_nan=False)))
    repeated, _ = again.apply(sheet(**cells), ids, ignore_progress, edges)
    np.testing.assert_array_equal(dense(repeated), features)


GOOD = learned(people(12), KINDS, edges=payments(12))[0].to_json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 1),
        ("format", None),
        ("factors", [1.0, 2.0]),
        ("label", 3),
        ("unused", None),
        ("unused", [1]),
        ("reading", []),
        ("blocks", None),
        ("blocks", {}),
        ("blocks", []),
    ],
)
def test_a_damaged_recipe_is_refused(name: str, value: object) -> None:
    Recipe.from_json(GOOD)
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json({**GOOD, name: value})
    fewer = {key: kept for key, kept in GOOD.items() if key != name}
    with pytest.raises(UsageError, match="The recipe for the features"):
        Recipe.from_json(fewer)


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("numbers", "names", "x"),
        ("numbers", "names", [1]),
        ("numbers", "names", ["new"]),
        ("numbers", "means", [float("nan")]),
        ("numbers", "means", ["x"]),
        ("numbers", "means", []),
        ("numbers", "empty_shares", [1.5]),
        ("booleans", "deviations", [1.0, 2.0]),
        ("dates", "spreads", []),
        ("dates", "centres", [[0.0] * 5]),
        ("vectors", "centres", [0.0, 1.0]),
        ("vectors", "lengths", [None]),
        ("text", "idf", [1.0]),
        ("text", "names", None),
        ("categories", "values", {"kind": 3}),
        ("categories", "values", [["kind"]]),
        ("categories", "values", [["x", ["a"]]]),
        ("edge amounts", "means", [0.0]),
        ("edge types", "types", [["amount", ["a"]]]),
    ],
)
def test_a_damaged_block_is_refused(key: str, name: str, value: object) -> None:
    damaged = {**GOOD["blocks"], key: {**GOOD["blocks"][key], name: value}}
    with pytest.raises(UsageError, match="The recipe for the features is damaged"):
        Recipe.from_json({**GOOD, "blocks": damaged})
    del damaged[key][name]
    with pytest.raises(UsageError, match="The recipe for the features is damaged"):
        Recipe.from_json({**GOOD, "blocks": damaged})


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
