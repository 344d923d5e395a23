"""`kryograph.experiments.graph_accuracy`: draws, rows, the shared basis, and the file of rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kryograph.data import Dataset, load
from kryograph.errors import UsageError
from kryograph.experiments.graph_accuracy import (
    GRAPH_METHODS,
    GraphBenchmark,
    GraphEvaluator,
    find_graphs,
    method_system,
)
from kryograph.experiments.graph_rows import BASIS, PORTFOLIO, GraphRow
from kryograph.runs.perform import final_scores
from kryograph.systems import system
from kryograph.systems.pool import HEADS
from tests.tiny_graphs import FEATURES, HOPS, write_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two graphs in files."""
    graphs = tmp_path_factory.mktemp("graphs")
    write_graph(graphs / "one.npz", seed=1)
    write_graph(graphs / "two.npz", seed=2)
    return graphs


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return replace(load(str(folder / "one.npz")), name="one")


@pytest.fixture(scope="module")
def portfolio(data: Dataset) -> GraphRow:
    return GraphEvaluator(data).evaluate(5, 0, PORTFOLIO)


def test_all_other_labelled_nodes_are_tested(data: Dataset) -> None:
    split = GraphEvaluator(data).split(4, 0)
    assert np.bincount(data.labels[split.train]).tolist() == [4, 4]
    assert split.validation.size == 0
    assert np.union1d(split.train, split.test).tolist() == list(range(60))


def test_usual_splits_are_those_of_the_data_set(data: Dataset) -> None:
    evaluator = GraphEvaluator(data, usual_splits=True)
    assert evaluator.split(4, 1).digest == data.split(4, seed=1).digest


def test_the_portfolio_says_what_a_person_is_told(portfolio: GraphRow) -> None:
    assert portfolio.error == ""
    assert portfolio.n == 60
    assert portfolio.accuracy is not None
    assert portfolio.accuracy > 0.6
    low, high = portfolio.held_out_low, portfolio.held_out_high
    assert low is not None
    assert high is not None
    assert portfolio.held_out_accuracy is not None
    assert low < portfolio.held_out_accuracy <= high
    assert portfolio.interval_holds is (low <= portfolio.accuracy <= high)
    assert portfolio.coverage is not None
    assert portfolio.set_size is not None
    assert portfolio.coverage >= portfolio.accuracy
    assert 1 <= portfolio.set_size <= 2
    assert portfolio.seconds is not None
    assert portfolio.seconds > 0


@pytest.mark.parametrize("method", ["trees", FEATURES, HOPS])
def test_a_head_on_the_shared_basis_is_the_system_alone(data: Dataset, method: str) -> None:
    rows: list[GraphRow] = []
    evaluator = GraphEvaluator(data, add=rows.append)
    row = evaluator.evaluate(5, 1, method)
    evaluator.evaluate(5, 2, method)
    alone = method_system(method)
    assert alone is not None
    split = evaluator.split(5, 1)
    fit = alone.fit(data.task(split, validation=False), seed=1)
    scores = final_scores(fit.predict_proba(), data, split)
    assert (row.accuracy, row.balanced_accuracy) == (scores.accuracy, scores.balanced_accuracy)
    assert row.calibration_error == pytest.approx(scores.calibration_error, abs=1e-6)
    assert row.coverage is None
    assert row.split_digest == split.digest
    # The basis was computed once, and its time is a row of its own.
    assert [(made.method, made.per_class) for made in rows] == [(BASIS, 0)]


def test_test_labels_are_used_for_the_scores_only(data: Dataset, portfolio: GraphRow) -> None:
    split = GraphEvaluator(data).split(5, 0)
    wrong = data.labels.copy()
    wrong[split.test] = 1 - wrong[split.test]

    class SameSplit(GraphEvaluator):
        def split(self, per_class: int, seed: int) -> object:  # type: ignore[override]
            return split

    other = SameSplit(replace(data, labels=wrong)).evaluate(5, 0, PORTFOLIO)
    assert portfolio.accuracy is not None
    assert other.accuracy == pytest.approx(1 - portfolio.accuracy)
    assert other.held_out_accuracy == portfolio.held_out_accuracy
    assert other.set_size == portfolio.set_size


def test_a_method_that_fails_is_a_row_with_its_error(data: Dataset) -> None:
    bare = replace(data, graph=replace(data.graph, features=np.ones((60, 1))))
    row = GraphEvaluator(bare).evaluate(5, 0, FEATURES)
    assert row.accuracy is None
    assert row.error == "This graph has no 'features'."


