from __future__ import annotations

from dataclasses import replace

import pytest

from kryograph.errors import UsageError
from kryograph.experiments.published import paper_settings
from kryograph.experiments.resolve import (
    cell_jobs,
    cell_settings,
    resolve_settings,
    settings_to_run,
)
from kryograph.experiments.result_tables import result_table
from kryograph.experiments.tuned import Tuned
from kryograph.runs.job import Job, Scenario
from kryograph.systems import system

NAME = "truncated-krylov"
CORA_PUBLIC = Scenario("cora", "public", "validation")
COLUMN = Scenario("cora", "1%", "validation")
OTHER = Scenario("cora", "3%", "validation")
FOUND = Tuned(
    system(NAME, {"hidden": 100, "classifier": True}, operator="rw"), COLUMN, 0.75, "by a search"
)


def test_which_settings_a_cell_has() -> None:
    def source(which: str, scenario: Scenario = COLUMN, long: bool = False) -> str | None:
        job = cell_settings(NAME, scenario, which, [FOUND], lambda job: long)
        return job.settings_source if job else None

    assert [source(which) for which in ("default", "paper", "tuned", "best")] == [
        *("default", "paper", "tuned", "tuned")
    ]
    assert [source(which, OTHER) for which in ("tuned", "best")] == [None, "default"]
    assert source("paper", long=True) == "tuned, as the paper's are over budget"
    assert source("paper", OTHER, long=True) == "default, as the paper's are over budget"
    assert cell_settings("gcn", COLUMN, "paper", []) == Job(system("gcn"), "default", COLUMN)
    best = cell_settings(NAME, COLUMN, "best", [FOUND])
    assert best is not None
    assert best.system == FOUND.system
    leaky = Scenario("cora", "1% leaky", "validation")
    assert cell_settings(NAME, leaky, "best", [FOUND]) == replace(best, scenario=leaky)
    with pytest.raises(UsageError, match="Unknown kind of settings 'bets'"):
        source("bets")


def test_all_settings_of_a_data_set_are_tried_where_validation_labels_can_choose() -> None:
    elsewhere = Tuned(FOUND.system, Scenario("citeseer", "1%", "validation"), 0.7, "elsewhere")
    hidden = replace(COLUMN, protocol="no-validation")
    other = Tuned(system(NAME, {"hidden": 9}), hidden, 0.7, "without validation labels")
    again = Tuned(system(NAME, {"hidden": 9}), OTHER, 0.7, "the same again")
    gcn = Tuned(system("gcn", {"hidden": 9}), COLUMN, 0.7, "another system")
    known = [gcn, elsewhere, other, again, FOUND]

    def sources(scenario: Scenario, which: str = "best", long: bool = False) -> list[str]:
        jobs = settings_to_run(NAME, scenario, which, known, lambda job: long)
        assert {job.scenario for job in jobs} <= {scenario}
        return [job.settings_source for job in jobs]

    also = "tuned for cora 1%, no-validation"
    assert sources(COLUMN) == ["tuned", "default", "paper", also]
    assert sources(COLUMN, long=True) == ["tuned", "default", also]
    assert sources(CORA_PUBLIC) == ["default", "paper", also, "tuned for cora 1%, validation"]
    assert sources(hidden) == sources(COLUMN, "tuned") == ["tuned"]
    assert sources(replace(COLUMN, split="1% leaky")) == ["tuned"]
    assert sources(COLUMN, "paper") == ["paper"]
    assert sources(CORA_PUBLIC, "tuned") == []


# What a person asks for


def test_cell_jobs_takes_other_settings_if_published_ones_are_too_long() -> None:
    """The widest cell of the paper has 534 million weights."""
    widest = result_table("table1").part(["snowball"], ["Cora 4%"])
    [within] = cell_jobs(widest, "paper", [])
    [over] = cell_jobs(widest, "paper", [], lambda job: True)
    assert within.settings_source == "paper"
    assert over.settings_source == "default, as the paper's are over budget"
    assert over.system.settings.hidden < 1000 < within.system.settings.hidden


def test_cell_jobs_is_an_error_without_any_settings() -> None:
    with pytest.raises(UsageError, match="None of these cells has tuned settings"):
        cell_jobs(result_table("table1").part(["gcn"]), "tuned", [])


