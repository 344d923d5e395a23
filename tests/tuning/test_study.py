from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import event

from kryograph.data import Dataset
from kryograph.errors import UsageError
from kryograph.experiments.tuned import Tuned
from kryograph.runs.job import Scenario
from kryograph.systems import system
from kryograph.tuning import study as trials_module
from kryograph.tuning.database import open_database, sqlite_address
from kryograph.tuning.problem import JudgedTask, TuningProblem
from kryograph.tuning.study import BY, SAMPLERS, SearchBudget, Study, Trial
from tests.tuning.toy_problems import (
    COLUMN,
    SHORT,
    SPLIT,
    Parabola,
    Slow,
    Trouble,
    age_heartbeats,
    exit_code,
    forked,
    on_three_splits,
    toy,
)

pytestmark = pytest.mark.slow

Open = Callable[..., Study]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return toy()


@pytest.fixture(scope="module")
def three(data: Dataset) -> tuple[JudgedTask, ...]:
    return on_three_splits(data)


@pytest.fixture
def parabola(three: tuple[JudgedTask, ...]) -> Parabola:
    return Parabola("prototypes", COLUMN, three)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Open]:
    """A search in a file: the same if asked again."""
    with ExitStack() as stack:

        def search(problem: TuningProblem, file: str = "one", name: str = "toy") -> Study:
            database = stack.enter_context(
                open_database(sqlite_address(tmp_path / f"{file}.sqlite"))
            )
            # Nothing here needs to survive a power cut, and a busy disk is slow.
            event.listen(database.engine, "connect", _without_waiting)
            database.engine.dispose()
            return Study(problem, database, name)

        yield search


def _without_waiting(connection: Any, _: object) -> None:
    connection.execute("pragma synchronous = off")


def done(search: Study, trials: int, **effort: object) -> list[Trial]:
    """What it does until there are so many trials; the default settings come first."""
    search.enqueue(60.0)
    return [
        replace(tried, seconds=0.0)
        for tried in search.run(SearchBudget(trials, **effort))  # type: ignore[arg-type]
    ]


# What is found


def test_the_default_settings_are_tried_first_and_the_best_is_found(
    parabola: Parabola, begin: Open
) -> None:
    search = begin(parabola)
    tried = done(search, 18)
    assert [each.number for each in tried] == list(range(18))
    assert [each.source for each in tried] == ["default"] + [None] * 17
    assert parabola.system_at(tried[0].values) == parabola.starts["default"]
    assert tried[0].values["hops"] == 16
    assert tried[0].accuracy == pytest.approx(0.9 - 9 / 50 - 0.01)
    best = search.best()
    assert abs(best[0].values["hops"] - 7) <= 2
    assert [each.accuracy for each in best] == sorted((b.accuracy for b in best), reverse=True)
    assert best[0].accuracy >= tried[0].accuracy


def test_the_published_settings_are_tried_next_as_they_are(data: Dataset, begin: Open) -> None:
    column = Scenario("cora", "0.5%", "validation")  # 128 wide, 6 layers, rmsprop, rw
    problem = TuningProblem("linear-snowball", column, on_three_splits(data)[:1], SHORT)
    tried = done(begin(problem), 2)
    assert [each.source for each in tried] == ["default", "paper"]
    assert problem.system_at(tried[1].values) == problem.starts["paper"]
    assert problem.starts["paper"].operator == "rw"
    assert problem.starts["paper"].settings.hidden == 128


def test_a_gaussian_process_searches_as_well(parabola: Parabola, begin: Open) -> None:
    search = begin(replace(parabola, tasks=parabola.tasks[:1]))
    assert len(done(search, 12, sampler="gp")) == 12
    assert abs(search.best()[0].values["hops"] - 7) <= 3


# Test labels


@pytest.mark.parametrize("protocol", ["validation", "no-validation"])
def test_test_labels_change_nothing_of_a_search(data: Dataset, begin: Open, protocol: str) -> None:
    others = data.labels.copy()
    others[SPLIT.test] = (others[SPLIT.test] + 1) % len(data.classes)
    column = replace(COLUMN, protocol=protocol)
    one, other = (
        begin(replace(TuningProblem.of("gcn", each, column, seeds=2), conditions=SHORT), file)
        for file, each in (("one", data), ("other", replace(data, labels=others)))
    )
    tried = done(one, 4)
    assert tried == done(other, 4)
    assert one.best()[0].number == other.best()[0].number
    assert len({each.scores for each in tried}) > 1


# Pruning


