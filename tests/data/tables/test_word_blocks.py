from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from kryograph.data.tables import read_tables
from kryograph.data.tables.word_blocks import MOST_WORDS, Categories, Text
from kryograph.errors import UsageError
from kryograph.text import ignore_progress
from tests.data.tables.examples import block, dense, learned, node_table, sheet


def test_categories_are_one_hot() -> None:
    columns, features, notes = learned(sheet(colour=["red", "blue", "", "red"]))
    assert block(columns, "categories")["values"] == [["colour", ["blue", "red"]]]
    assert columns.features == ("colour = blue", "colour = red")
    np.testing.assert_array_equal(features > 0, [[0, 1], [1, 0], [0, 0], [0, 1]])
    assert notes == ["1 empty cell in column 'colour'."]


def test_numbers_can_be_categories() -> None:
    categories = Categories.learn(node_table(sheet(level=[1.0, 3.0, None]), {"level": "category"}))
    assert categories.features == ("level = 1", "level = 3")


def test_a_category_that_was_not_seen_has_no_feature() -> None:
    columns, _, _ = learned(sheet(country=["NO", "SE"]))
    features, notes = columns.apply(sheet(country=["DK", "NO", ""]), list("012"), ignore_progress)
    assert (dense(features) > 0).tolist() == [[False, False], [True, False], [False, False]]
    assert notes == [
        "1 empty cell in column 'country'.",
        "1 cell in column 'country' with a category that the model has not seen, ignored.",
    ]


@pytest.mark.parametrize(("rows", "kinds", "fine"), [(60, 50, True), (60, 51, False)])
def test_how_many_categories_there_may_be(rows: int, kinds: int, fine: bool) -> None:
    table = sheet(kind=[f"k{row % kinds}" for row in range(rows)])
    if fine:
        assert len(learned(table)[0].features) == kinds
    else:
        with pytest.raises(UsageError, match=r"more than 50 different values.*--text kind"):
            learned(table)


def test_a_tenth_of_the_nodes_may_differ() -> None:
    assert len(learned(sheet(kind=[f"k{row % 100}" for row in range(1000)]))[0].features) == 100


def test_ten_million_categories_cost_little(tmp_path: Path) -> None:
    """A tenth of that here: the column is given up after its first rows."""
    rows = 1_000_000
    table = pa.table({"id": np.arange(rows), "kind": [f"k{i}" for i in range(rows)]})
    path = tmp_path / "nodes.parquet"
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match=r"'kind': it has more than 10,000 different values"):
        read_tables(None, path, category=["kind"])


def test_text_is_tf_idf_over_all_its_columns() -> None:
    table = sheet(title=["red red apple", "pear"], body=["apple", "red"])
    columns, features, _ = learned(table, text=("title", "body"))
    assert block(columns, "text")["words"] == ["apple", "pear", "red"]
    assert columns.features == ("word apple", "word pear", "word red")
    # idf = 1 + log(3 / (1 + documents)); tf = 1 + log(count); rows of length 0.2 each.
    row = np.array([1 + np.log(2), 0, 1 + np.log(2)]) * [1 + np.log(1.5), 1, 1]
    np.testing.assert_allclose(features[0], 0.2 * row / np.linalg.norm(row))


def test_text_is_that_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [
        "Graphs, graphs and a 2nd GRAPH!",
        "naïve Straße_x — Ελληνικά; 東京 tower",
        "",
        "x y z",
        "don't re-use e-mail @home 3.14 and graphs",
    ] * 3
    table = node_table(sheet(body=texts), {"body": "text"})
    text = Text.learn(table)
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    expected = vectorizer.fit_transform(texts)
    assert text.words == tuple(vectorizer.get_feature_names_out())
    np.testing.assert_allclose(text.idf, vectorizer.idf_, rtol=1e-14)
    np.testing.assert_allclose(dense(text.apply(table)), expected.toarray(), rtol=1e-14)


def test_text_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = node_table(sheet(body=["one two", "two", "", "three one one"]), {"body": "text"})
    whole = Text.learn(table)
    features = dense(whole.apply(table))
    monkeypatch.setattr("kryograph.data.tables.word_blocks.ROWS_AT_ONCE", 1)
    assert Text.learn(table) == whole
    np.testing.assert_array_equal(dense(whole.apply(table)), features)


def test_only_the_most_frequent_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_WORDS == 20_000
    monkeypatch.setattr("kryograph.data.tables.word_blocks.MOST_WORDS", 2)
    table = node_table(sheet(body=["bb aa cc", "dd dd dd", "bb"]), {"body": "text"})
    assert Text.learn(table).words == ("bb", "dd")


def test_text_without_words_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nodes.csv: there is no word in the text of 'body'\."):
        learned(sheet(body=["", "a .", "?"]), text=("body",))


def test_unknown_words_and_empty_texts_have_no_feature() -> None:
    columns, _, _ = learned(sheet(body=["gene", "cell"]), text=("body",))
    features, notes = columns.apply(sheet(body=["", "atom", "Gene"]), list("012"), ignore_progress)
    assert dense(features).tolist() == [[0, 0], [0, 0], [0, pytest.approx(0.2)]]
    assert notes == []


def test_nodes_without_columns_are_their_own_features() -> None:
    columns, features, _ = learned(sheet(x=["", ""]), {"x": "number"})
    assert columns.features == ("node 0", "node 1")
    assert features.tolist() == [[1, 0], [0, 1]]
