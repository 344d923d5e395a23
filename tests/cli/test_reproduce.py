from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kryograph.cli.reproduce import fill
from kryograph.errors import UsageError
from kryograph.experiments.cells import gather
from kryograph.experiments.result_tables import find_table
from kryograph.experiments.tuned import Tuned, add_tuned, read_tuned, tuned_file
from kryograph.runs.job import Scenario
from kryograph.runs.store import Store
from kryograph.systems import system

Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.slow

COLUMN = Scenario("synthetic", "2%", "validation")
TABLE = """
title = "A small table"
source = "made for this test"
protocol = "validation"
columns = [{ name = "Synthetic 2%", dataset = "synthetic", split = "2%" }]

[published]
prototypes = [50.0]
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table with one cell, whose runs take no time."""
    path = tmp_path / "mine.toml"
    path.write_text(TABLE)
    return str(path)


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {
        "systems": None,
        "columns": None,
        "number_of_runs": 1,
        "which": "best",
        "budget": "5m",
        "workers": 1,
        "retry": False,
        "store_file": tmp_path / "runs.sqlite",
        "data_dir": None,
    }


def test_fill_does_what_is_missing_once(
    table: str, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(table, **options)
    err = capsys.readouterr().err
    assert "1 cells, 1 runs; 0 of them are in" in err
    assert "1/1 prototypes, synthetic 2%, validation, seed 0: test" in err
    assert "1 runs were added" in err
    fill(table, **options)
    assert "No run is missing" in capsys.readouterr().err
    assert len(Store(options["store_file"]).rows()) == 1


def test_fill_uses_tuned_settings_beside_the_store(table: str, options: dict[str, Any]) -> None:
    mine = system("prototypes", {"hops": 3})
    add_tuned(tuned_file(options["store_file"]), Tuned(mine, COLUMN, 0.7, "by hand"))
    fill(table, **options | {"which": "tuned"})
    [row] = Store(options["store_file"]).rows()
    assert (row.settings["hops"], row.settings_source) == (3, "tuned")


def test_fill_runs_all_best_settings_where_validation_labels_can_choose(
    table: str, options: dict[str, Any]
) -> None:
    mine = system("prototypes", {"hops": 3})
    add_tuned(tuned_file(options["store_file"]), Tuned(mine, COLUMN, 0.7, "by hand"))
    fill(table, **options)
    rows = Store(options["store_file"]).rows()
    assert [(row.seed, row.settings_source) for row in rows] == [(0, "tuned"), (0, "default")]
    cells = find_table(str(table)).cells
    [result] = gather(cells, rows, "best", read_tuned(tuned_file(options["store_file"])))
    assert (len(result.rows), result.setting_count) == (1, 2)
    scores = [row.validation_accuracy for row in rows]
    assert result.rows[0].validation_accuracy == max(score for score in scores if score)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"which": "tuned"}, "None of these cells has tuned settings"),
        ({"which": "bets"}, "Unknown kind of settings 'bets'"),
        ({"budget": "5"}, "such as 10m"),
    ],
)
def test_fill_refuses_misuse_before_any_run(
    table: str, options: dict[str, Any], changes: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        fill(table, **options | changes)
    assert not options["store_file"].exists()


def test_fill_names_unknown_columns(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Unknown column 'Cora 9%'"):
        fill("table2", **options | {"columns": ["Cora 9%"]})


def test_own_names_the_file_with_a_mistake(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text("titel = 1")
    code, out, err = run("reproduce", "own", path)
    assert (code, out) == (2, "")
    assert "t.toml: Unknown key 'titel'" in err