def test_what_is_below_the_median_is_not_run_to_its_end(parabola: Parabola, begin: Open) -> None:
    tried = done(begin(parabola), 12)
    pruned = [each for each in tried if each.state == "pruned"]
    assert pruned
    assert {len(each.scores) for each in pruned} == {2}  # the first split of three says too little
    assert all(len(each.scores) == 3 for each in tried if each.state == "complete")
    means = sorted(sum(each.scores[:2]) for each in tried)
    assert all(sum(each.scores) <= means[len(means) // 2] for each in pruned)


def test_the_settings_it_starts_from_are_never_pruned(parabola: Parabola, begin: Open) -> None:
    search = begin(parabola)
    for _ in search.run(SearchBudget(8)):  # without the default
        pass
    search.study.enqueue_trial(
        {**search.best()[0].values, "hops": 32}, user_attrs={"source": "default"}
    )
    [last] = search.run(SearchBudget(9))
    assert (last.source, last.state, len(last.scores)) == ("default", "complete", 3)


def test_what_was_found_elsewhere_is_tried_once_and_may_be_pruned(
    parabola: Parabola, begin: Open
) -> None:
    column = Scenario("cora", "1%", "validation")
    found = tuple(
        Tuned(system("prototypes", {"hops": hops}), column, 0.5, "by hand") for hops in (7, 31)
    )
    problem = replace(parabola, known=found[:1])
    tried = done(begin(problem), 8)
    assert tried[1].source == "tuned for cora 1%, validation"
    assert tried[1].values["hops"] == 7
    assert max(tried, key=lambda each: each.accuracy).values["hops"] == 7
    assert done(begin(problem), 8) == []
    [later] = done(begin(replace(parabola, known=found[1:]), "later"), 2)[1:]
    assert (later.source, later.values["hops"]) == ("tuned for cora 1%, validation", 31)


def test_a_run_that_takes_much_longer_than_predicted_is_ended(
    parabola: Parabola, begin: Open
) -> None:
    found = (Tuned(system("prototypes", {"hops": 31}), COLUMN, 0.5, "by hand"),)
    slow = Slow(*(getattr(parabola, name) for name in ("name", "scenario", "tasks")), known=found)
    tried = done(begin(slow.requesting(["hops=9"])), 5, seconds_per_run=0.05)
    assert [each.source for each in tried[:2]] == ["default", "--try 'hops=9'"]
    assert [each.state for each in tried[:2]] == ["complete", "complete"]
    assert tried[2].source == f"tuned for {COLUMN}"
    assert {each.state for each in tried[2:]} == {"pruned"}
    assert all(each.scores == () for each in tried[2:])


def test_what_is_fixed_stays_but_in_the_settings_it_starts_from(
    parabola: Parabola, begin: Open
) -> None:
    for sampler in SAMPLERS:
        tried = done(begin(parabola, sampler), 5, sampler=sampler, fixed={"hops": 5})
        assert [each.values["hops"] for each in tried] == [16, 5, 5, 5, 5]
        others = [name for name in tried[0].values if name != "hops"]
        assert len({tuple(each.values[name] for name in others) for each in tried}) == 5


# Going on


def test_a_search_that_goes_on_tries_what_it_would_have_tried(
    parabola: Parabola, begin: Open
) -> None:
    whole = done(begin(parabola, "whole"), 9)
    parts = done(begin(parabola, "parts"), 5)
    assert done(begin(parabola, "parts"), 5) == []
    parts += done(begin(parabola, "parts"), 9)
    assert parts == whole


def test_a_trial_that_diverges_is_recorded_and_not_the_end(
    parabola: Parabola, begin: Open, tmp_path: Path
) -> None:
    problem = Trouble("prototypes", COLUMN, parabola.tasks, SHORT, tmp_path / "runs", 5, "diverges")
    search = begin(problem)
    tried = done(search, 4)
    assert [each.state for each in tried] == ["complete", "failed", "complete", "complete"]
    assert tried[1].error == "Diverged: The loss is not finite."
    assert len(tried[1].scores) == 1
    assert [each.number for each in search.best()][-1] != 1


def test_ctrl_c_leaves_what_is_finished_and_nothing_running(
    parabola: Parabola, begin: Open, tmp_path: Path
) -> None:
    problem = Trouble(
        "prototypes", COLUMN, parabola.tasks, SHORT, tmp_path / "runs", 8, "is stopped"
    )
    with pytest.raises(KeyboardInterrupt):
        done(begin(problem), 6)
    search = begin(problem)
    assert [each.number for each in search.finished()] == [0, 1]
    assert [trial.state.name for trial in search.study.trials] == ["COMPLETE", "COMPLETE", "FAIL"]
    # The one that was stopped does not count.
    assert [each.number for each in done(search, 4)] == [3, 4]


def test_a_trial_whose_process_was_killed_is_failed_by_the_next(
    parabola: Parabola, begin: Open, tmp_path: Path
) -> None:
    problem = Trouble(
        "prototypes", COLUMN, parabola.tasks, SHORT, tmp_path / "runs", 5, "is killed"
    )
    assert exit_code(forked(lambda: done(begin(problem), 4))) == -9
    search = begin(problem)
    assert [trial.state.name for trial in search.study.trials] == ["COMPLETE", "RUNNING"]
    age_heartbeats(tmp_path / "one.sqlite")
    search = begin(problem)
    assert [trial.state.name for trial in search.study.trials] == ["COMPLETE", "FAIL"]
    assert [each.number for each in done(search, 3)] == [2, 3]


def test_what_a_killed_process_left_is_waited_for_and_made_up(
    parabola: Parabola, begin: Open, tmp_path: Path
) -> None:
    search = begin(parabola)
    other = optuna.load_study(study_name="toy", storage=search.storage)
    with pytest.warns(UserWarning, match="Heartbeat"):
        trial = other.ask({"hops": optuna.distributions.IntDistribution(0, 32)})
    search.storage.record_heartbeat(trial._trial_id)
    waits: list[int] = []

    def on_wait() -> None:
        waits.append(len(search.finished()))
        age_heartbeats(tmp_path / "one.sqlite")

    tried = list(search.run(SearchBudget(2), on_wait=on_wait))
    assert [each.number for each in tried] == [1, 2]
    assert waits == [1]
    assert search.study.trials[0].state.name == "FAIL"


def test_trials_of_others_are_counted(parabola: Parabola, begin: Open) -> None:
    one, other = begin(parabola), begin(parabola)
    first = done(one, 3)
    second = done(other, 5)
    assert [each.number for each in first + second] == [0, 1, 2, 3, 4]
    assert len({trial.user_attrs[BY].split()[0] for trial in one.study.trials}) == 2


def test_no_trial_is_begun_after_the_time_is_over(parabola: Parabola, begin: Open) -> None:
    assert done(begin(parabola), 5, timeout=1e-9) == []


# Several at once


def test_a_worker_that_dies_is_a_failed_trial_and_the_rest_is_done(
    parabola: Parabola, begin: Open, tmp_path: Path
) -> None:
    problem = Trouble(
        "prototypes", COLUMN, parabola.tasks, SHORT, tmp_path / "runs", 5, "is killed"
    )
    search = begin(problem)
    epochs: list[int] = []
    search.enqueue(60.0)
    tried = list(search.run(SearchBudget(6, jobs=2), lambda slot, epoch: epochs.append(slot)))
    assert sorted(each.number for each in tried) == list(range(6))
    [failed] = [each for each in tried if each.state == "failed"]
    assert "A worker process was killed (signal 9)" in str(failed.error)
    assert [trial for trial in search.study.trials if not trial.state.is_finished()] == []
    assert epochs


# The budget


def test_settings_over_the_budget_are_not_run(
    data: Dataset, begin: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials_module, "MAX_SKIPPED", 3)
    column = Scenario("cora", "0.5%", "validation")
    problem = TuningProblem("linear-snowball", column, on_three_splits(data)[:1], SHORT)
    search = begin(problem)
    assert search.enqueue(1e-9) == ["paper"]
    going = search.run(SearchBudget(3, seconds_per_run=1e-9))
    assert next(going).source == "default"
    with pytest.raises(UsageError, match=r"3 settings in a row would take over .*--budget"):
        next(going)
    assert (len(search.finished()), search.over_budget()) == (1, 3)
    assert search.enqueue(1e9) == []
    assert [each.source for each in search.run(SearchBudget(2, seconds_per_run=1e9))] == ["paper"]


# Bad input


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": "lp"}, "system or column"),
        ({"scenario": replace(COLUMN, protocol="no-validation")}, "system or column"),
        ({"tasks": ()}, "set of splits"),
    ],
)
def test_a_study_of_another_problem_is_refused(
    parabola: Parabola, begin: Open, change: dict[str, object], what: str
) -> None:
    begin(parabola)
    with pytest.raises(UsageError, match=f"'toy' was made with another {what}.*--study"):
        begin(replace(parabola, **change))  # type: ignore[arg-type]


def test_a_study_of_another_search_space_is_refused(parabola: Parabola, begin: Open) -> None:
    search = begin(parabola)
    about = parabola.about()
    about["search space"]["hops"] = [0, 8, False]
    search.study.set_user_attr("kryograph", about)
    with pytest.raises(UsageError, match="'toy' was made with another search space"):
        begin(parabola)


def test_a_study_of_another_program_is_refused(parabola: Parabola, begin: Open) -> None:
    foreign = optuna.create_study(study_name="theirs", storage=begin(parabola).storage)
    with pytest.warns(UserWarning, match="Heartbeat"):
        foreign.ask()
    with pytest.raises(UsageError, match="'theirs' was not made by kryograph"):
        begin(parabola, name="theirs")


@pytest.mark.parametrize(
    ("effort", "said"),
    [
        ({"trials": 0}, "--trials must be at least 1; it is 0"),
        ({"jobs": 0}, "--jobs must be at least 1; it is 0"),
        ({"sampler": "gps"}, "Unknown sampler 'gps': did you mean 'gp'"),
    ],
)
def test_an_effort_that_makes_no_sense_is_refused(effort: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        SearchBudget(**effort)  # type: ignore[arg-type]
