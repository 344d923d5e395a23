"""`kryograph reproduce figure…`, `theory` and `depth` from end to end, at the small size."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kryograph.cli.figures import FIGURES

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]


def answer(run: Run, folder: Path, *arguments: str) -> dict[str, Any]:
    code, out, err = run(*arguments, "--quick", "--json", "--out", folder)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    for file in found["files"]:
        assert Path(file).stat().st_size > 0
    return found


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_figure1_is_three_architectures_and_three_activations(run: Run, tmp_path: Path) -> None:
    size = ("--layers", "12", "--repetitions", "2")
    found = answer(run, tmp_path, "reproduce", "figure1", *size)
    assert set(found["mean_rank"]) == {
        f"{name} {f}"
        for name in ("gcn", "snowball", "truncated-krylov")
        for f in ("relu", "tanh", "identity")
    }
    assert found["mean_rank"]["gcn relu"]["10"] < 20
    assert found["mean_rank"]["gcn tanh"]["10"] > 30
    assert (found["experiment"]["layers"], found["experiment"]["repetitions"]) == (12, 2)
    written = table(tmp_path, "figure1")
    assert len(written) == 9 * 12
    assert set(written[0]) == {"architecture", "activation", "layer", "mean", "std"}


def test_figure_ranks_has_a_transposed_view_and_a_table(run: Run, tmp_path: Path) -> None:
    size = ("--quick", "--layers", "2", "--repetitions", "1", "--out", tmp_path)
    code, out, err = run("reproduce", "figure-ranks", *size)
    assert code == 0, err
    assert "snowball tanhshrink" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "figure-ranks-transposed.png",
        "figure-ranks-transposed.svg",
        *(f"figure-ranks.{kind}" for kind in ("csv", "json", "png", "svg")),
    ]
    assert len(table(tmp_path, "figure-ranks")) == 30 * 2


def test_the_spectrum_of_a_graph_has_a_row_for_every_node(run: Run, tmp_path: Path) -> None:
    found = answer(run, tmp_path, "reproduce", "figure-spectrum")
    assert found["graphs"]["synthetic"]["nodes"] == 300
    assert found["graphs"]["synthetic"]["largest_singular_value_sym"] == pytest.approx(1)
    assert found["graphs"]["synthetic"]["largest_singular_value_rw"] > 1
    assert len(table(tmp_path, "figure-spectrum")) == 300


def test_every_node_has_a_place_for_every_proposal(run: Run, tmp_path: Path) -> None:
    found = answer(run, tmp_path, "reproduce", "figure-tsne")
    assert list(found["systems"]) == ["linear-snowball", "snowball", "truncated-krylov"]
    assert all(system["test_accuracy"] > 0.4 for system in found["systems"].values())
    assert len(table(tmp_path, "figure-tsne")) == 3 * 300


def test_depth_has_a_point_for_every_variant_and_depth(run: Run, tmp_path: Path) -> None:
    found = answer(run, tmp_path, "depth", "--depths", "2,1", "--seeds", "2")
    assert [(p["variant"], p["depth"]) for p in found["points"][:2]] == [
        ("GCN, ReLU", 1),
        ("GCN, tanh", 1),
    ]
    assert len(found["points"]) == 10
    assert all(point["runs"] == 2 for point in found["points"])
    assert len(table(tmp_path, "depth")) == 10
    code, out, _ = run("depth", "--quick", "--depths", "1", "--seeds", "1", "--out", tmp_path / "b")
    assert code == 0
    assert "truncated Krylov" in out


def test_theory_says_what_the_theorems_say(run: Run, tmp_path: Path) -> None:
    found = answer(run, tmp_path, "theory")
    lemma = found["lemma1"]["synthetic"]
    assert lemma["rate"] == pytest.approx(lemma["second_eigenvalue"], abs=0.01)
    assert all(ranks["last_rank"] <= int(k) for k, ranks in found["theorem1"].items())
    assert all(fate["lowered"] == 0 for fate in found["theorem2"] if fate["function"] == "tanh")
    assert max(found["linear_snowball_residual"].values()) < 1e-14
    span = found["span"]["synthetic"]
    assert span["grade"] == len(span["dimensions"])
    assert span["dimensions"] == sorted(span["dimensions"])
    assert [row["order"] for row in found["accuracy"]["synthetic"]] == [1, 2]
    experiments = {row["experiment"] for row in table(tmp_path, "theory")}
    assert experiments == {
        *("lemma1", "theorem1", "theorem2", "linear-snowball", "span", "accuracy"),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "figure1", "--activations", "rleu"), "did you mean 'relu'"),
        (("reproduce", "figure-tsne", "--dataset", "coar"), "did you mean 'cora'"),
        (("reproduce", "figure-spectrum", "--datasets", "cora,coar"), "did you mean 'cora'"),
        (("depth", "--depths", "0,1"), "Depths must be at least 1; got 0, 1"),
        (
            ("depth", "--depths", "deep"),
            "--depths takes whole numbers with commas",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(*arguments, "--out", tmp_path / "figures")
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize(
    "command", [*(("reproduce", name) for name in FIGURES), ("theory",), ("depth",)]
)
def test_an_existing_figure_is_kept_before_anything_is_computed(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    mine = tmp_path / f"{command[-1]}.png"
    mine.write_text("mine")
    code, _, err = run(*command, "--out", tmp_path)
    assert code == 2
    assert f"{mine} exists already" in err
    assert mine.read_text() == "mine"


def test_every_command_has_an_example(run: Run) -> None:
    for command in (*(("reproduce", name) for name in FIGURES), ("theory",), ("depth",)):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert "Example:\n    kryograph " + " ".join(command) in out


def test_the_command_line_starts_without_what_draws() -> None:
    test = "import sys, kryograph.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", test], check=False).returncode == 0
