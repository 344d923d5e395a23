from __future__ import annotations

import pyarrow as pa
import pytest

from kryograph.data.tables import read_tables
from kryograph.data.tables.options import TableOptions
from kryograph.data.tables.overlap import (
    BY_NAME,
    BY_OPTION,
    BY_ORDER,
    BY_OVERLAP,
    can_be_ids,
    edge_columns,
    folded,
    id_column,
    sample_edges,
    share_of_ids,
)
from kryograph.errors import UsageError
from tests.data.tables.examples import pairs, sheet

IDS = pa.array(["a", "b", "c", "4", "5"])
LETTERS = {"number": ["1", "2"], "who": ["a", "b"], "month": ["5", "6"], "whom": ["b", "c"]}


@pytest.mark.parametrize(
    ("columns", "flags", "ends", "reason"),
    [
        (LETTERS, {}, ("who", "whom"), BY_OVERLAP),
        (LETTERS, {"source": "whom"}, ("whom", "who"), BY_OVERLAP),
        (LETTERS, {"target": "who"}, ("whom", "who"), BY_OVERLAP),
        (LETTERS, {"source": "number", "target": "who"}, ("number", "who"), BY_OPTION),
        ({"x": ["7"], "from_account": ["a"], "to_account": ["b"]}, {}, None, BY_NAME),
        ({"tgtId": ["a"], "srcId": ["b"]}, {}, ("srcId", "tgtId"), BY_NAME),
        ({"payer": ["a"], "payee": ["b"]}, {}, ("payer", "payee"), BY_NAME),
        # Names count less than values: these are times.
        (
            {"start": ["9", "8"], "end": ["7", "6"], "p": ["a", "b"], "q": ["b", "c"]},
            {},
            ("p", "q"),
            BY_OVERLAP,
        ),
        ({"p": ["7", "8"], "q": ["9", "9"]}, {}, ("p", "q"), BY_ORDER),
        # Ratings that equal ids of nodes by chance are no ends, also if no film has a row.
        (
            {"userId": ["a", "b"], "filmId": ["7", "8"], "rating": ["a", "c"]},
            {},
            ("userId", "filmId"),
            BY_NAME,
        ),
        (
            {"user": ["a"] * 20, "film": ["x"] * 20, "rating": ["4", "5"] * 10},
            {},
            ("user", "film"),
            BY_ORDER,
        ),
        (
            {"log_id": list(map(str, range(20))), "user_id": ["a"] * 20, "film_id": ["c"] * 20},
            {},
            ("user_id", "film_id"),
            BY_NAME,
        ),
    ],
)
def test_ends_of_edges(
    columns: dict[str, list[str]],
    flags: dict[str, str],
    ends: tuple[str, str] | None,
    reason: str,
) -> None:
    found = edge_columns(sheet(**columns), TableOptions(**flags), IDS)  # type: ignore[arg-type]
    assert found.ends == (ends or ("from_account", "to_account"))
    named = set(flags.values())
    assert {found.reasons[name] for name in found.ends if name not in named} <= {reason}


def test_weights_are_named_or_known() -> None:
    table = sheet(a=["a"], b=["b"], weight=[2.0], amount=[3.0])
    assert edge_columns(table, TableOptions(), IDS).weight == "weight"
    assert edge_columns(table, TableOptions(weight="none"), IDS).weight is None
    assert edge_columns(table, TableOptions(weight="amount"), IDS).weight == "amount"
    assert edge_columns(table, TableOptions(edge_type="weight"), IDS).weight is None
    with pytest.raises(UsageError, match="has no column 'wieght' of weights: did you mean"):
        edge_columns(table, TableOptions(weight="wieght"), IDS)
    with pytest.raises(UsageError, match="has no column 'src' of sources"):
        edge_columns(table, TableOptions(source="src"), IDS)


def test_the_share_of_ids_sees_through_zeros_and_case() -> None:
    assert share_of_ids(pa.array(["a", "b", "x", "y"]), IDS) == 0.5
    assert share_of_ids(pa.array(["A ", "B"]), IDS) == 1
    assert share_of_ids(pa.array(["7", "8"]), pa.array(["0007", "0008"])) == 1
    assert share_of_ids(pa.array([], pa.string()), IDS) == 0
    assert folded(pa.array(["0", "007", "A b"])).to_pylist() == ["0", "7", "ab"]


def test_the_column_of_ids() -> None:
    edges = sample_edges(sheet(source=["a", "b"], target=["b", "c"]), TableOptions())
    nodes = sheet(number=["1", "2", "3"], email=["a", "b", "c"], name=["u", "v", "w"])
    assert id_column(nodes, (), edges) == ("email", BY_OVERLAP)
    assert id_column(nodes, (), None) == ("name", BY_NAME)
    assert id_column(nodes, ("name",), None) == ("number", BY_ORDER)
    assert id_column(sheet(x=["1"], user_id=["9"]), (), edges) == ("user_id", BY_NAME)
    with pytest.raises(UsageError, match="no column left for the ids of the nodes: name it with"):
        id_column(nodes, nodes.names, edges)


def test_transactions_are_read_at_the_first_attempt() -> None:
    edges = {"tx": ["t1", "t2"], "who": ["a", "b"], "whom": ["b", "c"], "amount": [1.0, 2.0]}
    nodes = {"opened": ["2024-01-01"] * 2 + ["2024-02-01"], "account": ["a", "b", "c"]}
    tables = read_tables(edges, nodes)
    assert pairs(tables) == [("a", "b"), ("b", "c")]
    assert "edges  who -> source (most of its values are ids of nodes)" in str(tables.plan)


def test_types_that_can_be_ids() -> None:
    table = sheet(a=["x"], b=[1], c=[[1.0]], d=pa.array([1], pa.date32()))
    assert [can_be_ids(table, name) for name in table.names] == [True, True, False, False]
