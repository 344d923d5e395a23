"""`kryograph.experiments.suggest_accuracy`: draws, rounds, and the file of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import Dataset, load
from kryograph.errors import UsageError
from kryograph.experiments.suggest_accuracy import (
    BY_HEADS,
    SuggestBenchmark,
    SuggestEvaluator,
    heads_probabilities,
)
from kryograph.experiments.suggest_rows import SuggestRow
from tests.tiny_graphs import write_graph


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 60 nodes and two classes in a file."""
    file = tmp_path_factory.mktemp("graphs") / "one.npz"
    write_graph(file, seed=1)
    return file


@pytest.fixture(scope="module")
def data(path: Path) -> Dataset:
    return replace(load(str(path)), name="one")


def benchmark(path: Path, *rules: str, draws: int = 1, quick: bool = True) -> SuggestBenchmark:
    return SuggestBenchmark({"one": str(path)}, (5, 3), draws, rules=rules, quick=quick)


def test_a_draw_has_two_labels_of_each_class_and_a_third_for_the_test(data: Dataset) -> None:
    split = SuggestEvaluator(data).draw(0)
    assert np.bincount(data.labels[split.train]).tolist() == [2, 2]
    assert split.test.size == 20
    assert SuggestEvaluator(data).draw(0).digest == split.digest
    assert SuggestEvaluator(data).draw(1).digest != split.digest


def test_no_rule_labels_a_test_node(data: Dataset) -> None:
    evaluator = SuggestEvaluator(data, quick=True)
    split = evaluator.draw(0)
    free = np.setdiff1d(np.arange(60), split.test)
    more = evaluator._extended(split, free, 36, "doubtful-coverage", 0)
    assert np.array_equal(more.train, free)
    assert np.array_equal(more.test, split.test)


def test_rules_are_compared_with_as_many_labels(path: Path) -> None:
    rows = benchmark(path, "coverage", "uncertainty", draws=2).run()
    assert len(rows) == 2 * 3 * 2
    assert {(row.per_class, row.labels) for row in rows} == {(3, 6), (5, 10)}
    assert {row.rule for row in rows} == {"random", "coverage", "uncertainty"}
    assert all(row.by == BY_HEADS and row.error == "" for row in rows)
    assert all(row.accuracy is not None and 0.3 <= row.accuracy <= 1 for row in rows)


def test_labels_end_with_the_nodes_that_may_be_chosen(data: Dataset) -> None:
    (row,) = SuggestEvaluator(data, quick=True).evaluate(0, "coverage", [30])
    assert row.labels == 40


def test_a_second_run_reads_the_file_and_adds_only_missing_rows(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    first = benchmark(path, "coverage").run(out)
    fresh: list[SuggestRow] = []
    again = benchmark(path, "coverage", "error-reduction").run(
        out, on_row=lambda row, done: fresh.append(row)
    )
    assert {row.rule for row in fresh} == {"error-reduction"}
    assert [row.split_digest for row in again[: len(first)]] == [row.split_digest for row in first]
    assert len(out.read_text().splitlines()) == 1 + 6


@pytest.mark.slow
def test_the_accuracy_is_that_of_fit(path: Path) -> None:
    rows = benchmark(path, quick=False).run()
    assert [(row.rule, row.by, row.per_class) for row in rows] == [
        ("random", "fit", 3),
        ("random", "fit", 5),
    ]
    assert all(row.accuracy is not None and row.accuracy > 0.4 for row in rows)


def test_the_heads_of_the_rounds_learn_the_two_classes(data: Dataset) -> None:
    split = replace(SuggestEvaluator(data).draw(0), train=np.arange(40), test=np.arange(40, 60))
    task = data.task(split, validation=False)
    probabilities = heads_probabilities(Basis(data.graph), task)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(60))
    assert (probabilities.argmax(axis=1) == data.labels)[40:].mean() > 0.7


def test_impossible_benchmarks_are_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="more than 2"):
        SuggestBenchmark({"one": str(path)}, per_class=(2,))
    with pytest.raises(UsageError, match="coverage"):
        SuggestBenchmark({"one": str(path)}, rules=("coverag",))
