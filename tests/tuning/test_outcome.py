from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kryograph.errors import KryographError
from kryograph.tuning.database import open_database, sqlite_address
from kryograph.tuning.outcome import (
    TRIALS_SHOWN,
    provenance_command,
    search_outcome,
    search_seconds_left,
)
from kryograph.tuning.study import SearchBudget, Study, Trial
from tests.tuning.toy_problems import COLUMN, Parabola, on_three_splits, toy


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    problem = Parabola("prototypes", COLUMN, on_three_splits(toy()))
    with open_database(sqlite_address(tmp_path / "trials.sqlite")) as database:
        yield Study(problem, database, "toy")


@pytest.mark.slow
def test_search_outcome_has_the_best_trial_and_the_default(study: Study) -> None:
    budget = SearchBudget(trials=7)
    study.enqueue(budget.seconds_per_run)
    for _ in study.run(budget):
        pass
    outcome = search_outcome(study, budget, 7)
    best = outcome.best[0]
    assert best.accuracy == max(trial.accuracy for trial in outcome.best)
    assert outcome.starts["default"].number == 0
    assert sum(outcome.counts[state] for state in ("complete", "pruned", "failed")) == 7
    assert outcome.counts["here"] == 7
    assert outcome.listed[:TRIALS_SHOWN] == list(outcome.best[:TRIALS_SHOWN])
    assert outcome.starts["default"] in outcome.listed
    values = outcome.as_dict()
    assert values["winner"]["settings"]["hops"] == best.values["hops"]
    assert values["default"]["source"] == "default"
    assert values["paper"] is None
    assert values["seeds"] == [1000, 1001, 1002]
    assert outcome.tuned.validation_accuracy == best.accuracy
    assert f"each on 3 seeds from 1000; number {best.number}" in outcome.tuned.provenance


def test_search_outcome_is_an_error_without_a_trial(study: Study) -> None:
    with pytest.raises(KryographError, match=r"None of the 0 trials .*give a longer --timeout"):
        search_outcome(study, SearchBudget(), 0)


def test_provenance_command_repeats_the_search(study: Study) -> None:
    budget = SearchBudget(trials=3, seconds_per_run=90.0, sampler="gp", fixed={"hops": 2})
    assert provenance_command(study.problem, budget) == (
        "kryograph tune prototypes --dataset synthetic --split public --protocol validation "
        "--trials 3 --seeds 3 --sampler gp --budget 90s --fix hops=2"
    )


def test_search_seconds_left_is_limited_by_the_timeout() -> None:
    finished = [
        Trial(i, {}, "complete", (0.5,), None, None, seconds) for i, seconds in [(0, 1), (1, 3)]
    ]
    assert search_seconds_left(finished, SearchBudget(trials=12, jobs=2), 100.0) == 10.0
    assert search_seconds_left(finished, SearchBudget(trials=12, timeout=104.0), 100.0) == 4.0
    assert search_seconds_left(finished, SearchBudget(trials=1), 100.0) == 0.0
