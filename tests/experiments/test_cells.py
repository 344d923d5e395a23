from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kryograph.experiments.cells import CellResult, gather
from kryograph.experiments.result_tables import Cell, result_table
from kryograph.experiments.tuned import Tuned
from kryograph.runs.job import Job
from kryograph.runs.perform import failed_row
from kryograph.runs.store import Row
from kryograph.systems import system

CELL = result_table("table2").cell("gcn", "Cora 1%")
PAPER = 0.623


def rows(*scores: float, cell: Cell = CELL, **changes: object) -> list[Row]:
    method = system(cell.system, changes)
    source = "by hand" if changes else "default"
    return [
        Job(method, source, cell.scenario, seed).row(test_accuracy=score, seconds=1.0)
        for seed, score in enumerate(scores)
    ]


def verdict(*scores: float, cell: Cell = CELL) -> str:
    return CellResult(cell, tuple(rows(*scores, cell=cell))).verdict


def test_verdicts() -> None:
    assert verdict(0.62, 0.63, 0.625) == "reproduced"
    assert verdict(0.70, 0.701, 0.702) == "above"
    assert verdict(0.50, 0.501, 0.502) == "below"
    assert verdict(0.70) == "one run"
    assert verdict() == "not run"
    assert (
        verdict(0.70, 0.71, cell=result_table("table1").cell("m3s", "Cora 5%")) == "nothing printed"
    )


def test_the_interval_includes_its_ends() -> None:
    # Equal runs: the interval is a point.
    assert verdict(PAPER, PAPER) == "reproduced"


def test_a_cell_for_programs() -> None:
    found = CellResult(CELL, tuple(rows(0.6, 0.64))).as_dict()
    assert json.loads(json.dumps(found)) == found
    wanted = ("table", "system", "dataset", "label_rate", "n", "mean", "paper", "settings_source")
    values = ["table2", "gcn", "cora", "1%", 2, pytest.approx(0.62), PAPER, "default"]
    assert [found[name] for name in wanted] == values
    assert found["difference"] == pytest.approx(-0.003)
    assert found["ci95"] == pytest.approx([0.365876, 0.874124], abs=1e-6)
    assert CellResult(CELL, ()).as_dict()["mean"] is None


def test_failures_are_shown_unless_the_run_was_repeated() -> None:
    job = Job(system("gcn"), "default", CELL.scenario, 0)
    bad = failed_row(job, ValueError("No."))
    [only_bad] = gather([CELL], [bad])
    assert (only_bad.verdict, only_bad.as_dict()["failures"]) == ("failed", ["ValueError: No."])
    [repeated] = gather([CELL], [bad, *rows(0.6)])
    assert (repeated.verdict, repeated.failures) == ("one run", ())
    [beside] = gather([CELL], [bad, *rows(0.6, 0.7)[1:]])
    assert (len(beside.rows), len(beside.failures)) == (1, 1)


def test_runs_of_other_columns_and_rules_are_not_counted() -> None:
    other = result_table("table1").cell("gcn", "Cora 1%")
    [found] = gather([CELL], rows(0.6, 0.7, cell=other))
    assert found.rows == ()


def test_the_settings_asked_for_are_shown_else_those_with_the_most_runs() -> None:
    tuned = [Tuned(system("gcn", {"hidden": 99}), CELL.scenario, 0.7, "here")]
    both = [*rows(0.6, 0.61), *rows(0.7, hidden=99)]
    [asked] = gather([CELL], both, "tuned", tuned)
    [default] = gather([CELL], both, "default", tuned)
    [without] = gather([CELL], rows(0.6, 0.61) + rows(0.5, 0.5, 0.5, hidden=5), "tuned", tuned)
    assert [row.test_accuracy for row in asked.rows] == [0.7]
    assert [row.test_accuracy for row in default.rows] == [0.6, 0.61]
    assert len(without.rows) == 3


def test_what_was_not_run_gives_way_to_the_columns_own_settings() -> None:
    many = rows(0.5, 0.5, 0.5, hidden=5)
    [default] = gather([CELL], many + rows(0.6, 0.61), "tuned")
    assert [row.test_accuracy for row in default.rows] == [0.6, 0.61]


def judged(cell: Cell, *scores: tuple[float, float], **changes: object) -> list[Row]:
    """Runs with accuracies on validation and on test nodes."""
    made = rows(*(test for _, test in scores), cell=cell, **changes)
    return [replace(row, validation_accuracy=v) for row, (v, _) in zip(made, scores, strict=True)]


def test_of_several_settings_each_seed_has_what_its_validation_labels_prefer() -> None:
    tuned = [Tuned(system("gcn", {"hidden": 99}), CELL.scenario, 0.7, "here")]
    own = judged(CELL, (0.70, 0.60), (0.70, 0.61), (0.70, 0.62), hidden=99)
    default = judged(CELL, (0.69, 0.90), (0.71, 0.50), (0.70, 0.95))
    [found] = gather([CELL], default + own, "best", tuned)
    # Test scores have no say: 0.90 is not taken, 0.50 is. Of equals the column's own is taken.
    assert [row.test_accuracy for row in found.rows] == [0.60, 0.50, 0.62]
    assert (found.setting_count, found.by_one_setting.rows) == (2, tuple(own))
    assert found.settings_source == "the best of up to 2 on each split's validation labels"
    assert found.by_one_setting.settings_source == "by hand"
    [fewer] = gather([CELL], default + own[:1], "best", tuned)
    assert [row.test_accuracy for row in fewer.rows] == [0.60, 0.50, 0.95]
    [one] = gather([CELL], default + own, "tuned", tuned)
    assert (one.rows, one.by_one_setting) == (tuple(own), one)


def test_a_run_that_failed_is_shown_though_other_settings_did_not() -> None:
    tuned = [Tuned(system("gcn", {"hidden": 99}), CELL.scenario, 0.7, "here")]
    bad = failed_row(Job(tuned[0].system, "tuned", CELL.scenario, 0), ValueError("No."))
    [found] = gather([CELL], [bad, *rows(0.6)], "best", tuned)
    assert ([row.test_accuracy for row in found.rows], found.failures) == ([0.6], (bad,))


def test_what_a_search_saw_belongs_to_the_column_and_the_settings_that_it_was_made_for() -> None:
    honest = result_table("table1").cell("gcn", "Cora 1%")

    def searched(cell: Cell, split: str | None, which: str = "best", hidden: int = 99) -> object:
        found = Tuned(system("gcn", {"hidden": 99}), cell.scenario, 0.7, "here", split)
        [result] = gather([cell], rows(0.6, cell=cell, hidden=hidden), which, [found])
        return result.searched

    assert searched(honest, "1%") == 0.7
    assert searched(honest, "3%") is None
    assert searched(honest, None) is None
    assert searched(honest, "1%", which="default") is None
    assert searched(honest, "1%", hidden=98) is None
    # Training has seen the labels that judge a trial: it chose its epoch by them.
    assert searched(CELL, "1%") is None


def test_of_settings_with_equally_many_runs_the_latest_are_taken() -> None:
    old = [replace(row, finished="2026-01-01") for row in rows(0.5, 0.5, hidden=5)]
    new = [replace(row, finished="2026-02-01") for row in rows(0.6, 0.6, hidden=6)]
    for stored in (old + new, new + old):
        [result] = gather([CELL], stored)
        assert result.rows == tuple(new)
