from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from kryograph.data.tables import read_tables
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN


def data(**changed: object) -> Data:
    parts: dict[str, object] = {
        "x": torch.tensor([[1.0, 0.0], [2.0, 5.0], [4.0, 6.0]]),
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "y": torch.tensor([1, 0, 1]),
        "train_mask": torch.tensor([True, True, False]),
        "test_mask": torch.tensor([False, False, True]),
    }
    parts = {name: value for name, value in (parts | changed).items() if value is not None}
    return Data(**parts)


def test_labels_outside_the_training_mask_are_never_read() -> None:
    tables = read_tables(data())
    assert tables.labels.tolist() == [1, 0, UNKNOWN]
    assert tables.classes == ("0", "1")
    hidden = read_tables(data(y=torch.tensor([1, 0, 7])))
    assert hidden.classes == ("0", "1")
    assert tables.graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert str(tables.plan).splitlines() == [
        "edges (torch_geometric Data)  0 -> number",
        "edges (torch_geometric Data)  1 -> number",
        "edges (torch_geometric Data)  y -> label (0 1, 1 1, unknown 1)",
    ]


def test_without_a_mask_known_labels_are_those_that_are_not_negative() -> None:
    tables = read_tables(data(train_mask=None, y=torch.tensor([-1, 0, 1])))
    assert tables.labels.tolist() == [UNKNOWN, 0, 1]
    column = read_tables(data(train_mask=None, y=torch.tensor([[-1.0], [0.0], [float("nan")]])))
    assert column.labels.tolist() == [UNKNOWN, 0, UNKNOWN]


def test_several_splits_are_the_first_one() -> None:
    masks = torch.tensor([[True, False], [True, True], [False, True]])
    assert read_tables(data(train_mask=masks)).labels.tolist() == [1, 0, UNKNOWN]


def test_weights_and_what_is_left_out() -> None:
    weights = torch.tensor([2.0, 2.0, 3.0, 3.0])
    tables = read_tables(data(edge_weight=weights, pos=torch.ones(3, 2), x=None))
    assert tables.graph.adjacency[0, 1] == 2
    assert (
        str(tables.plan)
        .splitlines()[-1]
        .endswith(
            "pos -> not used (only x, y, train_mask, edge_index, edge_weight, edge_attr are read)"
        )
    )
    sparse = read_tables(data(x=data().x.to_sparse()))
    np.testing.assert_array_equal(sparse.graph.features, read_tables(data()).graph.features)


def test_attributes_of_edges_become_features_of_their_ends() -> None:
    attributes = torch.tensor([[1.0, 7.0], [1.0, 7.0], [2.0, 7.0], [5.0, 7.0]])
    tables = read_tables(data(edge_attr=attributes, x=None))
    title = "edges (torch_geometric Data), edges"
    assert str(tables.plan).splitlines()[:2] == [
        f"{title}  edge_attr[0] -> number (added up at each node)",
        f"{title}  edge_attr[1] -> not used (all cells are equal)",
    ]
    assert tables.columns.edge_columns == ("edge_attr[0]",)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"edge_index": torch.tensor([[0], [5]])}, r"edge 0 joins 0 and 5, but nodes are 0 to 2"),
        ({"y": torch.ones(3, 2)}, r"y must have one class for each node, not \(3, 2\)"),
        ({"train_mask": torch.tensor([True])}, r"train_mask must have 3 entries, not \(1,\)"),
        ({"edge_weight": torch.ones(1)}, r"4 edges, but 1 weights"),
        ({"edge_attr": torch.ones(3, 2)}, r"4 edges, but 3 rows of edge_attr"),
        ({"edge_index": None}, r"need edge_index and nodes"),
    ],
)
def test_faults_of_data(changed: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        read_tables(data(**changed))
