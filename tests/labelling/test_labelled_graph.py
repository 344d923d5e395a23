from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from kryograph.labelling import LabelledGraph, label_nodes
from kryograph.systems import system

LABELS = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])


@pytest.fixture(scope="module")
def labelled() -> LabelledGraph:
    """Two cliques, one of each class."""
    cliques = toy.two_cliques(4)
    return label_nodes(cliques, LABELS, ("left", "right"), systems=[system("lp")], coverage=0.8)


def test_repr_is_one_line(labelled: LabelledGraph) -> None:
    share = f"held-out accuracy {100 * labelled.accuracy[0]:.1f} % ("
    text = repr(labelled)
    assert text.startswith(f"LabelledGraph({labelled.graph.n} nodes, ")
    assert share in text
    assert "\n" not in text
    assert len(text) < 200


def test_add_labels_is_a_fit_with_these_labels(labelled: LabelledGraph) -> None:
    more = labelled.add_labels({"2": "left", 5: "right"})
    labels = LABELS.copy()
    labels[[2, 5]] = 0, 1
    again = label_nodes(
        labelled.graph, labels, ("left", "right"), systems=[system("lp")], coverage=0.8
    )
    np.testing.assert_array_equal(more.given_labels, labels)
    np.testing.assert_array_equal(more.probabilities, again.probabilities)
    assert more.calibration == again.calibration
    np.testing.assert_array_equal(labelled.given_labels, LABELS)  # not changed


def test_add_labels_takes_a_new_class_and_refuses_an_unknown_node(labelled: LabelledGraph) -> None:
    assert labelled.add_labels({"3": "middle"}).classes == ("left", "right", "middle")
    with pytest.raises(UsageError, match="There is no node '9'"):
        labelled.add_labels({"9": "left"})


def test_refitted_without_a_change_is_the_same(labelled: LabelledGraph) -> None:
    same = labelled.refitted(labelled.graph, labelled.given_labels)
    np.testing.assert_array_equal(same.probabilities, labelled.probabilities)
    assert same.as_dict() == labelled.as_dict()


def test_report_is_a_page_that_is_written_as_a_whole(
    labelled: LabelledGraph, tmp_path: Path
) -> None:
    page = labelled.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    assert "Label of 8 nodes" in page
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_to_pyg_has_predicted_classes_and_marks_the_given_labels(labelled: LabelledGraph) -> None:
    data = labelled.to_pyg()
    assert data.num_nodes == 8
    assert data.y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert data.train_mask.tolist() == (LABELS != UNKNOWN).tolist()
    np.testing.assert_array_equal(data.probabilities.numpy(), labelled.probabilities)


def test_predicted_has_what_the_labelled_graph_has(labelled: LabelledGraph) -> None:
    predicted = labelled.predicted
    assert predicted.positive == labelled.positive
    assert labelled.predictions().equals(predicted.table())
    np.testing.assert_array_equal(predicted.sets, labelled.sets)
