"""`kryograph.experiments.suggest_rows`: gains over random labels, draw by draw."""

from __future__ import annotations

import pytest

from kryograph.experiments.suggest_rows import SuggestRow, gains


def row(graph: str, seed: int, rule: str, per_class: int, accuracy: float | None) -> SuggestRow:
    return SuggestRow(graph, 60, seed, rule, "fit", per_class, 2 * per_class, "0123", accuracy)


def test_gains_are_paired_by_draw_and_number_of_labels() -> None:
    rows = [
        *(row("a", 0, "random", 5, 0.5), row("a", 0, "random", 10, 0.6)),
        *(row("a", 0, "coverage", 5, 0.6), row("a", 0, "coverage", 10, 0.6)),
        *(row("a", 1, "random", 5, 0.7), row("a", 1, "random", 10, 0.8)),
        *(row("a", 1, "coverage", 5, 0.7), row("a", 1, "coverage", 10, 0.9)),
    ]
    (gain,) = gains(rows)
    assert (gain.graph, gain.rule, gain.count) == ("a", "coverage", 2)
    assert gain.per_class == pytest.approx({5: 5.0, 10: 5.0})
    assert gain.mean == pytest.approx(5.0)
    assert gain.half == pytest.approx(0.0, abs=1e-9)
    assert gain.random == pytest.approx(0.65)


def test_an_incomplete_draw_is_left_out() -> None:
    rows = [
        *(row("a", 0, "random", 5, 0.5), row("a", 0, "random", 10, 0.6)),
        *(row("a", 0, "coverage", 5, 0.6), row("a", 0, "coverage", 10, 0.6)),
        *(row("a", 1, "random", 5, 0.7), row("a", 1, "coverage", 5, 0.1)),
        *(row("b", 0, "coverage", 5, 0.1), row("b", 0, "coverage", 10, None)),
    ]
    (gain,) = gains(rows)
    assert (gain.count, gain.half) == (1, None)
    assert gain.per_class == pytest.approx({5: 10.0, 10: 0.0})


def test_all_graphs_count_alike() -> None:
    rows = [
        *(row("a", seed, "random", 5, 0.5) for seed in range(3)),
        *(row("a", seed, "coverage", 5, 0.6) for seed in range(3)),
        *(row("b", 0, "random", 5, 0.5), row("b", 0, "coverage", 5, 0.3)),
    ]
    first, second, together = gains(rows)
    assert (first.mean, second.mean) == (pytest.approx(10), pytest.approx(-20))
    assert (together.graph, together.count) == ("", 2)
    assert together.mean == pytest.approx(-5)


def test_without_random_rows_there_is_no_gain() -> None:
    assert gains([row("a", 0, "coverage", 5, 0.6)]) == []