def test_resolve_settings_default_is_the_systems_own() -> None:
    resolved = resolve_settings("truncated-krylov", CORA_PUBLIC)
    assert resolved.system == system("truncated-krylov")
    assert resolved.system.operator == "sym"
    assert resolved.source == "default"


def test_resolve_settings_paper_is_the_published_row() -> None:
    scenario = Scenario("citeseer", "0.010", "validation")
    resolved = resolve_settings("snowball", scenario, "paper")
    row = paper_settings("snowball", Scenario("citeseer", "1%", "validation"))
    assert resolved.system.settings == row.settings
    assert resolved.system.operator == "rw"
    assert (resolved.source, resolved.published) == ("paper", row)


def test_resolve_settings_names_what_the_paper_prints_whatever_the_choice() -> None:
    published = resolve_settings("snowball", CORA_PUBLIC).published
    assert published is not None
    assert published.scenario == CORA_PUBLIC
    assert resolve_settings("gcn", CORA_PUBLIC).published is None


@pytest.mark.parametrize("choice", ["default", "paper"])
def test_resolve_settings_changes_come_on_top_and_are_named(choice: str) -> None:
    plain = resolve_settings("truncated-krylov", CORA_PUBLIC, choice).system
    changes = {"hidden": "8", "classifier": "false"}
    resolved = resolve_settings("truncated-krylov", CORA_PUBLIC, choice, changes)
    assert resolved.system.settings == plain.settings.replace({"hidden": 8, "classifier": False})
    assert resolved.system.operator == plain.operator
    assert resolved.source == f"{choice}, with changed hidden, classifier"


@pytest.mark.parametrize("choice", ["default", "paper"])
def test_resolve_settings_another_operator_may_be_requested(choice: str) -> None:
    for name in ("sym", "rw", "affinity"):
        resolved = resolve_settings("snowball", CORA_PUBLIC, choice, operator=name)
        assert resolved.system.operator == name


def test_resolve_settings_bad_choices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"Unknown system 'krylov': .* 'truncated-krylov'"):
        resolve_settings("krylov", CORA_PUBLIC, "paper")
    with pytest.raises(UsageError, match="Unknown kind of settings 'papr': did you mean 'paper'"):
        resolve_settings("snowball", CORA_PUBLIC, "papr")
    with pytest.raises(UsageError, match="no settings of snowball for synthetic public, valid"):
        resolve_settings("snowball", Scenario("synthetic", "public", "validation"), "paper")
    with pytest.raises(UsageError, match="Unknown setting 'order'"):
        resolve_settings("snowball", CORA_PUBLIC, "paper", {"order": "3"})


def known() -> list[Tuned]:
    return [FOUND]


def test_resolve_settings_tuned_are_those_that_a_search_found() -> None:
    for choice in ("tuned", "best"):
        resolved = resolve_settings(NAME, COLUMN, choice, read_tuned=known)
        assert (resolved.system, resolved.source) == (FOUND.system, "tuned")
    changed = resolve_settings(NAME, COLUMN, "tuned", {"order": "3"}, "sym", read_tuned=known)
    assert changed.system == system(NAME, FOUND.system.settings.replace({"order": 3}))
    assert changed.source == "tuned, with changed order"
    default = resolve_settings(NAME, OTHER, "best", read_tuned=known)
    assert (default.system, default.source) == (system(NAME), "default")
    with pytest.raises(UsageError, match=r"No search has found settings of .* for cora 3%, valid"):
        resolve_settings(NAME, OTHER, "tuned", read_tuned=known)


@pytest.mark.parametrize("choice", ["default", "paper"])
def test_resolve_settings_reads_results_of_searches_only_if_it_needs_them(choice: str) -> None:
    def read_damaged_file() -> list[Tuned]:
        raise UsageError("tuned.toml is not TOML.")

    assert resolve_settings(NAME, CORA_PUBLIC, choice, read_tuned=read_damaged_file)
    with pytest.raises(UsageError, match="not TOML"):
        resolve_settings(NAME, CORA_PUBLIC, "best", read_tuned=read_damaged_file)
