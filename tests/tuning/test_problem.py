from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kryograph.data import Dataset, synthetic_citations
from kryograph.errors import UsageError
from kryograph.experiments.tuned import Tuned
from kryograph.graph import UNKNOWN
from kryograph.runs.job import PROTOCOLS, Scenario
from kryograph.systems import system
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule
from kryograph.tuning.problem import FIRST_SEED, TuningProblem, judged_tasks
from tests.tuning.toy_problems import COLUMN, SHORT, SPLIT, toy

HIDDEN = replace(COLUMN, protocol="no-validation")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return toy()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_lesson_holds_a_test_label(data: Dataset, protocol: str) -> None:
    for run in judged_tasks(data, replace(COLUMN, protocol=protocol), 2):
        for task in (run.task, run.judge):
            assert set(task.labels[SPLIT.test].tolist()) == {UNKNOWN}
        assert run.judge.has_validation
        assert run.task.has_validation is (protocol == "validation")


def test_no_split_of_a_table_is_searched_on() -> None:
    data = synthetic_citations(n=1700, classes=2, words=10, seed=0)
    column = Scenario("synthetic", "1%", "validation")
    searched = {run.judge.split.digest for run in judged_tasks(data, column, 3)}
    tables = {data.split("1%", seed=seed).digest for seed in range(10)}
    assert len(searched) == 3
    assert len(tables) == 10
    assert not searched & tables


def test_all_seeds_share_the_public_split(data: Dataset) -> None:
    made = judged_tasks(data, HIDDEN, 3)
    assert [run.seed for run in made] == [FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2]
    assert {run.judge.split.digest for run in made} == {SPLIT.digest}


def test_half_of_the_validation_nodes_stop_a_run_and_the_others_judge_it(data: Dataset) -> None:
    first, second, third = judged_tasks(data, COLUMN, 3)
    for run in (first, second, third):
        seen, judged = run.task.split.validation, run.judge.split.validation
        assert (seen.size, judged.size) == (50, 50)
        assert np.array_equal(np.union1d(seen, judged), SPLIT.validation)
        assert set(run.task.labels[judged].tolist()) == {UNKNOWN}
        assert np.array_equal(run.judge.split.train, SPLIT.train)
    assert np.array_equal(first.task.split.validation, second.judge.split.validation)
    assert not np.array_equal(first.task.split.validation, third.task.split.validation)


def test_a_noisy_network_gains_nothing_by_the_luck_of_its_epoch(data: Dataset) -> None:
    method = system("gcn", {"lr": 0.05, "dropout": 0.9})
    conditions = Conditions(rule=StopRule(max_epochs=60))
    problem = replace(TuningProblem.of("gcn", data, COLUMN, 6), conditions=conditions)
    honest, own = [], []
    for run in problem.tasks:
        honest.append(problem.score(method, run, lambda epoch: None))
        fit = method.fit(run.task, seed=run.seed, conditions=conditions)
        own.append(fit.validation_accuracy)
    assert np.mean(honest) < np.mean(own) - 0.01


def test_a_closed_form_is_run_once_on_what_is_the_same(data: Dataset) -> None:
    assert len(TuningProblem.of("prototypes", data, HIDDEN, 3).tasks) == 1
    assert len(TuningProblem.of("prototypes", data, COLUMN, 3).tasks) == 2
    assert len(TuningProblem.of("gcn", data, COLUMN, 3).tasks) == 3


def test_without_validation_the_score_is_that_of_labels_nobody_trained_on(data: Dataset) -> None:
    problem = replace(TuningProblem.of("gcn", data, HIDDEN, 1), conditions=SHORT)
    [run] = problem.tasks
    method = problem.starts["default"]
    fit = method.fit(run.task, seed=FIRST_SEED, conditions=SHORT)
    assert fit.validation_accuracy is None
    right = fit.probabilities[30:130].argmax(axis=1) == data.labels[30:130]
    assert problem.score(method, run, lambda epoch: None) == np.mean(right)


def test_a_point_of_the_space_is_a_system_and_back(data: Dataset) -> None:
    column = Scenario("cora", "1%", "validation")
    problem = TuningProblem("truncated-krylov", column, judged_tasks(data, COLUMN, 1))
    for method in problem.starts.values():
        assert problem.system_at(problem.point(method)) == method
    assert set(problem.starts) == {"default", "paper"}
    assert problem.starts["paper"].settings.hidden == 4950


def test_what_other_columns_were_tuned_to_is_tried_as_far_as_it_is_in_the_space(
    data: Dataset,
) -> None:
    def tuned(name: str, values: dict[str, object], split: str = "1%") -> Tuned:
        return Tuned(system(name, values), Scenario("cora", split, "validation"), 0.5, "by hand")

    known = (
        tuned("prototypes", {"hops": 7}),
        tuned("prototypes", {"hops": 7}, "2%"),
        tuned("prototypes", {}),
        tuned("prototypes", {"hops": 9_000}),
        tuned("gcn", {}),
    )
    problem = TuningProblem.of("prototypes", data, COLUMN, 1, known)
    [(source, method)] = problem.earlier_results.items()
    assert source == "tuned for cora 1%, validation"
    assert method.settings.as_dict()["hops"] == 7
    assert problem.space == TuningProblem.of("prototypes", data, COLUMN, 1).space


def test_nothing_is_known_of_how_long_settings_take_that_cannot_be(data: Dataset) -> None:
    problem = TuningProblem.of("gcn", data, COLUMN, 1)
    point = problem.point(problem.starts["default"])
    seconds = problem.seconds(point)
    assert seconds is not None
    assert seconds > 0
    assert problem.seconds({**point, "hidden": 0}) is None
    assert TuningProblem.of("lp", data, COLUMN, 1).seconds({"alpha": 0.1}) is None


def test_what_does_not_exist_is_refused(data: Dataset) -> None:
    with pytest.raises(UsageError, match="Unknown system 'gnc': did you mean 'gcn'"):
        TuningProblem.of("gnc", data, COLUMN, 1)
    with pytest.raises(UsageError, match="--seeds must be at least 1; it is 0"):
        TuningProblem.of("prototypes", data, COLUMN, 0)
