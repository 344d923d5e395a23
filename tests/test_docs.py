"""Commands of all pages parse; programs and names of docs/own-graph.md and docs/theory.md work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

from kryograph import cli
from kryograph.bench import benchmark_summaries
from kryograph.data import toy
from kryograph.operators import operator

ROOT = Path(__file__).parents[1]
OWN_GRAPH, THEORY = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("own-graph.md", "theory.md")
)
TABLES = ROOT / "tests" / "golden" / "tables"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the tables that the page names."""
    for name in ("edges.csv", "nodes.csv"):
        for copy in (name, f"new_{name}"):
            text = (TABLES / name).read_text("utf-8")
            (tmp_path / copy).write_text(re.sub(r"\bn0\b", "bob", text), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_commands_of_own_graph_work_in_their_order(
    folder: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    commands = [
        shlex.split(line) for block in blocks(OWN_GRAPH, "sh") for line in block.splitlines()
    ]
    assert [words[1] for words in commands] == ["fit", "predict", "suggest", "explain"]
    for words in commands:
        code, _, messages = run(*words[1:])
        assert code == 0, messages
    for name in re.findall(r"^\| `run/([\w./]+)` ", OWN_GRAPH, re.MULTILINE):
        assert (folder / "run" / name).exists()
    assert (folder / "new.csv").exists()


@pytest.mark.slow
def test_programs_of_own_graph_work(folder: Path) -> None:
    names: dict[str, Any] = {}
    for program in blocks(OWN_GRAPH, "python"):
        exec(program, names)
    assert (folder / "saved" / "model" / "model.json").exists()
    assert (folder / "page.html").exists()
    assert names["labelled"].plan.tables == ["edges.csv", "nodes.csv"]


@pytest.mark.slow
def test_programs_of_python_work_in_their_order() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for program in blocks(page, "python"):
        exec(program, names)
    assert names["model"].transduction_.shape == (240,)
    assert names["scores"].min() > 0.7
    assert names["search"].best_params_["order"] == 6  # neighbours help on this graph
    assert names["weight"].grad.abs().sum() > 0
    assert names["explanation"].edge_mask.shape == (names["pyg"].num_edges,)


@pytest.mark.slow
def test_the_simulated_person_of_label_labels_three_nodes() -> None:
    [program] = blocks((ROOT / "docs" / "label.md").read_text("utf-8"), "python")
    names: dict[str, Any] = {}
    exec(program, names)
    labelled = names["labelled"]
    assert (labelled.given_labels >= 0).sum() == 4 + 3
    predicted = labelled.predictions()["predicted"].to_pylist()
    assert predicted == [name.split()[0] for name in labelled.graph.names]


def test_program_of_theory_works() -> None:
    [program] = blocks(THEORY, "python")
    names: dict[str, object] = {"L": operator(toy.cycle(6)), "X": np.eye(6, 2)}
    exec(program, names)
    assert names["grade"](names["L"], names["X"]) == 3  # type: ignore[operator]


def table_rows(heading: str) -> list[list[str]]:
    """The rows of all tables of theory.md whose heading line starts so."""
    lines = THEORY.splitlines()
    rows = []
    for number, line in enumerate(lines):
        if line.startswith(heading):
            table = takewhile(lambda text: text.startswith("|"), lines[number + 2 :])
            rows += [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    return rows


def test_files_of_theory_exist_and_define_the_names_beside_them() -> None:
    rows = table_rows("| symbol | meaning | name | file (`src/kryograph/`) |")
    assert len(rows) > 20
    for _, _, names, files in rows:
        texts = [
            (ROOT / "src" / "kryograph" / file).read_text("utf-8")
            for file in re.findall(r"`([\w/]+\.py)`", files)
        ]
        assert texts, files
        for name in re.findall(r"`([A-Za-z_]\w*)", names):
            assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{name}: {files}"


def test_commands_of_theory_exist() -> None:
    app = get_command(cli.app)
    for cells in table_rows("| command | figure |"):
        words = shlex.split(cells[0].strip("`"))[1:]
        command: Any = app
        for word in words:
            command = command.commands[word]
        assert (ROOT / "src" / "kryograph" / cells[2].strip("`")).exists()


PAGES = {"README.md": ROOT / "README.md"} | {path.name: path for path in ROOT.glob("docs/*.md")}
PLACEHOLDERS = {
    "SYSTEM": "gcn",
    "DATASET": "cora",
    "OPERATOR": "rw",
    "RUNS": "3",
    "K": "2",
    "NAME": "figure1",
}


def commands(page: str) -> list[list[str]]:
    """Words after `kryograph` of the commands of a page, in blocks and in sentences.

    A word in capitals stands for a value, and `…` for any value of an option.
    """
    lines = [
        line
        for block in blocks(page, "sh")
        for line in block.replace("\\\n", " ").splitlines()
        if "kryograph " in line
    ]
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    lines += re.findall(r"`((?:/usr/bin/time -v )?kryograph [^`]+)`", prose)
    lines = [re.sub("--[a-z-]+ …", "", line).partition("kryograph ")[2] for line in lines]
    return [
        [PLACEHOLDERS.get(word, word) for word in shlex.split(line, comments=True)]
        for line in lines
    ]


def test_the_reader_of_commands_sees_blocks_and_sentences() -> None:
    page = "```sh\nkryograph train \\\n --seeds K  # two\nls\n```\nSee ``kryograph``."
    assert commands(page) == [["train", "--seeds", "2"]]
    page += "\nSee `kryograph bench graphs --out … --draws 3`."
    assert commands(page)[1:] == [["bench", "graphs", "--draws", "3"]]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_every_page_parses(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands(PAGES[page].read_text("utf-8")):
        command: Any = get_command(cli.app)
        rest = list(words)
        while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
            assert rest[0] in command.commands, f"{page}: {shlex.join(words)}"
            command = command.commands[rest.pop(0)]
        for word in rest:  # options check that their files exist
            if re.fullmatch(r"[\w/]+\.(csv|toml|npz|parquet|graphml|gml)", word):
                Path(word).parent.mkdir(parents=True, exist_ok=True)
                Path(word).touch()
            elif re.fullmatch(r"run(/model)?", word):
                Path(word).mkdir(parents=True, exist_ok=True)
        if rest:
            try:
                command.make_context("kryograph", rest)
            except Exception as error:
                pytest.fail(f"{page}: {shlex.join(words)}: {error}")


# docs/benchmarks.md


def test_tables_of_benchmarks_are_made_from_the_results() -> None:
    path = ROOT / "docs" / "make_benchmarks.py"
    spec = spec_from_file_location("make_benchmarks", path)
    assert spec is not None
    assert spec.loader is not None
    make_benchmarks = module_from_spec(spec)
    spec.loader.exec_module(make_benchmarks)
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert make_benchmarks.updated(page) == page, "python docs/make_benchmarks.py"
    for name in benchmark_summaries():
        assert f"kryograph bench {name}\n" in page
        assert f"<!-- table {name} " in page
