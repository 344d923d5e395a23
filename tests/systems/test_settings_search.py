from __future__ import annotations

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.systems import SYSTEMS
from kryograph.systems.settings import SearchRange, containing, join_spaces, sample_settings

VALUES = {"hidden": 64, "dropout": 0.0, "optimizer": "adam", "classifier": True}
SPACE = {
    "hidden": SearchRange(16, 5000, log=True),
    "dropout": SearchRange(0, 0.99),
    "optimizer": ("rmsprop", "adam"),
    "classifier": (False, True),
}


def test_whole_numbers_stay_whole_and_words_stay_words() -> None:
    settings = SYSTEMS["truncated-krylov"].settings_type()
    made = sample_settings(optuna.trial.FixedTrial(VALUES), SPACE, settings)
    assert made == VALUES
    assert {name: type(value) for name, value in made.items()} == {
        "hidden": int,
        "dropout": float,
        "optimizer": str,
        "classifier": bool,
    }


def test_a_value_outside_of_the_space_is_not_suggested() -> None:
    settings = SYSTEMS["truncated-krylov"].settings_type()
    with pytest.warns(UserWarning, match="out of the range"):
        sample_settings(optuna.trial.FixedTrial({**VALUES, "hidden": 6}), SPACE, settings)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_accepts_what_is_suggested_in_its_own_space(name: str) -> None:
    settings = SYSTEMS[name].settings_type()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(3):
        values = sample_settings(study.ask(), settings.search_space(), settings)
        assert settings.replace(values).as_dict() == {**settings.as_dict(), **values}


numbers = st.floats(1e-6, 1e3)
ranges = st.builds(
    lambda low, more, log: SearchRange(low, low + more, log), numbers, numbers, st.booleans()
)


@given(ranges, ranges)
def test_what_is_in_either_range_is_in_both_joined(one: SearchRange, other: SearchRange) -> None:
    both = join_spaces(one, other)
    assert isinstance(both, SearchRange)
    assert both.low == min(one.low, other.low)
    assert both.high == max(one.high, other.high)
    assert both == join_spaces(other, one)


@given(ranges, st.floats(0, 1e4))
def test_a_space_is_widened_to_hold_a_value_and_no_further(
    where: SearchRange, value: float
) -> None:
    made = containing({"lr": where}, {"lr": value})["lr"]
    assert isinstance(made, SearchRange)
    assert made.low == min(where.low, value)
    assert made.high == max(where.high, value)
    assert not (made.log and made.low == 0)  # zero has no order of magnitude


def test_a_choice_is_added_to_the_choices() -> None:
    assert containing({"start": ("a", "b")}, {"start": "c"}) == {"start": ("a", "b", "c")}
    assert containing({"start": ("a", "b")}, {"start": "a"}) == {"start": ("a", "b")}
