from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kryograph.errors import UsageError
from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import (
    Comparison,
    Ranking,
    common_means,
    paired,
    rank_columns,
    rank_systems,
    signed_rank_p,
)
from kryograph.stats import student_half_width
from tests.made_runs import cells

thousandths = st.integers(0, 1000).map(lambda k: k / 1000)
pairs_of_scores = st.lists(st.tuples(thousandths, thousandths), min_size=2, max_size=12)


def compared(*differences: float) -> Comparison:
    return Comparison("a", "b", "Cora 1%", differences)


def two(ours: list[float], theirs: list[float]) -> list[CellResult]:
    """Snowball's cell and GCN's."""
    found = cells({("snowball", "Cora 1%"): ours, ("gcn", "Cora 1%"): theirs})
    by_name = {result.cell.system: result for result in found if result.cell.heading == "Cora 1%"}
    return [by_name["snowball"], by_name["gcn"]]


def pair_of(ours: list[float], theirs: list[float]) -> Comparison:
    made = paired(*two(ours, theirs))
    assert made is not None
    return made


def test_a_comparison_by_hand() -> None:
    pair = pair_of([0.62, 0.70, 0.66], [0.60, 0.70, 0.62])
    assert (pair.first, pair.second, pair.heading) == ("snowball", "gcn", "Cora 1%")
    assert pair.differences == (0.02, 0.0, 0.04)
    assert (pair.n, pair.wins, pair.ties, pair.losses) == (3, 2, 1, 0)
    assert pair.mean == pytest.approx(0.02)
    # 0.02 ± 4.3027 · 0.02 / √3.
    assert pair.ci95 == pytest.approx((-0.029683, 0.069683), abs=1e-5)


def test_only_splits_that_both_have_are_compared() -> None:
    ours, theirs = two([0.5, 0.6, 0.7], [0.4, 0.4])
    assert paired(ours, theirs) == compared_as(ours, theirs, (0.1, 0.2))
    # The same seed on another split is no pair, nor is one whose split nobody wrote down.
    other = replace(theirs, rows=tuple(replace(r, split_digest="other") for r in theirs.rows))
    assert paired(ours, other) is None
    unknown = [replace(c, rows=tuple(replace(r, split_digest="") for r in c.rows)) for c in (ours,)]
    assert paired(unknown[0], unknown[0]) is None


def compared_as(ours: CellResult, theirs: CellResult, differences: tuple[float, ...]) -> Comparison:
    return Comparison(ours.cell.system, theirs.cell.system, ours.cell.heading, differences)


def test_one_pair_has_no_interval() -> None:
    assert compared(0.1).ci95 == (None, None)


def test_half_an_interval_is_what_a_table_of_student_says() -> None:
    assert student_half_width(1.0, 2) == pytest.approx(12.7062 / 2**0.5, abs=1e-4)
    assert student_half_width(2.0, 25) == pytest.approx(2.0639 * 2 / 5, abs=1e-4)


@settings(max_examples=60)
@given(pairs_of_scores)
def test_the_interval_is_that_of_scipys_paired_test(values: list[tuple[float, float]]) -> None:
    ours, theirs = (list(each) for each in zip(*values, strict=True))
    pair = pair_of(ours, theirs)
    if len(set(pair.differences)) > 1:
        theirs_low, theirs_high = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
        assert pair.ci95 == pytest.approx((theirs_low, theirs_high), abs=1e-7)


@settings(max_examples=60)
@given(pairs_of_scores)
def test_who_is_named_first_changes_signs_only(values: list[tuple[float, float]]) -> None:
    ours, theirs = (list(each) for each in zip(*values, strict=True))
    there, back = pair_of(ours, theirs), pair_of(theirs, ours)
    assert back.mean == pytest.approx(-there.mean, abs=1e-12)
    assert (back.wins, back.ties, back.losses) == (there.losses, there.ties, there.wins)
    assert back.wilcoxon_p == pytest.approx(there.wilcoxon_p)


def test_wilcoxon_by_hand() -> None:
    # Six wins of different sizes: 2 of the 64 ways to sign them are as extreme.
    assert compared(0.01, 0.02, 0.03, 0.04, 0.05, 0.06).wilcoxon_p == pytest.approx(2 / 64)
    # The smallest is a loss: of the 64 ways, those with rank sums 0 and 1, at either end.
    assert compared(-0.01, 0.02, 0.03, 0.04, 0.05, 0.06).wilcoxon_p == pytest.approx(4 / 64)
    # A tie says nothing: without it there are five.
    assert compared(0.0, 0.02, 0.03, 0.04, 0.05, 0.06).wilcoxon_p == pytest.approx(2 / 32)
    assert compared(0.0, 0.0).wilcoxon_p == 1.0


@settings(max_examples=60)
@given(st.lists(st.integers(-1000, 1000).filter(bool), min_size=1, max_size=30, unique_by=abs))
def test_wilcoxon_is_scipys_where_no_two_sizes_are_equal(differences: list[int]) -> None:
    given_to_both = np.array(differences, dtype=float)
    assert signed_rank_p(given_to_both) == pytest.approx(stats.wilcoxon(given_to_both).pvalue)


@pytest.mark.parametrize("differences", [[1, 1], [1, -1, 2], [3, 3, -1, 2, 2, 5], [1, 1, 1, 1, -2]])
def test_wilcoxon_is_scipys_where_sizes_are_equal(differences: list[float]) -> None:
    p = stats.wilcoxon(differences, method=stats.PermutationMethod()).pvalue
    assert signed_rank_p(np.array(differences, dtype=float)) == pytest.approx(p)


def test_differences_that_are_equal_but_for_rounding_errors_are_equal() -> None:
    pair = pair_of([0.3, 0.2, 0.711], [0.2, 0.1, 0.711])
    assert pair.differences == (0.1, 0.1, 0.0)
    assert 0.3 - 0.2 != 0.2 - 0.1


def test_with_few_splits_p_cannot_be_small() -> None:
    five = compared(*[0.01 * k for k in range(1, 6)])
    assert five.smallest_p == five.wilcoxon_p == pytest.approx(1 / 16)
    assert not five.telling
    assert compared(*[0.01 * k for k in range(1, 7)]).telling
    assert not compared(0.0, *[0.01 * k for k in range(1, 6)]).telling


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
