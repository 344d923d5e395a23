"""`kryograph label`: what it refuses, and a session from start to Ctrl-C in a real process."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kryograph.cli import label

TABLES = Path(__file__).parents[1] / "golden" / "tables"
FILES = ("--edges", TABLES / "edges.csv", "--nodes", TABLES / "nodes.csv")

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "What is to be labelled? Name the folder of a fit, or tables"),
        ((*FILES, "--classes", "a,b"), "Where are the labels to be kept? Say --session FOLDER"),
        ((*FILES, "--session", "s"), "There must be at least two classes, and there are no labels"),
        ((*FILES, "--session", "s", "--classes", "a"), "there are only 'a'"),
        ((*FILES, "--session", "s", "--checks", "1.5"), "--checks must be from 0 to 1"),
        ((*FILES, "--session", "s", "--system", "gnc"), "Unknown system 'gnc'"),
        ((*FILES, "--session", "s", "--port", "-1"), "--port must be at least 0"),
        (("nowhere", "--session", "s"), "There is no folder nowhere"),
        ((TABLES, "--session", "s"), "the folder of a fit?"),
        ((TABLES, *FILES, "--session", "s"), "What is to be labelled?"),
        ((*FILES, "--label", "tpoic", "--session", "s"), "did you mean 'topic'?"),
    ],
)
def test_misuse_is_one_sentence(
    run: Run, arguments: Any, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("label", *arguments)
    assert (code, out) == (2, "")
    assert reason in " ".join(err.split())
    assert not (tmp_path / "s").exists()


def test_the_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(label, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    code, _, err = run("label", *FILES, "--session", "s", "--classes", "a,b")
    assert code == 2
    assert "needs uvicorn: install kryograph[label]" in err


def test_the_plan_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("label", *FILES, "--label", "topic", "--check")
    assert (code, out) == (0, "")
    assert "topic -> label" in err
    assert list(tmp_path.iterdir()) == []


class Server:
    """The command in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "kryograph", "label", *map(str, arguments), "--no-browser"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def ask(self, path: str, body: Any = None) -> Any:
        origin, _, token = self.address.partition("/#")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(origin + path, content, headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def stop(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.mark.slow
def test_labels_of_a_session_go_into_a_fit(run: Run, tmp_path: Path) -> None:
    session = tmp_path / "s"
    server = Server(*FILES, "--label", "topic", "--session", session, "--by", "eve", "--checks", 0)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#[\w-]{32}", server.address)
    state = server.ask("/api/item")
    known = state["counts"]["labelled"]
    assert "length" in dict(state["item"]["fields"])
    for number in range(3):
        node = state["item"]["node"]
        decision = {"id": str(number), "op": "label", "node": node, "label": "class 1"}
        state = server.ask("/api/labels", decision)
    code, out, err = server.stop()
    assert (code, out) == (0, f"3 labels: {session / 'labels.csv'}\n")
    assert "Traceback" not in err
    rows = (session / "labels.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + known + 3
    again = tmp_path / "again"
    command = ("fit", *FILES, "--labels", session / "labels.csv", "--label", "topic")
    code, _, err = run(*command, "--system", "lp", "--out", again)
    assert code == 0, err
    assert (again / "predictions.csv").exists()
    server = Server(again, "--session", tmp_path / "of run", "--system", "fast")
    state = server.ask("/api/item")
    assert state["counts"]["labelled"] == known + 3
    assert state["full"]["automatic"] is False
    assert server.stop()[:2] == (0, f"0 labels: {tmp_path / 'of run' / 'labels.csv'}\n")
