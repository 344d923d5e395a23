from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kryograph.experiments.cells import CellResult
from kryograph.experiments.comparison import (
    Comparison,
    compare_first,
    paired,
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


def test_compare_first_lists_pairs_with_fewer_than_two_splits_in_common() -> None:
    scores = {
        ("snowball", "Cora 1%"): [0.8, 0.7],
        ("gcn", "Cora 1%"): [0.7, 0.6],
        ("gat", "Cora 1%"): [0.7],
    }
    results = [result for result in cells(scores) if result.cell.heading == "Cora 1%"]
    comparisons, incomparable = compare_first(results, ["snowball", "gcn", "gat"])
    assert [(c.second, c.heading, round(c.mean, 9)) for c in comparisons] == [
        ("gcn", "Cora 1%", 0.1)
    ]
    assert incomparable == ["snowball and gat in Cora 1%"]
