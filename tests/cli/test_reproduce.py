from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kryograph.cli.reproduce import SweepOptions, fill, own, reproducer, split_commas
from kryograph.errors import UsageError
from kryograph.experiments.cells import gather
from kryograph.experiments.result_tables import Cell, result_table
from kryograph.experiments.tuned import Tuned, add_tuned, read_tuned, tuned_file
from kryograph.runs.job import Scenario
from kryograph.runs.store import Store
from kryograph.systems import system

pytestmark = pytest.mark.slow

COLUMN = Scenario("synthetic", "2%", "validation")
QUICK = Cell("mine", "prototypes", "Synthetic 2%", COLUMN, 0.5)
ORDER = SweepOptions(runs=1, which="best", budget="5m", jobs=1, retry=False, data_dir=None)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs.sqlite")


def test_what_is_missing_is_done_once(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    fill([QUICK], store, ORDER)
    said = capsys.readouterr().err
    assert "1 cells, 1 runs; 0 of them are in" in said
    assert "1/1 prototypes, synthetic 2%, validation, seed 0: test" in said
    assert "1 runs were added" in said
    fill([QUICK], store, ORDER)
    assert "Nothing is missing" in capsys.readouterr().err
    assert len(store.rows()) == 1


def test_tuned_settings_beside_the_store_are_used(store: Store) -> None:
    mine = system("prototypes", {"hops": 3})
    add_tuned(tuned_file(store.path), Tuned(mine, COLUMN, 0.7, "by hand"))
    fill([QUICK], store, replace(ORDER, which="tuned"))
    [row] = store.rows()
    assert (row.settings["hops"], row.settings_source) == (3, "tuned")


def test_the_best_settings_are_all_run_where_validation_labels_can_choose(store: Store) -> None:
    mine = system("prototypes", {"hops": 3})
    add_tuned(tuned_file(store.path), Tuned(mine, COLUMN, 0.7, "by hand"))
    fill([QUICK], store, ORDER)
    assert [(row.seed, row.settings_source) for row in store.rows()] == [
        *((0, "tuned"), (0, "default"))
    ]
    [result] = gather([QUICK], store.rows(), "best", read_tuned(tuned_file(store.path)))
    assert (len(result.rows), result.settings) == (1, 2)
    scores = [row.validation_accuracy for row in store.rows()]
    assert result.rows[0].validation_accuracy == max(score for score in scores if score)


def test_a_cell_without_tuned_settings_is_left_out(store: Store) -> None:
    with pytest.raises(UsageError, match="None of these cells has tuned settings"):
        fill([QUICK], store, SweepOptions(1, "tuned", "5m", 1, False, None))


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (SweepOptions(1, "best", "5m", 0, False, None), "--jobs must be at least 1"),
        (SweepOptions(0, "best", "5m", 1, False, None), "--runs must be at least 1"),
        (SweepOptions(1, "bets", "5m", 1, False, None), "Unknown kind of settings 'bets'"),
        (SweepOptions(1, "best", "5", 1, False, None), "such as 10m"),
    ],
)
def test_misuse_costs_no_run(store: Store, order: SweepOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fill([QUICK], store, order)
    assert not store.path.exists()


def test_a_published_setting_over_budget_gives_way(store: Store) -> None:
    """534 million weights: the widest cell of the paper."""
    wide = result_table("table1").part(["snowball"], ["Cora 4%"])
    from kryograph.cli.reproduce import _methods

    [(_, within, _)] = _methods(wide, store, SweepOptions(1, "paper", "10000h", 1, False, None))
    [(method, over, _)] = _methods(wide, store, SweepOptions(1, "paper", "1s", 1, False, None))
    assert within == "paper"
    assert over.endswith("as the paper's are over budget")
    assert method.settings.hidden < 1000


def test_lists_are_written_with_commas_or_as_several_options() -> None:
    assert split_commas(None) == []
    assert split_commas(["Cora 1%, PubMed 0.1%", "Cora 3%"]) == [
        "Cora 1%",
        "PubMed 0.1%",
        "Cora 3%",
    ]


def test_unknown_columns_are_said_before_anything_is_done(tmp_path: Path) -> None:
    command = reproducer("table2")
    with pytest.raises(UsageError, match="Unknown column 'Cora 9%'"):
        command(columns=["Cora 9%"], store=tmp_path / "runs.sqlite")


def test_a_table_of_ones_own_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("titel = 1")
    with pytest.raises(UsageError, match=r"t.toml: Unknown key 'titel'"):
        own(tmp_path / "t.toml")
