from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.errors import UsageError
from kryograph.systems import SYSTEMS
from kryograph.systems.multi_scale import TruncatedKrylovSettings
from kryograph.systems.network import NetworkSettings
from kryograph.systems.settings import SearchRange, Settings, inherited, sample_settings, setting


@dataclass(frozen=True)
class Example(Settings):
    units: int = setting(4, "units", low=1, below=100)
    rate: float = setting(0.5, "rate", low=0)
    share: float = setting(0.5, "share", below=1)
    kind: str = setting("soft", "kind", choices=("soft", "hard"))
    loud: bool = setting(False, "whether to shout")


FIELDS = [
    pytest.param(cls.settings_type, field, id=f"{name}-{field.name}")
    for name, cls in SYSTEMS.items()
    for field in dataclasses.fields(cls.settings_type)
]


@pytest.mark.parametrize(("record", "field"), FIELDS)
def test_every_setting_is_described_and_bounded(
    record: type[Settings], field: dataclasses.Field[Any]
) -> None:
    meta = field.metadata
    assert meta["summary"]
    assert getattr(record(), field.name) == field.default
    if isinstance(field.default, (int, float)) and not isinstance(field.default, bool):
        assert meta["low"] is not None
        assert getattr(record().replace({field.name: meta["low"]}), field.name) == meta["low"]
        below_low = meta["low"] - 1 if isinstance(field.default, int) else meta["low"] - 1e-13
        for text in {str(below_low), str(min(below_low, -1))}:
            with pytest.raises(
                UsageError, match=rf"^The setting '{field.name}' must be at least .*; it is -?\d"
            ):
                record().replace({field.name: text})
    if isinstance(field.default, float):
        assert meta["below"] is not None
        limit = re.escape(f"{meta['below']:g}")
        for text in (str(meta["below"]), "inf", "nan"):
            with pytest.raises(
                UsageError,
                match=rf"^The setting '{field.name}' must be at least .* and less than "
                rf"{limit}; it is (nan|inf|\d+(\.0)?)\.$",
            ):
                record().replace({field.name: text})
    if isinstance(field.default, str):
        for choice in meta["choices"] or [field.default]:
            assert getattr(record().replace({field.name: choice}), field.name) == choice
        # Without a list of choices the record itself knows what is allowed.
        listed = f"^Unknown value of the setting '{field.name}' 'zzz'"
        with pytest.raises(UsageError, match=listed if meta["choices"] else "'zzz'"):
            record().replace({field.name: "zzz"})


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("hidden", "0", "The setting 'hidden' must be at least 1 and less than 100000; it is 0."),
        ("hidden", "-3", "The setting 'hidden' must be at least 1 and less than 100000; it is -3."),
        ("hidden", "1.5", "The setting 'hidden' takes a whole number, not '1.5'."),
        ("hidden", "many", "The setting 'hidden' takes a whole number, not 'many'."),
        ("hidden", "", "The setting 'hidden' takes a whole number, not ''."),
        ("layers", "0", "The setting 'layers' must be at least 1 and less than 10000; it is 0."),
        ("layers", "nan", "The setting 'layers' takes a whole number, not 'nan'."),
        ("order", "0", "The setting 'order' must be at least 1 and less than 10000; it is 0."),
        ("order", "inf", "The setting 'order' takes a whole number, not 'inf'."),
        ("dropout", "1", "The setting 'dropout' must be at least 0 and less than 1; it is 1.0."),
        ("dropout", "nan", "The setting 'dropout' must be at least 0 and less than 1; it is nan."),
        ("dropout", "half", "The setting 'dropout' takes a number, not 'half'."),
        ("lr", "0", "The setting 'lr' must be at least 1e-12 and less than 1000; it is 0.0."),
        ("lr", "inf", "The setting 'lr' must be at least 1e-12 and less than 1000; it is inf."),
        ("lr", "1000", "The setting 'lr' must be at least 1e-12 and less than 1000; it is 1000.0."),
        (
            "weight_decay",
            "-0.1",
            "The setting 'weight_decay' must be at least 0 and less than 1000; it is -0.1.",
        ),
        (
            "optimizer",
            "adm",
            "Unknown value of the setting 'optimizer' 'adm': did you mean 'adam'? "
            "There are: adam, rmsprop.",
        ),
        ("classifier", "yes", "The setting 'classifier' takes true or false, not 'yes'."),
        ("classifier", "1", "The setting 'classifier' takes true or false, not '1'."),
    ],
)
def test_what_is_not_allowed_is_said_in_a_sentence(name: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        TruncatedKrylovSettings().replace({name: text})
    assert str(caught.value) == sentence
    assert caught.value.exit_code == 2


def test_values_are_checked_however_the_record_is_made() -> None:
    with pytest.raises(
        UsageError, match="'hidden' must be at least 1 and less than 100000; it is 0"
    ):
        TruncatedKrylovSettings(hidden=0)
    with pytest.raises(UsageError, match="'dropout' must be at least 0 and less than 1"):
        NetworkSettings(dropout=float("nan"))
    with pytest.raises(UsageError, match="'optimizer' 'sgd'"):
        NetworkSettings(optimizer="sgd")


def test_text_is_read_as_the_settings_own_type() -> None:
    texts = {"units": "7", "rate": "1e-3", "share": "-2", "kind": "hard", "loud": "TRUE"}
    changed = Example().replace(texts)
    assert changed == Example(units=7, rate=0.001, share=-2.0, kind="hard", loud=True)
    assert isinstance(changed.share, float)
    assert changed.replace({"loud": "false"}).loud is False


def test_one_sided_bounds_name_one_side() -> None:
    with pytest.raises(UsageError, match=r"'rate' must be at least 0; it is -1\.0\.$"):
        Example().replace({"rate": "-1"})
    with pytest.raises(UsageError, match=r"'share' must be less than 1; it is 1\.0\.$"):
        Example().replace({"share": "1"})
    with pytest.raises(UsageError, match=r"at least 1 and less than 100; it is 100\.$"):
        Example().replace({"units": "100"})


@given(units=st.integers(1, 99), rate=st.floats(0, 1e300), loud=st.booleans())
def test_text_and_value_make_the_same_record(units: int, rate: float, loud: bool) -> None:
    values = {"units": units, "rate": rate, "loud": loud}
    texts = {name: str(value) for name, value in values.items()}
    assert Example().replace(texts) == Example().replace(values) == Example(**values)


def test_a_change_leaves_the_original_alone() -> None:
    original = Example()
    assert original.replace({"units": 9}).as_dict() == original.as_dict() | {"units": 9}
    assert original == Example()
    assert original.replace({}) == original


def test_an_unknown_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UsageError,
        match=r"^Unknown setting 'unit': did you mean 'units'\? There are: units, rate, share, "
        r"kind, loud\.$",
    ):
        Example().replace({"unit": "3"})


