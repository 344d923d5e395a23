from __future__ import annotations

from dataclasses import replace

import pytest

from kryograph.errors import UsageError
from kryograph.experiments.published import paper_settings
from kryograph.experiments.resolve import cell_settings, resolve_settings, settings_to_run
from kryograph.experiments.tuned import Tuned
from kryograph.runs.job import Scenario
from kryograph.systems import system

NAME = "truncated-krylov"
CORA_PUBLIC = Scenario("cora", "public", "validation")
COLUMN = Scenario("cora", "1%", "validation")
OTHER = Scenario("cora", "3%", "validation")
FOUND = Tuned(
    system(NAME, {"hidden": 100, "classifier": True}, operator="rw"), COLUMN, 0.75, "by a search"
)


def test_which_settings_a_cell_has() -> None:
    def source(which: str, column: Scenario = COLUMN, long: bool = False) -> str | None:
        found = cell_settings(NAME, column, which, [FOUND], lambda method: long)
        return found[1] if found else None

    assert [source(which) for which in ("default", "paper", "tuned", "best")] == [
        *("default", "paper", "tuned", "tuned")
    ]
    assert [source(which, OTHER) for which in ("tuned", "best")] == [None, "default"]
    assert source("paper", long=True) == "tuned, as the paper's are over budget"
    assert source("paper", OTHER, long=True) == "default, as the paper's are over budget"
    assert cell_settings("gcn", COLUMN, "paper", []) == (system("gcn"), "default")
    best = cell_settings(NAME, COLUMN, "best", [FOUND])
    assert best is not None
    assert best[0] == FOUND.system
    assert cell_settings(NAME, Scenario("cora", "1% leaky", "validation"), "best", [FOUND]) == best
    with pytest.raises(UsageError, match="Unknown kind of settings 'bets'"):
        source("bets")


def test_all_settings_of_a_data_set_are_tried_where_validation_labels_can_choose() -> None:
    elsewhere = Tuned(FOUND.system, Scenario("citeseer", "1%", "validation"), 0.7, "elsewhere")
    hidden = replace(COLUMN, protocol="no-validation")
    other = Tuned(system(NAME, {"hidden": 9}), hidden, 0.7, "without validation labels")
    again = Tuned(system(NAME, {"hidden": 9}), OTHER, 0.7, "the same again")
    gcn = Tuned(system("gcn", {"hidden": 9}), COLUMN, 0.7, "another system")
    known = [gcn, elsewhere, other, again, FOUND]

    def sources(column: Scenario, which: str = "best", long: bool = False) -> list[str]:
        found = settings_to_run(NAME, column, which, known, lambda method: long)
        return [source for _, source in found]

    also = "tuned for cora 1%, no-validation"
    assert sources(COLUMN) == ["tuned", "default", "paper", also]
    assert sources(COLUMN, long=True) == ["tuned", "default", also]
    assert sources(CORA_PUBLIC) == ["default", "paper", also, "tuned for cora 1%, validation"]
    assert sources(hidden) == sources(COLUMN, "tuned") == ["tuned"]
    assert sources(replace(COLUMN, split="1% leaky")) == ["tuned"]
    assert sources(COLUMN, "paper") == ["paper"]
    assert sources(CORA_PUBLIC, "tuned") == []


# What a person asks for


def test_default_settings_are_the_systems_own() -> None:
    chosen, source = resolve_settings("truncated-krylov", CORA_PUBLIC)
    assert chosen == system("truncated-krylov")
    assert chosen.operator == "sym"
    assert source == "default"


def test_paper_settings_are_the_rows() -> None:
    chosen, source = resolve_settings(
        "snowball", Scenario("citeseer", "0.010", "validation"), "paper", {}
    )
    assert (
        chosen.settings
        == paper_settings("snowball", Scenario("citeseer", "1%", "validation")).settings
    )
    assert chosen.operator == "rw"
    assert source == "paper"


@pytest.mark.parametrize("which", ["default", "paper"])
def test_changes_come_on_top_and_are_named(which: str) -> None:
    plain, _ = resolve_settings("truncated-krylov", CORA_PUBLIC, which, {})
    changes = {"hidden": "8", "classifier": "false"}
    chosen, source = resolve_settings("truncated-krylov", CORA_PUBLIC, which, changes)
    assert chosen.settings == plain.settings.replace({"hidden": 8, "classifier": False})
    assert chosen.operator == plain.operator
    assert source == f"{which}, with changed hidden, classifier"


@pytest.mark.parametrize("which", ["default", "paper"])
def test_another_operator_may_be_asked_for(which: str) -> None:
    for name in ("sym", "rw", "affinity"):
        assert resolve_settings("snowball", CORA_PUBLIC, which, operator=name)[0].operator == name


def test_bad_choices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"Unknown system 'krylov': .* 'truncated-krylov'"):
        resolve_settings("krylov", CORA_PUBLIC, "default", {})
    with pytest.raises(UsageError, match="Unknown kind of settings 'papr': did you mean 'paper'"):
        resolve_settings("snowball", CORA_PUBLIC, "papr", {})
    with pytest.raises(UsageError, match="no settings of snowball for synthetic public, valid"):
        resolve_settings("snowball", Scenario("synthetic", "public", "validation"), "paper", {})
    with pytest.raises(UsageError, match="Unknown setting 'order'"):
        resolve_settings("snowball", CORA_PUBLIC, "paper", {"order": "3"})


def test_tuned_settings_are_those_that_a_search_found() -> None:
    for which in ("tuned", "best"):
        assert resolve_settings(NAME, COLUMN, which, tuned=[FOUND]) == (FOUND.system, "tuned")
    changed, source = resolve_settings(NAME, COLUMN, "tuned", {"order": "3"}, "sym", tuned=[FOUND])
    assert (changed.settings, changed.operator) == (
        FOUND.system.settings.replace({"order": 3}),
        "sym",
    )
    assert source == "tuned, with changed order"
    assert resolve_settings(NAME, OTHER, "best", tuned=[FOUND]) == (system(NAME), "default")
    with pytest.raises(UsageError, match=r"No search has found settings of .* for cora 3%, valid"):
        resolve_settings(NAME, OTHER, "tuned", tuned=[FOUND])
