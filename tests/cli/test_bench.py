"""`kryograph bench`: the table and the JSON of every benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kryograph.bench import apply, benchmark_summaries, growth, load_benchmark, spmm
from kryograph.experiments import graph_accuracy
from tests.tiny_graphs import write_graph

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are not wrapped, and graphs are small."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(growth, "QUICK_GROWTH_NODES", (200, 400))
    monkeypatch.setattr(spmm, "QUICK_SPMM_NODES", (300,))
    monkeypatch.setattr(apply, "QUICK_APPLY_NODES", 200)


def answer(run: Run, *arguments: object) -> str:
    code, out, err = run("bench", *arguments)
    assert code == 0, err
    return out


def json_of(run: Run, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(answer(run, *arguments, "--json"))
    assert set(result["machine"]) >= {"cpu", "threads", "torch"}
    return result


@pytest.mark.parametrize("name", ["apply", pytest.param("growth", marks=pytest.mark.slow), "spmm"])
def test_bench_prints_the_result_as_json_and_as_tables(run: Run, name: str) -> None:
    record = load_benchmark(name)
    result = json_of(run, name, "--quick")
    for key, columns in record.columns.items():
        rows = result[key]
        values = rows.values() if isinstance(rows, dict) else rows
        keys = {column.key for column in columns} - {"name"}
        assert all(keys <= set(row) for row in values)
    printed = answer(run, name, "--quick")
    for columns in record.columns.values():
        for column in columns:
            assert column.heading in printed


@pytest.mark.slow
def test_bench_growth_prints_sizes_and_exponents(run: Run) -> None:
    printed = answer(run, "growth", "--quick")
    lines = [line.split() for line in printed.splitlines() if line.split()]
    assert [line[:2] for line in lines if line[0] == "snowball"][:2] == [
        ["snowball", "200"],
        ["snowball", "400"],
    ]
    assert any(line[0] == "exponent" for line in lines)


def test_bench_help_shows_the_summary_of_each_benchmark(run: Run) -> None:
    printed = answer(run, "--help")
    for name in benchmark_summaries():
        assert name in printed
    for name, summary in benchmark_summaries().items():
        command = " ".join(answer(run, name, "--help").split())
        assert summary in command
        assert f"Example: kryograph bench {name} --quick" in command


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A folder with one small graph."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    write_graph(folder / "mine.npz")
    return folder


def test_bench_graphs_prints_tables_that_fit(run: Run, graphs: Path, tmp_path: Path) -> None:
    out, html = tmp_path / "rows.csv", tmp_path / "page.html"
    arguments = ("graphs", "--data", graphs, "--per-class", "2,4", "--draws", "1", "--out", out)
    printed = answer(run, *arguments, "--html", html)
    assert max(map(len, printed.splitlines())) <= 200
    for words in ("Accuracy on the test nodes, %", "Regret of the portfolio", "mine"):
        assert words in printed
    assert "2 labels of each class" in html.read_text("utf-8")
    assert len(out.read_text().splitlines()) == 1 + 1 + 2 * len(graph_accuracy.GRAPH_METHODS)
    # The second time all rows are there.
    code, again, messages = run("bench", *arguments)
    assert code == 0
    assert "seed" not in messages
    assert "mine, diffused-logistic:representation=centred, 2 draws: This graph has" in messages
    assert again == printed


def test_bench_graphs_prints_json_of_the_methods_it_is_asked_for(run: Run, graphs: Path) -> None:
    hops = "diffused-logistic:representation=hops"
    arguments = ("graphs", "--data", graphs, "--per-class", "3", "--draws", "2")
    found = json_of(run, *map(str, arguments), "--method", "lp", "--method", hops)
    assert [row["method"] for row in found["rows"]] == ["basis", *["lp", hops] * 2]
    [setting] = found["summary"]["settings"]
    assert set(setting["accuracy"]) == {"lp", hops}
    assert setting["regret"] is None


def test_bench_graphs_names_methods_without_a_result(run: Run, graphs: Path) -> None:
    arguments = ("bench", "graphs", "--data", graphs, "--draws", "1", "--per-class", "2")
    code, _, messages = run(*arguments, "--method", "gcn", "--budget", "0.000001s")
    assert code == 0
    assert "1/1 mine, 2 per class, seed 0, gcn: It would take about" in messages
    assert messages.count("the budget is 0 s") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "nowhere.npz"), "There is no file or folder nowhere.npz."),
        (("--data", "cora", "--per-class", "3,x"), "--per-class takes whole numbers"),
        (("--data", "cora", "--method", "no-such"), "'no-such'"),
        (("--data", "cora", "--budget", "soon"), "'soon'"),
    ],
)
def test_bench_graphs_refuses_bad_options(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    code, _, messages = run("bench", "graphs", *arguments)
    assert code == 2
    assert message in messages


def test_bench_suggest_prints_what_rules_add_to_random_labels(run: Run, tmp_path: Path) -> None:
    write_graph(tmp_path / "one.npz", seed=1)
    write_graph(tmp_path / "two.npz", seed=2)
    out = tmp_path / "rows.csv"
    options = ("suggest", "--data", tmp_path, "--per-class", "3,5", "--draws", "2", "--quick")
    printed = answer(run, *options, "--rule", "coverage,uncertainty", "--out", out)
    lines = [line.split() for line in printed.splitlines() if line.split()]
    rows = [line[:2] for line in lines if line[0] in ("coverage", "uncertainty")]
    one_rule = ["one", "two", "all"]
    assert rows == [[rule, graph] for rule in ("coverage", "uncertainty") for graph in one_rule]
    assert len(out.read_text().splitlines()) == 1 + 2 * 2 * 3 * 2
    result = json_of(run, *map(str, options), "--rule", "coverage,uncertainty", "--out", str(out))
    assert {gain["graph"] for gain in result["gains"]} == {"one", "two", ""}
    assert len(result["rows"]) == 24


def test_bench_suggest_refuses_an_unknown_rule(run: Run, tmp_path: Path) -> None:
    write_graph(tmp_path / "one.npz")
    code, _, err = run("bench", "suggest", "--data", tmp_path, "--rule", "densest")
    assert code == 2
    assert "doubtful-coverage" in err
