from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.tables.edge_blocks import MOST_TYPES, EdgeAmounts, EdgeTypes
from kryograph.data.tables.edge_features import EdgeAttributes
from kryograph.errors import UsageError
from kryograph.text import ignore_progress
from tests.data.tables.examples import block, dense, learned, node_table, sheet

PAIRS = np.array([[0, 0, 1], [1, 2, 2]])
KINDS = {"amount": "number", "currency": "category"}


def payments(amount: list[str], currency: list[str]) -> EdgeAttributes:
    return EdgeAttributes(PAIRS, sheet(amount=amount, currency=currency), KINDS)


EDGES = payments(["1", "3", "9"], ["EUR", "NOK", "EUR"])
NODES = sheet(age=["1", "2", "3"])


def test_edges_make_features_of_their_nodes() -> None:
    columns, features, notes = learned(NODES, {"age": "number"}, edges=EDGES)
    assert columns.features == (
        "age",
        *("amount (sum, out)", "amount (mean, out)", "amount (count, out)"),
        *("amount (sum, in)", "amount (mean, in)", "amount (count, in)"),
        *("currency = EUR (out)", "currency = NOK (out)"),
        *("currency = EUR (in)", "currency = NOK (in)"),
    )
    assert columns.used == ("age",)
    assert columns.edge_columns == ("amount", "currency")
    assert notes == []
    for part in (features[:, :1], features[:, 1:7], features[:, 7:]):
        assert np.linalg.norm(part, axis=1).mean() == pytest.approx(0.2)
    types = features[:, 7:] / features[0, 7] * np.log(2)
    np.testing.assert_allclose(types, np.log1p([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]]))


def test_amounts_are_standardised() -> None:
    table = node_table(NODES, {}, EDGES)
    amounts = EdgeAmounts.learn(table)
    features = amounts.apply(table)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(dense(features).std(axis=0), 1)
    # sums out are 4, 9 and 0; logarithms of 5, 10 and 1
    np.testing.assert_allclose(amounts.means[0], np.log(50) / 3)


def test_the_recipe_gives_another_graph_the_same_features() -> None:
    columns, features, _ = learned(NODES, {"age": "number"}, edges=EDGES)
    again, notes = columns.apply(NODES, ["0", "1", "2"], ignore_progress, EDGES)
    np.testing.assert_array_equal(dense(again), features)
    assert notes == []
    half = EdgeAttributes(PAIRS[:, :1], sheet(currency=["EUR"], amount=["1"], note=["x"]), {})
    other, notes = columns.apply(NODES, ["0", "1", "2"], ignore_progress, half)
    assert other.shape == features.shape
    assert notes == []


def test_types_that_are_not_in_the_recipe_are_told() -> None:
    columns, _, _ = learned(NODES, {"age": "number"}, edges=EDGES)
    other = payments(["1", "1", "1"], ["USD", "NOK", "GBP"])
    features, notes = columns.apply(NODES, ["0", "1", "2"], ignore_progress, other)
    assert (dense(features)[:, 7:] > 0).tolist() == [
        [False, True, False, False],
        [False] * 4,
        [False, False, False, True],
    ]
    assert notes == ["2 edges whose type in column 'currency' is not among the 2 that are counted."]


def test_the_most_frequent_types_are_counted() -> None:
    count = MOST_TYPES + 3
    cells = [f"t{at:02d}" for at in range(count)] + [f"t{at:02d}" for at in range(5, count)]
    edges = EdgeAttributes(
        np.zeros((2, len(cells)), np.int64), sheet(kind=cells), {"kind": "category"}
    )
    columns, _, notes = learned(NODES, {"age": "number"}, edges=edges)
    types = block(columns, "edge types")["types"]
    assert types == [["kind", [f"t{at:02d}" for at in range(count) if at not in (2, 3, 4)]]]
    assert notes == ["3 edges whose type in column 'kind' is not among the 50 that are counted."]


def test_edges_alone_can_make_the_features() -> None:
    columns, features, _ = learned(sheet(x=["", "", ""]), {"x": "number"}, edges=EDGES)
    assert columns.features[0] == "amount (sum, out)"
    assert features.shape == (3, 10)


def test_edges_without_attributes_change_nothing() -> None:
    edges = EdgeAttributes(PAIRS, sheet(note=["x", "y", "z"]), {"note": "text"})
    columns, features, _ = learned(NODES, {"age": "number"}, edges=edges)
    assert columns.features == ("age",)
    np.testing.assert_array_equal(features, learned(NODES, {"age": "number"})[1])
    assert learned(sheet(x=["", ""]), {"x": "number"}, edges=edges)[0].features[0] == "node 0"


def test_missing_columns_of_edges_are_named() -> None:
    columns, _, _ = learned(NODES, {"age": "number"}, edges=EDGES)
    other = EdgeAttributes(PAIRS, sheet(currency=["EUR"] * 3), {})
    with pytest.raises(
        UsageError, match=r"nodes.csv lacks the column 'amount', which the model was trained on"
    ):
        columns.apply(NODES, ["0", "1", "2"], ignore_progress, other)


def test_no_table_of_edges_is_no_edge() -> None:
    columns, _, _ = learned(NODES, {"age": "number"}, edges=EDGES)
    nothing = EdgeAttributes(PAIRS[:, :0], sheet(amount=[], currency=[]), {})
    expected, _ = columns.apply(NODES, ["0", "1", "2"], ignore_progress, nothing)
    features, notes = columns.apply(NODES, ["0", "1", "2"], ignore_progress)
    np.testing.assert_array_equal(dense(features), dense(expected))
    assert notes == [
        "There is no table of edges: 'amount', 'currency' count as those of nodes without an edge."
    ]


def test_damaged_blocks_are_refused() -> None:
    table = node_table(NODES, {}, EDGES)
    amounts, types = EdgeAmounts.learn(table), EdgeTypes.learn(table)
    assert EdgeAmounts.from_json(amounts.to_json()) == amounts
    assert EdgeTypes.from_json(types.to_json()) == types
    with pytest.raises(ValueError, match="do not match"):
        EdgeAmounts.from_json({**amounts.to_json(), "means": [0.0]})
    with pytest.raises(ValueError, match="listed twice"):
        EdgeTypes.from_json({"types": [["a", ["x"]], ["a", ["y"]]]})
