from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kryograph.cli import main
from kryograph.experiments.tuned import find_tuned, read_tuned
from kryograph.runs.job import Scenario
from kryograph.tuning.outcome import TRIALS_SHOWN
from kryograph.tuning.problem import TuningProblem

pytestmark = pytest.mark.slow

Call = Callable[..., tuple[int, str, str]]

LP = ["lp", "--dataset", "synthetic", "--jobs", "1"]
"""A closed form: what a seed changes is which half of the validation nodes judges it."""


@pytest.fixture
def tune(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Call:
    """Runs the command; the exit code and what was said."""
    monkeypatch.setenv("KRYOGRAPH_STORE", str(tmp_path / "runs.sqlite"))

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kryograph", "tune", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return (left.value.code, *capsys.readouterr())

    return call


def test_the_winner_becomes_a_tuned_setting_and_a_second_call_goes_on(
    tune: Call, tmp_path: Path
) -> None:
    code, shown, said = tune(*LP, "--trials", "2")
    assert code == 0, said
    assert "Trials: 0 finished, 2 to do." in said
    assert "1/2 trial 0 (default): " in said
    assert "2/2 trial 1: " in said
    assert "winner: trial" in shown
    assert "default" in shown
    code, shown, said = tune(*LP, "--trials", "3", "--json")
    assert code == 0, said
    assert "Trials: 2 finished, 1 to do." in said
    found: dict[str, Any] = json.loads(shown)
    assert found["trials"] == {
        "complete": 3,
        "pruned": 0,
        "failed": 0,
        "over_budget": 0,
        "here": 1,
    }
    assert found["seeds"] == [1000, 1001]
    assert found["paper"] is None
    assert found["default"]["settings"] == {"alpha": 1e-6}
    assert found["winner"] == found["best"][0]
    assert len(found["best"]) == min(3, TRIALS_SHOWN)
    accuracy = found["winner"]["validation_accuracy"]
    assert accuracy == max(trial["validation_accuracy"] for trial in found["best"])
    assert accuracy >= found["default"]["validation_accuracy"]
    column = Scenario("synthetic", "public", "validation")
    tuned = find_tuned("lp", column, read_tuned(tmp_path / "tuned.toml"))
    assert tuned is not None
    assert tuned.system.settings.as_dict() == found["winner"]["settings"]
    assert tuned.validation_accuracy == pytest.approx(accuracy, abs=1e-4)
    assert tuned.provenance == found["provenance"]
    assert tuned.provenance.startswith(
        "kryograph tune lp --dataset synthetic --split public --protocol validation --trials 3 "
        "--seeds 2 --sampler tpe --budget 60s: tpe, 3 trials (0 pruned, 0 failed), "
        "each on 2 seeds from 1000; number "
    )
    assert str(tmp_path) not in tuned.provenance
    assert (tmp_path / "tuning.sqlite").exists()


def test_other_label_rates_take_the_same_settings(tune: Call, tmp_path: Path) -> None:
    rates = ["--label-rate", "1%", "--also", "2%, 3%"]
    code, _, said = tune(*LP, *rates, "--trials", "1", "--seeds", "1")
    assert code == 0, said
    found = read_tuned(tmp_path / "tuned.toml")
    rows = [
        find_tuned("lp", Scenario("synthetic", rate, "validation"), found)
        for rate in ("1%", "2%", "3%")
    ]
    assert None not in rows
    assert {row.provenance for row in rows if row} == {rows[0].provenance if rows[0] else ""}
    assert {row.searched for row in rows if row} == {"1%"}
    assert find_tuned("lp", Scenario("synthetic", "4%", "validation"), found) is None
    code, _, said = tune(*LP, "--label-rate", "1%", "--also", "half", "--trials", "1")
    assert code == 2
    assert "half" in said


def test_what_is_asked_for_is_tried_before_what_the_search_proposes(tune: Call) -> None:
    asked = ["--try", "alpha=0.001", "--try", "alpha=1e-5"]
    code, shown, said = tune(*LP, *asked, "--trials", "3", "--budget", "0.001s", "--json")
    assert code == 0, said
    assert "trial 1 (--try 'alpha=0.001')" in said
    found = json.loads(shown)
    tried = {trial["source"]: trial["settings"]["alpha"] for trial in found["best"]}
    assert tried == {"default": 1e-6, "--try 'alpha=0.001'": 1e-3, "--try 'alpha=1e-5'": 1e-5}
    assert " --budget 0.001s --try 'alpha=0.001' --try 'alpha=1e-5': tpe" in found["provenance"]
    code, _, said = tune(*LP, *asked, "--try", "alpha=0.01", "--trials", "4")
    assert code == 0, said
    assert "trial 3 (--try 'alpha=0.01')" in said


def test_ctrl_c_says_what_is_kept_and_writes_no_winner(
    tune: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, runs = TuningProblem.score, []

    def interrupted(*arguments: Any) -> float:
        runs.append(1)
        if len(runs) == 3:  # two of the first trial, one of the second
            raise KeyboardInterrupt
        return score(*arguments)

    monkeypatch.setattr(TuningProblem, "score", interrupted)
    code, shown, said = tune(*LP, "--trials", "3")
    assert (code, shown) == (130, "")
    assert "Stopped: 1 of 3 trials are finished and kept." in said
    assert not (tmp_path / "tuned.toml").exists()


def test_a_search_in_which_every_trial_fails_says_why(
    tune: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> float:
        raise ArithmeticError("too hot")

    monkeypatch.setattr(TuningProblem, "score", fails)
    code, shown, said = tune(*LP, "--trials", "2")
    assert (code, shown) == (1, "")
    assert "None of the 2 trials" in said.splitlines()[-1]
    assert "ArithmeticError: too hot" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gnc"], "Unknown system 'gnc': did you mean 'gcn'"),
        (["lp", "--dataset", "coar"], "Unknown data set 'coar': did you mean 'cora'"),
        ([*LP, "--split", "private"], "Unknown split 'private': there is 'public'"),
        ([*LP, "--label-rate", "many"], "The label rate 'many' is not a number"),
        ([*LP, "--label-rate", "1% leaky"], "The label rate '1% leaky' is not a number"),
        ([*LP, "--per-class", "0"], "--per-class must be at least 1; it is 0"),
        ([*LP, "--per-class", "2", "--label-rate", "1%"], "Give one of --split, --label-rate"),
        ([*LP, "--protocol", "test"], "Unknown protocol 'test'"),
        (
            [*LP, "--timeout", "soon"],
            "A duration is a number with s, m or h, such as 10m; it is 's",
        ),
        ([*LP, "--budget", "0s"], "A duration is a number with s, m or h"),
        ([*LP, "--fix", "alhpa=1"], "Unknown setting 'alhpa': did you mean 'alpha'"),
        ([*LP, "--fix", "alpha"], "The setting 'alpha' is searched from "),
        ([*LP, "--fix", "alpha=nan"], ", not 'nan'."),
        (
            ["gcn", *LP[1:], "--fix", "operator=up"],
            "The setting 'operator' is one of sym, rw, not 'up'.",
        ),
        ([*LP, "--try", "alpha=1e-6,alhpa=1"], "Unknown setting 'alhpa': did you mean 'alpha'"),
        ([*LP, "--try", ""], "Unknown setting ''"),
        ([*LP, "--sampler", "grid"], "Unknown sampler 'grid'"),
        ([*LP, "--storage", "here"], "--storage takes the address of a database"),
    ],
)
def test_bad_input_is_one_sentence(
    tune: Call, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    code, shown, said = tune(*arguments)
    assert (code, shown) == (2, "")
    assert said.startswith("kryograph: ")
    assert expected in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "tuned.toml").exists()