def test_a_method_beyond_the_budget_is_not_tried(data: Dataset, portfolio: GraphRow) -> None:
    evaluator = GraphEvaluator(data, budget=1e-6, rows={portfolio.key: portfolio})
    predicted = evaluator.evaluate(5, 0, "gcn")
    assert re.fullmatch(r"It would take about \d+ s; the budget is 0 s\.", predicted.error)
    assert predicted.seconds is None
    slow = replace(portfolio, seconds=12.0)
    late = GraphEvaluator(data, budget=10, rows={slow.key: slow}).evaluate(5, 1, PORTFOLIO)
    assert late.error == "It took 12 s on another draw; the budget is 10 s."
    assert evaluator.evaluate(5, 1, "lp").error == ""  # nothing is known of its time
    again = GraphEvaluator(data, rows={portfolio.key: portfolio}).evaluate(5, 0, "gcn")
    assert again.error == ""


def test_rows_are_kept_and_the_rest_is_done(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "rows.csv"
    graphs = find_graphs([str(folder)])
    assert list(graphs) == ["one", "two"]
    calls: list[tuple[tuple[str, int, int, str], int]] = []

    def run(draws: int) -> list[GraphRow]:
        calls.clear()
        benchmark = GraphBenchmark(graphs, (2, 5), draws, ("lp", HOPS))
        return benchmark.run(out, on_row=lambda row, done: calls.append((row.key, done)))

    first = run(1)
    assert [row.key for row in first[:2]] == [(name, 0, 0, BASIS) for name in ("one", "two")]
    assert len(first) == 2 + 8
    assert [done for _, done in calls] == list(range(1, 9))
    again = run(2)
    assert [key[2] for key, _ in calls] == [1] * 8
    assert [done for _, done in calls] == list(range(9, 17))
    kept = {row.key: row for row in again}
    for row in first:
        if row.accuracy is not None:
            assert kept[row.key].accuracy == pytest.approx(row.accuracy, abs=1e-5)
    assert len(out.read_text().splitlines()) == 1 + 16 + 2 + 2  # heading, and the basis twice
    # Nothing is left to do, so nothing is read.
    missing = GraphBenchmark(dict.fromkeys(graphs, "nowhere.npz"), (2, 5), 2, ("lp", HOPS))
    assert [row.key for row in missing.run(out)] == [row.key for row in again]


def test_errors_are_repeated_only_if_that_is_wanted(folder: Path, tmp_path: Path) -> None:
    out, graphs = tmp_path / "rows.csv", {"one": str(folder / "one.npz")}
    slow = GraphBenchmark(graphs, (2,), 1, ("gcn",), budget=1e-6)
    assert slow.run(out)[0].error != ""
    usual = replace(slow, budget=300.0)
    assert usual.run(out)[0].error != ""
    assert usual.run(out, retry=True)[0].error == ""
    assert usual.run(out)[0].error == ""


def test_rows_of_another_graph_of_the_same_name_are_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    GraphBenchmark({"one": str(folder / "one.npz")}, (2,), 1, ("lp",)).run(out)
    write_graph(tmp_path / "one.npz", n=80)
    other = GraphBenchmark({"one": str(tmp_path / "one.npz")}, (2,), 1, ("lp", "linear-gnn"))
    with pytest.raises(UsageError, match="'one' were measured on another graph or split"):
        other.run(out)


def test_graphs_are_files_folders_and_data_sets(folder: Path) -> None:
    found = find_graphs(["synthetic", str(folder / "two.npz")])
    assert found == {"synthetic": "synthetic", "two": str(folder / "two.npz")}
    with pytest.raises(UsageError, match="Two graphs are called 'two'"):
        find_graphs([str(folder), str(folder / "two.npz")])
    with pytest.raises(UsageError, match="Name a folder"):
        find_graphs([])


def test_bad_benchmarks_are_refused() -> None:
    with pytest.raises(UsageError, match="must be at least 1; got 0"):
        GraphBenchmark({}, (3, 0))
    with pytest.raises(UsageError, match="'no-such'"):
        GraphBenchmark({}, methods=("no-such",))
    with pytest.raises(UsageError, match="is several methods"):
        GraphBenchmark({}, methods=("lp + trees",))


def test_every_method_is_there_once() -> None:
    assert len(set(GRAPH_METHODS)) == len(GRAPH_METHODS) > len(HEADS)
    assert method_system(PORTFOLIO) is None
    assert method_system("lp") == system("lp")
