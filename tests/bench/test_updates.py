"""`kryograph.bench.updates`: answering again with more labels."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.bench import updates
from kryograph.bench.fit import FitCase
from kryograph.bench.updates import FIRST_LABELS, Answering, measure_updates
from kryograph.systems.pool import PoolSettings, PoolSystem


def test_answering_has_the_heads_with_a_weight_and_no_trees() -> None:
    members = "prototypes:representation=sum + diffused-logistic:representation=sum + trees"
    method, task = PoolSystem(PoolSettings(members=members)), FitCase(40, 200).task()
    answering = Answering.of(method, method.fit_pool(task))
    assert {head.name for head in answering.heads} <= {"prototypes", "diffused-logistic"}
    assert len(answering.heads) == len(answering.pool.weights) > 0
    probabilities = answering.answer(task)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    known = task.split.train
    assert (probabilities[known].argmax(axis=1) == task.labels[known]).mean() > 0.8


@pytest.mark.slow
def test_measure_updates_has_a_row_for_each_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "QUICK_LABEL_NODES", (300,))
    (row,) = measure_updates(quick=True, on_case=print)["graphs"]
    assert (row["nodes"], row["labels"]) == (300, FIRST_LABELS)
    assert 0 < row["answer_seconds"] < row["fit_seconds"]
    assert row["agreement"] > 0.5
