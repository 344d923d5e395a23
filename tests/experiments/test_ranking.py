from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kryograph.errors import UsageError
from kryograph.experiments.ranking import Ranking, common_means, rank_columns, rank_systems
from tests.made_runs import cells


def test_ranks_with_ties_by_hand() -> None:
    made = rank_systems(
        {"c": [0.5, 0.9, 0.1], "a": [0.7, 0.9, 0.3], "b": [0.6, 0.9, 0.3]}, ["x", "y", "z"]
    )
    # a: 1, 2, 1.5; b: 2, 2, 1.5; c: 3, 2, 3.
    assert made.systems == ("a", "b", "c")
    assert made.ranks == pytest.approx((4.5 / 3, 5.5 / 3, 8 / 3))


def test_friedman_is_scipys_and_one_where_all_are_equal() -> None:
    values = {"a": [0.9, 0.8, 0.7, 0.9], "b": [0.8, 0.9, 0.6, 0.8], "c": [0.1, 0.2, 0.3, 0.4]}
    made = rank_systems(values, "wxyz")
    # Ranks 1 2 1 1, 2 1 2 2, 3 3 3 3; χ² = 12 / (4 · 3 · 4) · (25 + 49 + 144) − 3 · 4 · 4 = 6.5.
    assert made.friedman_p == pytest.approx(float(np.exp(-6.5 / 2)))
    assert rank_systems({"a": [0.5, 0.5], "b": [0.5, 0.5], "c": [0.5, 0.5]}, "xy").friedman_p == 1.0
    assert rank_systems({"a": [0.5, 0.6], "b": [0.4, 0.5]}, "xy").friedman_p is None


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_is_nemenyis(k: int, q: float) -> None:
    # q is from the table in Demšar's paper.
    names, headings = tuple("abcdefghij"[:k]), tuple(map(str, range(14)))
    made = Ranking(names, tuple(map(float, range(k))), headings, None)
    assert made.critical_difference == pytest.approx(q * (k * (k + 1) / 84) ** 0.5, abs=2e-3)


def test_groups_are_what_the_critical_difference_joins() -> None:
    headings = tuple(map(str, range(30)))
    made = Ranking(("a", "b", "c", "d"), (1.0, 1.8, 2.6, 4.0), headings, None)
    assert made.critical_difference == pytest.approx(0.856, abs=1e-3)
    assert made.groups == [(0, 1), (1, 2)]
    apart = Ranking(("a", "b"), (1.0, 2.0), headings, None)
    assert apart.groups == []
    alike = Ranking(("a", "b", "c"), (1.9, 2.0, 2.1), headings, None)
    assert alike.groups == [(0, 2)]
    assert alike.as_dict()["indistinguishable"] == [["a", "b", "c"]]


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(2, 6), st.randoms(use_true_random=False))
def test_ranks_add_up(k: int, n: int, rng: object) -> None:
    draw = np.random.default_rng(rng.getrandbits(32))  # type: ignore[attr-defined]
    values = draw.integers(0, 4, size=(k, n)) / 10
    made = rank_systems(
        {f"s{i}": values[i].tolist() for i in range(k)}, [f"c{j}" for j in range(n)]
    )
    assert sum(made.ranks) == pytest.approx(k * (k + 1) / 2)
    assert list(made.ranks) == sorted(made.ranks)


def test_ranks_want_two_of_each() -> None:
    with pytest.raises(UsageError, match=r"at least two systems and two columns; .* 1 and 2"):
        rank_systems({"a": [0.1, 0.2]}, "xy")


def test_columns_are_ranked_over_the_splits_that_all_systems_have() -> None:
    found = cells(
        {
            # In its third split, which GCN has not, snowball is hopeless.
            ("snowball", "Cora 1%"): [0.7, 0.7, 0.0],
            ("gcn", "Cora 1%"): [0.6, 0.6],
            ("snowball", "Cora 3%"): [0.5, 0.5],
            ("gcn", "Cora 3%"): [0.4, 0.4],
            ("snowball", "CiteSeer 1%"): [0.5],
        }
    )
    made = rank_columns(found, ["gcn", "snowball"])
    assert made is not None
    assert (made.systems, made.ranks) == (("snowball", "gcn"), (1.0, 2.0))
    assert made.headings == ("Cora 1%", "Cora 3%")
    assert rank_columns(found, ["gcn", "gat"]) is None
    here = [
        r for r in found if r.cell.heading == "Cora 1%" and r.cell.system in ("gcn", "snowball")
    ]
    assert common_means(here) == {"gcn": pytest.approx(0.6), "snowball": pytest.approx(0.7)}
