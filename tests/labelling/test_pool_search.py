from __future__ import annotations

import numpy as np
import pytest

from kryograph.basis import Basis
from kryograph.data import toy
from kryograph.graph import UNKNOWN, Graph, Task
from kryograph.labelling.pool_search import search_pool
from kryograph.systems import system
from kryograph.systems.base import member_systems
from kryograph.systems.pool import PoolSystem
from kryograph.systems.pool_members import held_out_losses, pool_folds


def pool_of(members: str, operator: str = "sym") -> PoolSystem:
    method = system("pool", {"members": members}, operator=operator)
    assert isinstance(method, PoolSystem)
    return method


@pytest.fixture(scope="module")
def task() -> Task:
    """Features tell the class, edges join nodes at random."""
    rng = np.random.default_rng(0)
    known = np.arange(120) % 2
    x = rng.normal(size=(120, 4)) + 3 * np.eye(4)[known]
    graph = Graph.from_edges(rng.integers(0, 120, (2, 400)), 120, features=x)
    return Task.labelled(graph, np.where(np.arange(120) < 40, known, UNKNOWN), ("a", "b"))


@pytest.mark.slow
def test_search_improves_a_head_with_a_bad_penalty(task: Task) -> None:
    pool = pool_of("diffused-logistic:representation=features,penalty=10000 + trees")
    fractions: list[float] = []
    better = search_pool(pool, task, 3.0, 0, fractions.append)
    head, _ = better.members
    assert head.settings.penalty < 100
    basis, folds = Basis(task.graph), pool_folds(task, 0)
    losses = [
        held_out_losses(member, basis, task, folds, 0).mean() for member in (pool.members[0], head)
    ]
    assert losses[1] < losses[0] - 0.1
    assert fractions == sorted(fractions)
    assert 0 < fractions[-1] <= 1


def test_search_keeps_what_is_good_and_every_other_setting_of_the_pool(task: Task) -> None:
    pool = PoolSystem(
        pool_of("trees:fold_trees=5 + truncated-krylov:hidden=8").settings.replace(
            {"metric": "balanced-accuracy", "labels": "balanced"}
        ),
        "rw",
    )
    assert search_pool(pool, task, 0.2, 0) == pool


def test_search_without_time_changes_nothing(task: Task) -> None:
    pool = pool_of("diffused-logistic:penalty=10000")
    assert search_pool(pool, task, 0.0, 0).members == pool.members


def test_search_goes_on_where_representations_are_missing() -> None:
    """A graph without features lacks three of the representations that are tried."""
    labels = np.full(20, UNKNOWN)
    labels[:4], labels[-4:] = 0, 1
    task = Task.labelled(toy.two_cliques(10), labels, ("a", "b"))
    better = search_pool(pool_of("diffused-logistic:penalty=10000"), task, 0.7, 0)
    [head] = better.members
    assert head.settings.penalty < 100
    assert head.exists(Basis(task.graph))


def test_search_leaves_a_head_alone_that_the_graph_does_not_have() -> None:
    labels = np.array([0, 0, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 1, 1])
    task = Task.labelled(toy.two_cliques(4), labels, ("a", "b"))
    pool = pool_of("diffused-logistic:representation=features,penalty=10000")
    assert search_pool(pool, task, 0.2, 0).members == pool.members


def test_search_keeps_the_operator_of_the_heads(task: Task) -> None:
    pool = pool_of("prototypes:hops=0,sharpness=0.001", operator="rw")
    better = search_pool(pool, task, 0.5, 0)
    assert better.operator == "rw"
    assert {member.operator for member in better.members} == {"rw"}


def test_text_of_the_better_members_builds_them_again(task: Task) -> None:
    better = search_pool(pool_of("diffused-logistic:penalty=10000"), task, 0.5, 0)
    assert member_systems(better.settings.members, "sym") == better.members
