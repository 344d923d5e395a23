from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.labelling.output import (
    SUGGESTION_COLUMNS,
    check_fit_output,
    read_suggestions,
    write,
    write_predictions,
)
from kryograph.model import Model
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
    write_predictions(path, graph, ("a", "b"), probabilities, sets)
    assert cells(path) == [
        ["id", "predicted", "probability", "set", "p(a)", "p(b)"],
        ["0", "a", "0.750000", "a", "0.750000", "0.250000"],
        ["1", "b", "0.600000", "a | b", "0.400000", "0.600000"],
    ]
    write_predictions(path, graph, ("a", "b"), probabilities, sets, np.array([UNKNOWN, 0]))
    assert [row[:3] for row in cells(path)] == [
        ["id", "given", "predicted"],
        ["0", "", "a"],
        ["1", "a", "b"],
    ]


def test_write_predictions_ends_with_the_rank_by_the_positive_class(tmp_path: Path) -> None:
    probabilities = np.array([[0.75, 0.25], [0.4, 0.6], [0.75, 0.25]])
    path = tmp_path / "predictions.csv"
    write_predictions(path, toy.path(3), ("a", "b"), probabilities, probabilities > 0.5, positive=1)
    assert [row[-1] for row in cells(path)] == ["p_rank", "2", "1", "3"]


def test_disputed_labels_have_a_file_if_there_are_any(tmp_path: Path) -> None:
    """Two cliques; one node of the left one was given the label of the right one."""
    graph = toy.two_cliques(8)
    labels = np.repeat([0, 1], 8)
    labels[[6, 7, 14, 15]] = UNKNOWN
    labels[0] = 1
    wrong = label_nodes(graph, labels, ("left", "right"), systems=[system("lp")])
    write(tmp_path / "run", wrong)
    heading, *rows = cells(tmp_path / "run" / "disputed.csv")
    assert heading == ["id", "given", "predicted", "probability"]
    assert [row[:3] for row in rows] == [["0", "right", "left"]]
    assert [one.node for one in wrong.disputed] == [0]
    check_fit_output(tmp_path / "run", overwrite=True, folder=True)


def test_write_makes_a_folder_with_every_part(labelled: LabelledGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    write(out, labelled, "<p>page</p>")
    names = sorted(path.name for path in out.iterdir())
    assert names == ["model", "predictions.csv", "report.html", "suggestions.csv"]
    assert (out / "report.html").read_text() == "<p>page</p>"
    loaded = Model.load(out / "model").predict_proba(labelled.graph)
    calibrated = labelled.calibration.probabilities(loaded)
    np.testing.assert_allclose(calibrated, labelled.probabilities, atol=1e-6)
    assert [row["id"] for row in read_suggestions(out)] == [
        str(suggestion.node) for suggestion in labelled.suggestions
    ]
    assert cells(out / "suggestions.csv")[0] == list(SUGGESTION_COLUMNS)


def test_write_leaves_the_page_out_if_there_is_none(
    labelled: LabelledGraph, tmp_path: Path
) -> None:
    write(tmp_path / "run", labelled)
    assert not (tmp_path / "run" / "report.html").exists()


def test_check_fit_output_allows_to_overwrite_only_what_a_fit_wrote(
    labelled: LabelledGraph, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    write(out, labelled)
    check_fit_output(out, overwrite=True, folder=True)
    check_fit_output(out / "new.csv", overwrite=False, folder=False)
    with pytest.raises(UsageError, match="exists already"):
        check_fit_output(out, overwrite=False, folder=True)
    with pytest.raises(UsageError, match="not a table of predictions"):
        check_fit_output(out / "suggestions.csv", overwrite=True, folder=False)
    (out / "diary.txt").write_text("private")
    with pytest.raises(UsageError, match="not the folder of a fit"):
        check_fit_output(out, overwrite=True, folder=True)


def test_read_suggestions_refuses_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "suggestions.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        read_suggestions(tmp_path)


def test_read_suggestions_refuses_other_columns(tmp_path: Path) -> None:
    (tmp_path / "suggestions.csv").write_text("id,why\n1,because\n")
    with pytest.raises(UsageError, match="does not have the columns id, first"):
        read_suggestions(tmp_path)