# Where a search looks


@dataclass(frozen=True)
class Searched(Settings):
    width: int = setting(8, "units", low=1, search=(4, 8))
    rate: float = setting(0.1, "rate", low=0, search=SearchRange(1e-4, 1.0, log=True))
    fixed: int = setting(1, "not searched", low=1)


@dataclass(frozen=True)
class Narrower(Searched):
    rate: float = inherited(Searched, "rate", 0.5)
    width: int = inherited(Searched, "width", 4, "units of its own")


def test_a_search_space_names_what_may_change_and_nothing_else() -> None:
    assert Searched.search_space() == {"width": (4, 8), "rate": SearchRange(1e-4, 1.0, log=True)}
    assert Example.search_space() == {}
    assert SearchRange(0, 1) == SearchRange(0, 1, log=False) != SearchRange(0, 1, log=True)


def test_an_inherited_setting_keeps_its_limits_and_its_search() -> None:
    assert Narrower().as_dict() == {"width": 4, "rate": 0.5, "fixed": 1}
    assert Narrower.search_space() == Searched.search_space()
    summaries = {f.name: f.metadata["summary"] for f in dataclasses.fields(Narrower)}
    assert summaries == {"width": "units of its own", "rate": "rate", "fixed": "not searched"}
    with pytest.raises(UsageError, match="'width' must be at least 1; it is 0"):
        Narrower(width=0)


@dataclass(frozen=True)
class Grown(Settings):
    width: int = setting(4, "units")
    noise: float = setting(0.5, "added later", low=0, neutral=0.0)


def test_a_run_is_known_by_what_it_was_known_by_before_a_setting_was_added() -> None:
    assert Grown(noise=0.0).identity() == {"width": 4}
    assert Grown().identity() == {"width": 4, "noise": 0.5}
    assert Grown(noise=0.0).as_dict() == {"width": 4, "noise": 0.0}
    assert "input_dropout" not in TruncatedKrylovSettings().identity()


VALUES = {"hidden": 64, "dropout": 0.0, "optimizer": "adam", "classifier": True}
SPACE = {
    "hidden": SearchRange(16, 5000, log=True),
    "dropout": SearchRange(0, 0.99),
    "optimizer": ("rmsprop", "adam"),
    "classifier": (False, True),
}


def test_sample_settings_keeps_the_type_of_each_setting() -> None:
    settings = SYSTEMS["truncated-krylov"].settings_type()
    values = sample_settings(optuna.trial.FixedTrial(VALUES), SPACE, settings)
    assert values == VALUES
    assert {name: type(value) for name, value in values.items()} == {
        "hidden": int,
        "dropout": float,
        "optimizer": str,
        "classifier": bool,
    }


def test_sample_settings_never_leaves_the_space() -> None:
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
