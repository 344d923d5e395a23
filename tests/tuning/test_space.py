from __future__ import annotations

import pytest

from kryograph.errors import UsageError
from kryograph.experiments.published import published
from kryograph.systems import SYSTEMS, System, system
from kryograph.systems.base import Fit
from kryograph.systems.settings import SearchRange, Settings
from kryograph.tuning.space import PAPER_RANGES, search_space


def is_in(value: object, where: object) -> bool:
    if isinstance(where, SearchRange):
        assert isinstance(value, int | float)
        return where.low <= value <= where.high
    assert isinstance(where, tuple)
    return value in where


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_default_settings_are_in_the_space_of_every_system(name: str) -> None:
    default = system(name)
    space = search_space(name, [default])
    values = {**default.settings.as_dict(), "operator": default.operator}
    assert all(is_in(values[setting], where) for setting, where in space.items())
    assert ("operator" in space) is SYSTEMS[name].uses_operator


def test_every_published_row_is_a_point_of_the_space_that_has_to_hold_it() -> None:
    for row in published():
        space = search_space(row.system, [system(row.system, row.settings, operator=row.operator)])
        values = {**row.settings.as_dict(), "operator": row.operator}
        assert all(is_in(values[setting], where) for setting, where in space.items())
        # Nothing that a row gives is left to the defaults.
        default = {**system(row.system).settings.as_dict(), "operator": "sym"}
        assert {setting for setting in values if values[setting] != default[setting]} <= set(space)


@pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])
def test_the_papers_own_systems_are_searched_where_the_paper_did(name: str) -> None:
    space = search_space(name)
    for setting, where in PAPER_RANGES.items():
        if setting not in system(name).settings.as_dict():
            continue
        ends = (where.low, where.high) if isinstance(where, SearchRange) else where
        assert all(is_in(end, space[setting]) for end in ends)
    assert is_in(0.0175, space["lr"])  # our defaults are above the paper's range


def test_other_systems_are_searched_where_they_say_themselves() -> None:
    assert search_space("gcn") == {
        **SYSTEMS["gcn"].settings_type.search_space(),
        "operator": ("sym", "rw"),
    }
    assert "feature_dropout" in search_space("ggnn")


class Nothing(System):
    """Has no settings, and no use for an operator."""

    uses_operator = False
    settings_type = Settings

    def _fit(self, *_: object) -> Fit:
        raise NotImplementedError

    apply = _fit  # type: ignore[assignment]


def test_a_system_without_settings_cannot_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "nothing", Nothing)
    with pytest.raises(UsageError, match="nothing has no setting that a search could change"):
        search_space("nothing")


def test_an_unknown_system_has_no_space() -> None:
    with pytest.raises(UsageError, match="Unknown system 'gnc': did you mean 'gcn'"):
        search_space("gnc")
