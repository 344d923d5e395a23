from __future__ import annotations

import numpy as np
import pytest

from kryograph.data.tables.edge_features import EdgeAttributes, amount_names, type_names
from kryograph.errors import UsageError
from tests.data.tables.examples import sheet

PAIRS = np.array([[0, 0, 1, 0], [1, 1, 2, 0]])
"""0 → 1 twice, 1 → 2, and 0 → 0."""


def signed_log(table: list[list[float]]) -> np.ndarray:
    values = np.array(table)
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def test_amounts_are_added_up_in_and_out() -> None:
    edges = EdgeAttributes(PAIRS, sheet(amount=["10", "20", "5", "-60"]), {})
    # sum, mean and count, first out, then in
    expected = [[-30, -10, 3, -60, -60, 1], [5, 5, 1, 30, 15, 2], [0, 0, 0, 5, 5, 1], [0] * 6]
    np.testing.assert_allclose(edges.amounts("amount", 4), signed_log(expected))
    assert amount_names("amount") == (
        *("amount (sum, out)", "amount (mean, out)", "amount (count, out)"),
        *("amount (sum, in)", "amount (mean, in)", "amount (count, in)"),
    )


def test_empty_amounts_are_passed_over() -> None:
    edges = EdgeAttributes(PAIRS, sheet(amount=["10", "", "", ""]), {})
    expected = [[10, 10, 1, 0, 0, 0], [0, 0, 0, 10, 10, 1], [0] * 6]
    np.testing.assert_allclose(edges.amounts("amount", 3), signed_log(expected))


def test_edges_outside_the_graph_are_passed_over() -> None:
    pairs = np.array([[0, -1, 1, 0], [1, 1, -1, 0]])
    edges = EdgeAttributes(pairs, sheet(amount=["10", "20", "5", "6"], kind=list("xyyx")), {})
    expected = [[16, 8, 2, 6, 6, 1], [0, 0, 0, 10, 10, 1]]
    np.testing.assert_allclose(edges.amounts("amount", 2), signed_log(expected))
    counts = edges.type_counts("kind", ("x", "y"), 2).toarray()
    np.testing.assert_allclose(counts, np.log1p([[2, 0, 1, 0], [0, 0, 1, 0]]))


def test_edges_are_counted_by_type() -> None:
    edges = EdgeAttributes(PAIRS, sheet(currency=["EUR", "EUR", "", "NOK"]), {})
    assert edges.types("currency") == {"EUR": 2, "NOK": 1}
    counts = edges.type_counts("currency", ("EUR", "NOK", "USD"), 3).toarray()
    np.testing.assert_allclose(
        counts, np.log1p([[2, 1, 0, 0, 1, 0], [0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 0]])
    )
    assert type_names("currency", ("EUR", "NOK")) == (
        *("currency = EUR (out)", "currency = NOK (out)"),
        *("currency = EUR (in)", "currency = NOK (in)"),
    )


def test_a_graph_without_edges_has_zeros() -> None:
    edges = EdgeAttributes(np.empty((2, 0), np.int64), sheet(amount=[], kind=[]), {})
    assert not edges.amounts("amount", 3).any()
    assert edges.type_counts("kind", ("x",), 3).shape == (3, 2)


def test_columns_are_used_by_their_kind() -> None:
    columns = {name: ["1"] * 4 for name in "abcd"}
    kinds = {"a": "number", "b": "date", "c": "category", "d": "boolean"}
    edges = EdgeAttributes(PAIRS, sheet(**columns), kinds)
    assert edges.of_kind("number") == ("a",)
    assert edges.used == ("a", "c", "d")


def test_an_amount_that_is_no_number_is_refused_at_its_place() -> None:
    edges = EdgeAttributes(PAIRS, sheet(amount=["10", "20", "many", "1"]), {})
    with pytest.raises(UsageError, match="line 4, column 'amount': 'many' is not a number"):
        edges.amounts("amount", 3)


def test_pairs_and_rows_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="same number of edges"):
        EdgeAttributes(PAIRS, sheet(amount=["1"]), {})
