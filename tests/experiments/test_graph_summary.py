"""`kryograph.experiments.graph_summary`: means, regret and differences of rows, by hand."""

from __future__ import annotations

import pytest

from kryograph.experiments.graph_rows import PORTFOLIO
from kryograph.experiments.graph_summary import summarise_rows
from tests.tiny_graphs import FEATURES, SUM, made_rows


def test_settings_have_the_means_of_their_draws() -> None:
    first, second, third = summarise_rows(made_rows()).settings
    assert (first.graph, first.per_class, first.n, first.draws) == ("a", 3, 60, 2)
    assert first.accuracy == pytest.approx({PORTFOLIO: 0.65, FEATURES: 0.65, SUM: 0.65, "lp": 0.4})
    assert first.balanced_accuracy[PORTFOLIO] == pytest.approx(0.55)
    assert (second.per_class, second.draws) == (10, 1)
    assert (third.graph, third.best_head, third.best_reference) == ("b <1>", SUM, FEATURES)
    assert third.reference_regret == pytest.approx(-0.4)


def test_regret_is_to_the_best_head_of_each_setting() -> None:
    summary = summarise_rows(made_rows())
    assert [setting.regret for setting in summary.settings] == pytest.approx([0, 0.04, -0.1])
    assert summary.regret is not None
    assert summary.regret.mean == pytest.approx(-0.02)
    assert (summary.regret.median, summary.regret.worst) == pytest.approx((0, 0.04))
    assert summary.regret.by_per_class == pytest.approx({"3": -0.05, "10": 0.04})
    assert summary.balanced_regret is not None
    assert summary.balanced_regret.mean == pytest.approx(-0.02)
    assert summary.reference_regret is not None
    assert summary.reference_regret.mean == pytest.approx((0 - 0.1 - 0.4) / 3)


def test_differences_are_on_common_draws() -> None:
    # lp has a result on the first draw only, where the portfolio has 60 % and it has 40 %.
    differences = summarise_rows(made_rows()).differences
    assert differences == pytest.approx({FEATURES: (0 + 0.1 + 0.4) / 3, "lp": 0.2})


def test_means_of_the_portfolio_are_over_all_draws() -> None:
    means = summarise_rows(made_rows()).means
    assert means["accuracy"] == pytest.approx({"all": 0.75, "3": 2.2 / 3, "10": 0.8})
    assert means["interval_holds"] == pytest.approx({"all": 0.75, "3": 1.0, "10": 0.0})
    assert means["coverage"]["all"] == pytest.approx(0.9)


def test_errors_and_the_time_of_the_basis_are_kept() -> None:
    summary = summarise_rows(made_rows())
    assert summary.errors == (("a", "lp", "It is <too> slow.", 1),)
    assert summary.basis_seconds == {"a": 0.25}
    assert summary.settings[0].seconds["lp"] == 0.5
    values = summary.as_dict()
    assert values["settings"][1]["regret"] == pytest.approx(0.04)
    assert values["regret"]["worst"] == pytest.approx(0.04)


def test_no_rows_make_an_empty_summary() -> None:
    summary = summarise_rows([])
    assert summary.settings == ()
    assert summary.regret is None
    assert summary.means == {}


def test_without_the_portfolio_there_is_no_regret() -> None:
    rows = [row for row in made_rows() if row.method != PORTFOLIO]
    summary = summarise_rows(rows)
    assert len(summary.settings) == 3
    assert summary.settings[0].reference_regret is None
    assert summary.regret is None
    assert summary.differences == {}
