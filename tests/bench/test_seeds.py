"""`kryograph.bench.seeds`: runs as `train` does them against the published form."""

from __future__ import annotations

import pytest

from kryograph.bench import seeds
from kryograph.bench.seeds import literal_epoch_seconds, measure_seeds
from kryograph.data import Dataset, load
from kryograph.engine.forward import Forward, Workload
from kryograph.graph import Task
from kryograph.systems.multi_scale import TruncatedKrylovSettings, TruncatedKrylovSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SETTINGS = TruncatedKrylovSettings(hidden=4, order=2, dropout=0.0)


@pytest.fixture(scope="module")
def task() -> Task:
    return load("synthetic").task("public")


class Recording(TruncatedKrylovSystem):
    """The system; it records which of its two forms are built."""

    built: list[str] = []  # noqa: RUF012

    def forward(self, load: Workload) -> Forward:
        self.built.append("published")
        return super().forward(load)

    def fast_forward(self, load: Workload) -> Forward | None:
        self.built.append("fast")
        return super().fast_forward(load)


def test_literal_epoch_seconds_times_the_published_form(task: Task) -> None:
    Recording.built.clear()
    assert literal_epoch_seconds(Recording(SETTINGS), task, 3) > 0
    assert Recording.built == ["published"]


def test_literal_run_gives_the_probabilities_of_the_fast_run(task: Task) -> None:
    short, method = Conditions(rule=StopRule(max_epochs=5)), Recording(SETTINGS)
    Recording.built.clear()
    fast, literal = (
        method.fit(task, conditions=short, literal=literal).predict_proba()
        for literal in (False, True)
    )
    assert Recording.built == ["fast", "published"]
    assert abs(fast - literal).max() < 1e-4


@pytest.mark.slow
def test_measure_seeds_compares_the_time_of_as_many_epochs(
    monkeypatch: pytest.MonkeyPatch, cora: Dataset
) -> None:
    monkeypatch.setattr(seeds, "QUICK_SEEDS", 1)
    monkeypatch.setattr(seeds, "LITERAL_EPOCHS", 2)
    cases: list[str] = []
    result = measure_seeds(quick=True, on_case=cases.append)
    assert cases == ["1 seeds of truncated-krylov on cora, 1 at a time", "the literal form"]
    assert (result["seeds"], result["jobs"]) == (1, 1)
    assert result["speedup"] == pytest.approx(result["literal_seconds"] / result["seconds"])
    assert result["literal_epoch_seconds"] > 0
