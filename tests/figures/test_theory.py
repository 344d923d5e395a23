"""`kryograph.figures.theory`: all experiments on a small graph, their tables, rows and panels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from kryograph.data import Dataset
from kryograph.figures.theorems import convergence, deep_ranks, rank_changes, span
from kryograph.figures.theory import (
    QUICK_THEORY,
    Theory,
    draw_theory,
    investigate,
    theory_rows,
    theory_summary,
    theory_tables,
)


def test_every_experiment_has_its_size_and_seed(data: Dataset) -> None:
    stages: list[tuple[str, float]] = []
    options = replace(QUICK_THEORY, orders=(1,), seeds=1, seed=5, stop="3")
    theory = investigate({"small": data}, options, lambda *stage: stages.append(stage))
    expected = convergence(data.graph, 200, seed=5)
    assert np.array_equal(theory.convergence["small"].distances, expected.distances)
    assert theory.ranks == {k: deep_ranks(k, 60, 12, 8, 60, seed=5) for k in (1, 2)}
    assert theory.rank_changes == rank_changes(draws=100, seed=5)
    assert theory.spans == {"small": span(data.graph, 10)}
    assert list(theory.residuals) == [1, 2]
    assert max(theory.residuals.values()) < 1e-14
    [row] = theory.accuracy["small"]
    assert (row["order"], row["runs"], row["low"]) == (1, 1, None)
    assert 0 < row["mean"] < 1
    shares = [share for _, share in stages]
    assert shares == sorted(shares)
    first_step = 0.12 + 0.18 * theory.spans["small"].dimensions[0] / 300
    assert ("span of K_m on small", first_step) in stages


def test_tables_are_rounded_for_reading(theory: Theory) -> None:
    tables = {headings[0]: (headings, list(rows)) for headings, rows in theory_tables(theory)}
    assert tables["Lemma 1: powers of L"][1] == [("cora", "78", "0.500000", "0.500000")]
    assert tables["Theorem 1: deep GCN, ReLU"][1] == [("k = 2 components", "16", "2")]
    assert tables["Theorem 2: two columns"][1] == [
        ("relu, independent", "2", "56.2", "43.8", "0.0"),
        ("tanh, dependent", "2", "0.0", "0.0", "100.0"),
    ]
    assert tables["linear Snowball as K V"][1] == [("1 layers", "2.0e-16"), ("3 layers", "3.0e-16")]
    assert tables["span of K_m"][1] == [
        ("cora", "2,000", "3", "1,500", "> 2"),
        ("toy", "4", "1", "2", "2"),
    ]
    assert tables["truncated Krylov, cora: m"][1] == [
        ("1", "–", "– to –", "0"),
        ("2", "75.0", "74.0 to 77.0", "2"),
    ]
    for headings, rows in tables.values():
        assert {len(row) for row in rows} == {len(headings)}


def test_rows_hold_every_point_of_every_curve(theory: Theory) -> None:
    points = [tuple(row.values()) for row in theory_rows(theory)]
    assert points == [
        ("lemma1", "cora", 0, 1.0),
        ("lemma1", "cora", 1, 0.5),
        ("lemma1", "cora", 2, 0.25),
        ("lemma1", "cora", 3, 1e-15),
        ("theorem1", "k = 2", 1, 16),
        ("theorem1", "k = 2", 2, 8),
        ("theorem1", "k = 2", 3, 2),
        ("theorem2", "relu, independent", 2, 0.5625),
        ("theorem2", "tanh, dependent", 2, 0.0),
        ("linear-snowball", "residual", 1, 2e-16),
        ("linear-snowball", "residual", 3, 3e-16),
        ("span", "cora", 1, 500),
        ("span", "cora", 2, 1500),
        ("span", "toy", 1, 1),
        ("span", "toy", 2, 2),
        ("accuracy", "cora", 1, None),
        ("accuracy", "cora", 2, 0.75),
    ]
    assert list(theory_rows(theory)[0]) == ["experiment", "line", "at", "value"]


def test_the_summary_has_the_numbers_without_the_curves(theory: Theory) -> None:
    summary = theory_summary(theory)
    lemma = {"components": 78, "second_eigenvalue": 0.5, "rate": pytest.approx(0.5)}
    assert summary["lemma1"] == {"cora": lemma}
    assert summary["theorem1"] == {"2": {"last_rank": 2}}
    assert summary["theorem2"][1]["raised"] == 1.0
    assert summary["linear_snowball_residual"] == {"1": 2e-16, "3": 3e-16}
    assert (summary["span"]["toy"]["grade"], summary["span"]["cora"]["grade"]) == (2, None)
    assert [row["mean"] for row in summary["accuracy"]["cora"]] == [None, 0.75]


def lines(axis: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Coordinates of the labelled lines of a panel."""
    return {
        str(line.get_label()): (
            np.asarray(line.get_xdata(), float).tolist(),
            np.asarray(line.get_ydata(), float).tolist(),
        )
        for line in axis.lines
    }


def test_panels_stand_in_the_order_of_the_paper(theory: Theory) -> None:
    assert [axis.get_title() for axis in draw_theory(theory).axes] == [
        "(a) Lemma 1: powers of L",
        "(b) Theorem 1: rank at most k",
        "(c) Theorem 2: rank lost",
        "(d) Linear Snowball is Krylov",
        "(e) Blocks m: span of K$_m$",
        "(f) Blocks m: accuracy",
    ]


def test_distances_below_rounding_are_not_drawn_and_the_slope_goes_through_the_last(
    theory: Theory,
) -> None:
    lemma1 = draw_theory(theory).axes[0]
    assert lines(lemma1)["Cora"] == ([0, 1, 2], [1, 0.5, 0.25])
    slope = lemma1.lines[1]
    assert list(slope.get_ydata()) == pytest.approx([1, 0.5, 0.25])
    assert lemma1.get_yscale() == "log"


def test_ranks_start_at_layer_one_and_fall_to_the_number_of_components(theory: Theory) -> None:
    theorem1 = draw_theory(theory).axes[1]
    assert lines(theorem1)["k = 2"] == ([1, 2, 3], [16, 8, 2])
    bound = theorem1.lines[0]
    assert list(bound.get_ydata()) == [2, 2]
    ticks = [label.get_text() for label in theorem1.get_yticklabels()]
    assert ticks == ["1", "2", "4", "8", "16"]


def test_shares_and_residuals_are_drawn(theory: Theory) -> None:
    axes = draw_theory(theory).axes
    shares = lines(axes[2])
    assert shares["ReLU, independent"] == ([2], [56.25])
    assert shares["tanh, dependent"] == ([2], [0])
    assert shares["ReLU, dependent"] == ([], [])
    assert lines(axes[3])["relative residual"] == ([1, 3], [2e-16, 3e-16])


def test_spans_are_shares_of_the_nodes(theory: Theory) -> None:
    spans = lines(draw_theory(theory).axes[4])
    assert spans == {"Cora": ([1, 2], [25, 75]), "toy": ([1, 2], [25, 50])}


def test_accuracies_are_per_cent_and_runs_that_all_diverged_have_no_point(theory: Theory) -> None:
    accuracy = draw_theory(theory).axes[5]
    [container] = accuracy.containers
    points, _, [bars] = container.lines  # type: ignore[attr-defined]
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([2], [75])
    [bar] = bars.get_segments()
    assert bar[:, 1].tolist() == pytest.approx([74, 77])
    assert [label.get_text() for label in accuracy.get_xticklabels()] == ["1", "2"]
