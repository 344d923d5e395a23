from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.errors import UsageError
from kryograph.experiments.published import published
from kryograph.systems import SYSTEMS, NetworkSettings, System, system
from kryograph.systems.base import Fit
from kryograph.systems.settings import SearchRange, Settings
from kryograph.tuning.space import (
    PAPER_RANGES,
    join_spaces,
    parse_values,
    search_space,
    widen_space,
)


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

    name = "nothing"
    uses_operator = False
    settings_type = Settings

    def fit(self, *_: object, **__: object) -> Fit:
        raise NotImplementedError

    apply = fit  # type: ignore[assignment]


def test_a_system_without_settings_cannot_be_searched() -> None:
    SYSTEMS.add("nothing", Nothing)
    try:
        with pytest.raises(UsageError, match="nothing has no setting that a search could change"):
            search_space("nothing")
    finally:
        SYSTEMS.remove("nothing")


def test_an_unknown_system_has_no_space() -> None:
    with pytest.raises(UsageError, match="Unknown system 'gnc': did you mean 'gcn'"):
        search_space("gnc")


numbers = st.floats(1e-6, 1e3)
ranges = st.builds(
    lambda low, more, log: SearchRange(low, low + more, log), numbers, numbers, st.booleans()
)


@given(ranges, ranges)
def test_join_spaces_contains_both_ranges(one: SearchRange, other: SearchRange) -> None:
    both = join_spaces(one, other)
    assert isinstance(both, SearchRange)
    assert both.low == min(one.low, other.low)
    assert both.high == max(one.high, other.high)
    assert both == join_spaces(other, one)


@given(ranges, st.floats(0, 1e4))
def test_widen_space_contains_the_value_and_no_more(where: SearchRange, value: float) -> None:
    widened = widen_space({"lr": where}, {"lr": value})["lr"]
    assert isinstance(widened, SearchRange)
    assert widened.low == min(where.low, value)
    assert widened.high == max(where.high, value)
    assert not (widened.log and widened.low == 0)  # zero has no order of magnitude


def test_widen_space_adds_a_choice() -> None:
    assert widen_space({"start": ("a", "b")}, {"start": "c"}) == {"start": ("a", "b", "c")}
    assert widen_space({"start": ("a", "b")}, {"start": "a"}) == {"start": ("a", "b")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "The setting 'lr' is searched from 0.0001 to 0.1, not ''."),
        ("lr=5", "The setting 'lr' is searched from 0.0001 to 0.1, not '5'."),
        ("lr=fast", "The setting 'lr' is searched from 0.0001 to 0.1, not 'fast'."),
        ("hidden=20.5", "The setting 'hidden' is searched from 16 to 1024, not '20.5'."),
        ("layers=4", "The setting 'layers' is one of 1, 2, 3, 5, 8, not '4'."),
        ("rl=0.1", "Unknown setting 'rl'"),
    ],
)
def test_parse_values_refuses_what_is_not_in_the_space(text: str, message: str) -> None:
    settings = NetworkSettings()
    with pytest.raises(UsageError) as caught:
        parse_values(settings.search_space(), [text], settings)
    assert str(caught.value).startswith(message)
