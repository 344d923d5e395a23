from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kryograph.data import toy
from kryograph.errors import UsageError
from kryograph.graph import UNKNOWN, Graph, Split, Task
from kryograph.operators import OPERATORS
from kryograph.systems import SYSTEMS, Fit, System, system
from kryograph.systems.base import (
    Probabilities,
    Weights,
    member_systems,
    member_text,
    register,
)
from kryograph.systems.multi_scale import TruncatedKrylovSettings, TruncatedKrylovSystem
from kryograph.systems.settings import Settings


@pytest.fixture
def task() -> Task:
    split = Split("pair", train=[0], validation=[1], test=[2])
    return Task(toy.path(3), split, np.array([0, 1, UNKNOWN]), ("left", "right"))


class Constant(System):
    """Calls every node the second class."""

    def fit(self, task: Task, **_: object) -> Fit:
        return Fit(task, self.apply({}, task.graph, 2), epochs=0, weights={})

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return np.tile([0.25, 0.75], (graph.n, 1))


@pytest.fixture
def constant() -> Iterator[type[System]]:
    """A system in the registry for the time of a test."""
    add = register("constant", summary="One.", paper="none", equation="p = 3/4", settings=Settings)
    yield add(Constant)
    SYSTEMS.remove("constant")


def test_the_papers_three_systems_are_there() -> None:
    assert set(SYSTEMS) >= {"linear-snowball", "snowball", "truncated-krylov"}


def test_a_registered_class_can_be_asked_for_by_name(constant: type[System], task: Task) -> None:
    assert constant is Constant
    method = system("constant")
    assert isinstance(method, Constant)
    assert (method.name, method.summary, method.paper) == ("constant", "One.", "none")
    assert method.equation == "p = 3/4"
    assert method.settings == Settings()
    fit = method.fit(task)
    assert fit.predict() == ["right", "right", "right"]
    np.testing.assert_array_equal(fit.predict_proba(), [[0.25, 0.75]] * 3)


def test_a_fit_names_the_most_probable_classes(task: Task) -> None:
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    fit = Fit(task, probabilities, epochs=1, weights={})
    assert fit.predict() == ["left", "right", "left"]


def test_settings_may_be_left_out_changed_or_whole() -> None:
    assert system("truncated-krylov").settings == TruncatedKrylovSettings()
    changed = system("truncated-krylov", {"order": "3", "hidden": 5}).settings
    assert changed == TruncatedKrylovSettings(order=3, hidden=5)
    whole = TruncatedKrylovSettings(order=9)
    assert system("truncated-krylov", whole).settings is whole


def test_systems_with_equal_settings_are_equal_and_frozen() -> None:
    first = system("truncated-krylov", {"order": 3})
    assert first == TruncatedKrylovSystem(TruncatedKrylovSettings(order=3))
    assert first != system("truncated-krylov", {"order": 4})
    assert first != system("truncated-krylov", {"order": 3}, operator="rw")
    with pytest.raises(AttributeError):
        first.operator = "rw"  # type: ignore[misc]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_accepted(name: str) -> None:
    assert system("snowball", operator=name).operator == name


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Unknown system 'snowbal': did you mean .*'snowball'"):
        system("snowbal")
    with pytest.raises(UsageError, match="Unknown operator 'symm': did you mean 'sym'"):
        system("snowball", operator="symm")
    with pytest.raises(UsageError, match="Unknown setting 'hiden': did you mean 'hidden'"):
        system("snowball", {"hiden": 3})
    with pytest.raises(UsageError, match="Unknown setting 'order'"):
        system("snowball", {"order": 3})


def test_members_are_built_from_a_text() -> None:
    members = member_systems("prototypes:rounds=5, pull=0.5 + trees+lp", "rw")
    assert members == [
        system("prototypes", {"rounds": 5, "pull": 0.5}, operator="rw"),
        system("trees", operator="rw"),
        system("lp", operator="rw"),
    ]


@given(st.floats(1e-8, 1e6, exclude_max=True), st.sampled_from(["hops", "features", "neighbours"]))
def test_text_of_a_member_builds_the_same_member(penalty: float, representation: str) -> None:
    values = {"penalty": penalty, "representation": representation}
    method = system("diffused-logistic", values)
    assert member_systems(member_text(method), "sym") == [method]


def test_text_of_a_member_has_only_what_differs_from_the_defaults() -> None:
    assert member_text(system("trees")) == "trees"
    assert member_text(system("prototypes", {"rounds": 5})) == "prototypes:rounds=5"


@pytest.mark.parametrize("text", ["", "trees +", "crystal-ball", "trees:leaves=3", "trees:trees=x"])
def test_members_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        member_systems(text, "sym")
