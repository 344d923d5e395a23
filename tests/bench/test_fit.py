"""`kryograph.bench.fit`: tables, the command line in a process of its own, the share of the map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kryograph.bench import fit
from kryograph.bench.fit import FitCase, measure_fit, write_tables
from kryograph.data.tables import read_tables
from kryograph.graph import UNKNOWN


def test_task_of_a_case_has_the_labels_of_its_training_nodes_only() -> None:
    task = FitCase(12, 200).task()
    assert task.graph.n == 200
    assert (task.labels != UNKNOWN).sum() == task.split.train.size == 12


def test_write_tables_is_read_as_the_same_graph_and_labels(tmp_path: Path) -> None:
    task = FitCase(12, 60).task()
    write_tables(task, tmp_path)
    read = read_tables(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="class", id="id")
    assert (read.graph.adjacency != task.graph.adjacency).nnz == 0
    assert read.graph.features.shape == task.graph.features.shape
    known = task.labels != UNKNOWN
    assert [read.classes[c] for c in read.labels[known]] == [
        task.classes[c] for c in task.labels[known]
    ]
    np.testing.assert_array_equal(read.labels != UNKNOWN, known)


@pytest.mark.slow
def test_measure_fit_measures_the_command_and_its_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "QUICK_FIT_CASES", (FitCase(30, 120),))
    (row,) = measure_fit(quick=True, on_case=print)["graphs"]
    assert (row["graph"], row["nodes"], row["labels"]) == ("synthetic", 120, 30)
    assert 0 < row["map_seconds"] < row["processor_seconds"]
    assert row["map_share"] == row["map_seconds"] / row["processor_seconds"]
    assert row["peak_bytes"] > 10**8  # torch alone is more
