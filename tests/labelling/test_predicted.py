from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph
from kryograph.labelling import PredictedGraph, label_nodes, model_recipe
from kryograph.systems import system


@pytest.fixture
def predicted() -> PredictedGraph:
    graph = Graph(toy.path(3).adjacency, toy.path(3).features, names=("ann", "bob", "cem"))
    probabilities = np.array([[0.75, 0.25], [0.4, 0.6], [0.9, 0.1]])
    sets = np.array([[True, False], [True, True], [False, False]])
    known = np.array([UNKNOWN, 1, 0])
    return PredictedGraph(graph, ("a", "b"), probabilities, sets, known, positive=1)


def test_table_has_the_columns_of_predictions_csv(predicted: PredictedGraph) -> None:
    table = predicted.table()
    assert table.column_names == predicted.rows()[0]
    assert table.to_pylist()[1] == {
        "id": "bob",
        "given": "b",
        "predicted": "b",
        "probability": 0.6,
        "set": ["a", "b"],
        "p(a)": 0.4,
        "p(b)": 0.6,
        "p_rank": 1,
    }
    assert table["given"].to_pylist() == [None, "b", "a"]
    assert table["set"].to_pylist() == [["a"], ["a", "b"], []]


def test_rows_are_texts_with_six_digits(predicted: PredictedGraph) -> None:
    assert predicted.rows()[1:] == [
        ["ann", "", "a", "0.750000", "a", "0.750000", "0.250000", "2"],
        ["bob", "b", "b", "0.600000", "a | b", "0.400000", "0.600000", "1"],
        ["cem", "a", "a", "0.900000", "", "0.900000", "0.100000", "3"],
    ]


def test_predictions_are_converted_to_the_library_that_is_named(predicted: PredictedGraph) -> None:
    assert isinstance(predicted.predictions(), pa.Table)
    frame = predicted.predictions("pandas")
    assert isinstance(frame, pd.DataFrame)
    assert frame["id"].tolist() == ["ann", "bob", "cem"]
    assert isinstance(predicted.predictions("polars"), pl.DataFrame)
    with pytest.raises(UsageError, match="did you mean 'pandas'"):
        predicted.predictions("panda")


def test_every_library_of_arrow_streams_reads_the_predictions(predicted: PredictedGraph) -> None:
    assert pl.DataFrame(predicted)["predicted"].to_list() == ["a", "b", "a"]
    assert pa.table(predicted).equals(predicted.table())


def test_a_model_that_was_not_fitted_on_tables_has_no_recipe() -> None:
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    labelled = label_nodes(toy.two_cliques(4), labels, ("l", "r"), systems=[system("lp")])
    with pytest.raises(UsageError, match="how features are made from tables"):
        model_recipe(labelled.model)
    with pytest.raises(UsageError, match="how features are made from tables"):
        labelled.predict({"source": ["0"], "target": ["1"]})


def test_names_with_lone_surrogates_have_question_marks_in_tables() -> None:
    graph = Graph(toy.path(2).adjacency, toy.path(2).features, names=("a\ud800", "b"))
    predicted = PredictedGraph(graph, ("x", "y"), np.full((2, 2), 0.5), np.ones((2, 2), dtype=bool))
    assert predicted.table()["id"].to_pylist() == ["a?", "b"]
