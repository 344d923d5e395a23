from __future__ import annotations

from dataclasses import replace

import pytest

from kryograph.data import load
from kryograph.errors import UsageError
from kryograph.runs.job import Job, Scenario, over_seeds
from kryograph.systems import system
from kryograph.training.stopping import RULES, exactly

SCENARIO = Scenario("synthetic", "1%", "validation")
JOB = Job(system("gcn", {"hidden": 4}, operator="rw"), "by hand", SCENARIO, seed=2)


def test_scenario_is_equal_however_the_rate_is_written() -> None:
    assert Scenario("cora", "0.010", "validation") == Scenario("cora", "1.0 %", "validation")
    assert str(Scenario("cora", "0.01", "validation")) == "cora 1%, validation"


def test_scenario_with_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown protocol 'validate': did you mean 'validation'"):
        Scenario("cora", "1%", "validate")


@pytest.mark.parametrize(("protocol", "sees"), [("validation", True), ("no-validation", False)])
def test_scenario_task_has_the_split_of_the_seed_and_the_labels_of_the_protocol(
    protocol: str, sees: bool
) -> None:
    data = load("synthetic")
    scenario = replace(SCENARIO, protocol=protocol)
    task = scenario.task(data, seed=3)
    assert scenario.sees_validation is task.has_validation is sees
    assert task.split.digest == data.split("1%", seed=3).digest
    assert task.split.digest != scenario.task(data, seed=4).split.digest
    public = replace(scenario, split="public")
    assert public.task(data, seed=3).split.digest == public.task(data, seed=4).split.digest


def test_job_identity_has_nine_fields() -> None:
    assert JOB.identity == {
        "system": "gcn",
        "dataset": "synthetic",
        "split": "1%",
        "protocol": "validation",
        "stop": "paper",
        "operator": "rw",
        "precision": "float32",
        "settings": JOB.system.settings.identity(),
        "seed": 2,
    }


def test_job_row_has_the_key_of_the_job() -> None:
    row = JOB.row(test_accuracy=0.5)
    assert row.key == JOB.key
    assert row.setting_digest == JOB.setting_digest
    assert row.settings_source == "by hand"


def test_job_key_depends_on_stop_rule_and_precision_but_not_on_the_device() -> None:
    assert replace(JOB, stop="200").key != JOB.key
    assert replace(JOB, precision="bfloat16").key != JOB.key
    assert replace(JOB, device="cuda").key == JOB.key


def test_job_conditions_are_those_of_its_names() -> None:
    conditions = replace(JOB, stop="li", precision="bfloat16", device="cuda").conditions
    assert conditions.rule == RULES["li"]
    assert (conditions.precision, conditions.device) == ("bfloat16", "cuda")
    assert replace(JOB, stop="7").conditions.rule == exactly(7)


def test_job_with_an_unknown_stop_rule_or_precision_is_refused() -> None:
    with pytest.raises(UsageError, match="Unknown stop rule 'papr': did you mean 'paper'"):
        replace(JOB, stop="papr")
    with pytest.raises(UsageError, match="Unknown precision 'float16'"):
        replace(JOB, precision="float16")


def test_over_seeds_one_run_of_every_job_comes_before_the_second_of_any() -> None:
    other = replace(JOB, scenario=Scenario("synthetic", "public", "no-validation"))
    jobs = over_seeds([JOB, other], 3)
    assert [(job.scenario, job.seed) for job in jobs] == [
        (job.scenario, seed) for seed in range(3) for job in (JOB, other)
    ]


@pytest.mark.parametrize("count", [0, -2])
def test_over_seeds_needs_at_least_one(count: int) -> None:
    with pytest.raises(UsageError, match=f"number of runs must be at least 1; it is {count}"):
        over_seeds([JOB], count)
