from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling import LabelledGraph, PredictedGraph, label_nodes
from kryograph.labelling.output import (
    SUGGESTION_COLUMNS,
    is_prediction,
    read_suggestions,
    write_disputed,
    write_predictions,
    write_suggestions,
)
from kryograph.systems import system


@pytest.fixture(scope="module")
def labelled() -> LabelledGraph:
    graph = toy.two_cliques(4)
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    return label_nodes(graph, labels, ("left", "right"), systems=[system("lp")])


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_write_predictions_has_a_row_for_each_node(tmp_path: Path) -> None:
    probabilities = np.array([[0.75, 0.25], [0.4, 0.6]])
    sets = np.array([[True, False], [True, True]])
    graph, path = toy.path(2), tmp_path / "predictions.csv"
    write_predictions(path, PredictedGraph(graph, ("a", "b"), probabilities, sets))
    assert cells(path) == [
        ["id", "predicted", "probability", "set", "p(a)", "p(b)"],
        ["0", "a", "0.750000", "a", "0.750000", "0.250000"],
        ["1", "b", "0.600000", "a | b", "0.400000", "0.600000"],
    ]
    known = np.array([UNKNOWN, 0])
    write_predictions(path, PredictedGraph(graph, ("a", "b"), probabilities, sets, known))
    assert [row[:3] for row in cells(path)] == [
        ["id", "given", "predicted"],
        ["0", "", "a"],
        ["1", "a", "b"],
    ]


def test_write_predictions_ends_with_the_rank_by_the_positive_class(tmp_path: Path) -> None:
    probabilities = np.array([[0.75, 0.25], [0.4, 0.6], [0.75, 0.25]])
    sets = probabilities > 0.5
    path = tmp_path / "predictions.csv"
    predicted = PredictedGraph(toy.path(3), ("a", "b"), probabilities, sets, positive=1)
    write_predictions(path, predicted)
    assert [row[-1] for row in cells(path)] == ["p_rank", "2", "1", "3"]


def test_write_disputed_has_a_row_for_each_label_and_no_file_without_any(tmp_path: Path) -> None:
    """Two cliques; one node of the left one was given the label of the right one."""
    graph, labels = toy.two_cliques(8), np.repeat([0, 1], 8)
    labels[[6, 7, 14, 15]] = UNKNOWN
    right = label_nodes(graph, labels, ("left", "right"), systems=[system("lp")])
    write_disputed(tmp_path / "none.csv", right)
    assert not (tmp_path / "none.csv").exists()
    labels[0] = 1
    wrong = label_nodes(graph, labels, ("left", "right"), systems=[system("lp")])
    write_disputed(tmp_path / "disputed.csv", wrong)
    heading, *rows = cells(tmp_path / "disputed.csv")
    assert heading == ["id", "given", "predicted", "probability"]
    assert [row[:3] for row in rows] == [["0", "right", "left"]]
    assert [one.node for one in wrong.disputed] == [0]


def test_write_suggestions_has_a_row_for_each_suggestion(
    labelled: LabelledGraph, tmp_path: Path
) -> None:
    write_suggestions(tmp_path / "suggestions.csv", labelled)
    assert [row["id"] for row in read_suggestions(tmp_path)] == [
        str(suggestion.node) for suggestion in labelled.suggestions
    ]
    assert cells(tmp_path / "suggestions.csv")[0] == list(SUGGESTION_COLUMNS)


def test_is_prediction_recognises_its_own_table(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    probabilities = np.array([[0.75, 0.25]])
    predicted = PredictedGraph(toy.isolated(1), ("a", "b"), probabilities, probabilities > 0.5)
    write_predictions(path, predicted)
    assert is_prediction(path)
    path.write_text("id,name\n")
    assert not is_prediction(path)
    assert not is_prediction(tmp_path)


def test_read_suggestions_refuses_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "suggestions.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        read_suggestions(tmp_path)


def test_read_suggestions_refuses_other_columns(tmp_path: Path) -> None:
    (tmp_path / "suggestions.csv").write_text("id,why\n1,because\n")
    with pytest.raises(UsageError, match="does not have the columns id, first"):
        read_suggestions(tmp_path)
