from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kryograph.data.tables.labels import (
    LabelColumns,
    Labels,
    label_columns,
    last_labels,
    likely_unknown,
    read_labels,
)
from kryograph.data.tables.options import TableOptions
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN
from tests.data.tables.examples import sheet

IDS = pa.array(["a", "b", "c"])


def test_labels_are_numbers_of_classes() -> None:
    labels = read_labels(sheet(y=["10", "9", "", "10"]), "y", TableOptions())
    assert labels.classes == ("9", "10")
    assert labels.numbers.tolist() == [1, 0, UNKNOWN, 1]
    assert labels.counts == "9 1, 10 2, unknown 1"
    assert labels.notes == ()


def test_some_labels_mean_that_the_label_is_not_known() -> None:
    table = sheet(y=["x", "unknown", "-1", "y", "x", "y"])
    labels = read_labels(table, "y", TableOptions())
    assert labels.classes == ("-1", "unknown", "x", "y")
    assert "add --unknown-label unknown." in " ".join(labels.notes)
    assert likely_unknown(labels.classes) == ["-1", "unknown"]
    labels = read_labels(table, "y", TableOptions(unknown_label=["unknown", "-1"]))
    assert (labels.classes, labels.notes) == (("x", "y"), ())
    assert labels.numbers.tolist() == [0, UNKNOWN, UNKNOWN, 1, 0, 1]


def test_too_many_classes_are_refused() -> None:
    table = sheet(y=[str(at) for at in range(60)])
    with pytest.raises(UsageError, match="column 'y': more than 50 different values"):
        read_labels(table, "y", TableOptions())
    with pytest.raises(UsageError, match="labels are classes, not numbers: write ranges such as"):
        read_labels(table, "y", TableOptions())
    with pytest.raises(UsageError, match=r"is this the column of labels\?$"):
        read_labels(sheet(y=[f"a{at}" for at in range(60)]), "y", TableOptions())


def test_counts_of_many_classes_stay_short() -> None:
    labels = Labels(np.arange(8), tuple("abcdefgh"))
    assert labels.counts == "8 classes, a 1, b 1, c 1, d 1, e 1, …"


@pytest.mark.parametrize(
    ("columns", "flags", "expected"),
    [
        ({"id": ["a"], "label": ["x"]}, {}, ("id", "label")),
        ({"topic": ["x"], "who": ["a"]}, {"label": "topic"}, ("who", "topic")),
        ({"who": ["a"], "topic": ["x"]}, {}, ("who", "topic")),
        ({"y": ["x"], "time": ["9"], "node": ["b"]}, {}, ("node", "y")),
        ({"id": ["1"], "account": ["b"], "label": ["x"]}, {}, ("account", "label")),
        ({"by": ["a"], "node": ["b"], "kind": ["x"]}, {"label": "kind"}, ("node", "kind")),
    ],
)
def test_columns_of_a_table_of_labels(
    columns: dict[str, list[str]], flags: dict[str, str], expected: tuple[str, str]
) -> None:
    found = label_columns(sheet(**columns), TableOptions(**flags), "id", IDS)  # type: ignore[arg-type]
    assert (found.id, found.label) == expected


def test_a_table_of_labels_without_labels() -> None:
    table = sheet(id=["a"], by=["ann"], when=["now"])
    with pytest.raises(UsageError, match=r"Which column .*Its columns are: 'by', 'when'\."):
        label_columns(table, TableOptions(), "id", IDS)
    with pytest.raises(UsageError, match="has no column 'topc' of labels"):
        label_columns(table, TableOptions(label="topc"), "id", IDS)


def test_the_last_label_of_a_node_counts() -> None:
    table = sheet(id=["a", "b", "a", "c", "c"], label=["x", "y", "z", "x", ""])
    nodes = sheet(id=["a", "b", "c"])
    rows = np.array([0, 1, 0, 2, 2])
    result, notes = last_labels(table, LabelColumns("id", "label"), rows, nodes)
    assert result.text("label").to_pylist() == ["z", "y", ""]
    assert result.place(0) == "line 4"
    assert notes == [
        "2 rows of nodes.csv replaced by a later row of the same node: the last one counts."
    ]
