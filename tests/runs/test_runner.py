from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from kryograph.data import Dataset, load
from kryograph.errors import UsageError
from kryograph.runs.job import Scenario
from kryograph.runs.perform import Run, run_system
from kryograph.runs.runner import Plan
from kryograph.systems import system
from kryograph.training.loop import Conditions, Epoch
from kryograph.training.stopping import StopRule

pytestmark = pytest.mark.slow

METHOD = system("linear-snowball", {"hidden": 4})
SHORT = Conditions(rule=StopRule(max_epochs=3))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("synthetic")


def plan(data: Dataset, split: str, seeds: int = 3, protocol: str = "validation") -> Plan:
    return Plan(METHOD, "by hand", data, Scenario(data.name, split, protocol), seeds, SHORT)


def timeless(runs: Iterator[Run]) -> list[Run]:
    return [replace(each, seconds=0) for each in runs]


def test_the_public_split_is_the_same_for_every_seed(data: Dataset) -> None:
    done = list(plan(data, "public").runs())
    assert data.public is not None
    assert {each.split_digest for each in done} == {data.public.digest}
    assert [each.seed for each in done] == [0, 1, 2]
    assert len({each.test_accuracy for each in done}) > 1  # the weights differ


@pytest.mark.parametrize("how", ["1%", "5 per class"])
def test_a_random_split_is_drawn_for_each_seed(data: Dataset, how: str) -> None:
    digests = [each.split_digest for each in plan(data, how).runs()]
    assert len(set(digests)) == 3
    assert digests == [data.split(how, seed=seed).digest for seed in range(3)]


def test_a_run_depends_on_its_own_seed_only(data: Dataset) -> None:
    three = timeless(plan(data, "1%").runs())
    split = data.split("1%", seed=2)
    direct = replace(run_system(METHOD, data, split, seed=2, conditions=SHORT), seconds=0)
    assert three[2] == direct
    assert timeless(plan(data, "1%", seeds=1).runs()) == three[:1]


def test_runs_are_yielded_as_they_are_finished(data: Dataset) -> None:
    heard: list[tuple[int, int]] = []

    def listen(seed: int, epoch: Epoch) -> None:
        heard.append((seed, epoch.number))

    going = plan(data, "public").runs(listen)
    assert heard == []
    assert next(going).seed == 0
    assert heard == [(0, 1), (0, 2), (0, 3)]
    assert next(going).seed == 1
    assert {seed for seed, _ in heard} == {0, 1}
    assert [each.seed for each in going] == [2]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_results_are_the_same_whatever_the_jobs(data: Dataset, name: str) -> None:
    method = system(name, {"hidden": 8, "dropout": 0.3})
    conditions = Conditions(rule=StopRule(max_epochs=12))
    one = Plan(method, "by hand", data, Scenario(data.name, "1%", "validation"), 3, conditions)
    two = replace(one, jobs=2)
    alone, spread = timeless(one.runs()), timeless(two.runs())
    assert alone == spread
    assert [each.seed for each in spread] == [0, 1, 2]
    assert len({each.test_accuracy for each in spread}) > 1
    assert (one.result(alone).threads, two.result(spread).threads) == (2, 1)


def test_runs_in_other_processes_are_heard_of(data: Dataset) -> None:
    heard: set[int] = set()
    going = replace(plan(data, "public"), jobs=2).runs(lambda seed, epoch: heard.add(seed))
    assert len(list(going)) == 3
    assert heard == {0, 1, 2}


def test_no_more_jobs_than_seeds_and_at_least_one(data: Dataset) -> None:
    assert replace(plan(data, "public"), jobs=8).jobs == 3
    with pytest.raises(UsageError, match="at least 1 job; there are 0"):
        replace(plan(data, "public"), jobs=0)


def test_the_protocol_reaches_the_runs(data: Dataset) -> None:
    hidden = list(plan(data, "1%", seeds=2, protocol="no-validation").runs())
    assert [each.validation_accuracy for each in hidden] == [None, None]
    assert all(0 < each.test_accuracy < 1 for each in hidden)


def test_what_cannot_work_stops_before_the_first_run(data: Dataset) -> None:
    heard: list[int] = []
    with pytest.raises(UsageError, match="too few for 500 validation"):
        next(plan(data, "100%").runs(lambda seed, epoch: heard.append(seed)))
    with pytest.raises(UsageError, match="Unknown protocol 'neither'"):
        next(plan(data, "1%", protocol="neither").runs(lambda seed, epoch: heard.append(seed)))
    assert heard == []


@pytest.mark.parametrize("seeds", [0, -2])
def test_a_plan_needs_a_seed(data: Dataset, seeds: int) -> None:
    with pytest.raises(UsageError, match=f"at least 1 seed; there are {seeds}"):
        plan(data, "public", seeds=seeds)


def test_the_result_of_a_plan_says_what_was_run(cora: Dataset) -> None:
    whole = plan(cora, "0.010", seeds=2)
    runs = list(whole.runs())
    result = whole.result(runs)
    assert (result.system, result.dataset, result.split) == ("linear-snowball", "cora", "1%")
    assert (result.protocol, result.operator) == ("validation", "sym")
    assert result.settings == METHOD.settings.as_dict()
    assert result.settings_source == "by hand"
    assert (result.device, result.precision) == ("cpu", "float32")
    assert result.runs == tuple(runs)
    assert result.paper == 0.7310
    assert len(whole.result(runs[:1]).runs) == 1


def test_where_the_paper_prints_nothing_the_result_has_no_number_of_its(data: Dataset) -> None:
    whole = plan(data, "public", seeds=1)
    assert whole.result(list(whole.runs())).paper is None
