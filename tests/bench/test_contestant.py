"""`kryograph.bench.contestant`: three forms of one network compute and learn the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from kryograph.bench.contestant import (
    Contestant,
    engine_contestant,
    literal_contestant,
    pyg_contestant,
)
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem
from tests.layers import MIXED

CLASSES = ("a", "b", "c")
SPLIT = Split("by hand", train=[0, 3, 5], validation=[1, 8], test=[2])
FORMS = pytest.mark.parametrize("form", ["engine", "literal", "pyg"])
NAMES = pytest.mark.parametrize("name", ["truncated-krylov", "snowball", "linear-snowball"])


@pytest.fixture(scope="module")
def task() -> Task:
    words = sp.random_array((MIXED.n, 6), density=0.4, rng=0, format="csr")
    labels = np.full(MIXED.n, -1)
    known = [*SPLIT.train, *SPLIT.validation]
    labels[known] = np.array(known) % 3
    return Task(replace(MIXED, features=words), SPLIT, labels, CLASSES)


def method_of(name: str, **changes: Any) -> NetworkSystem:
    order = {"order": 3} if name == "truncated-krylov" else {}
    method = system(name, {"hidden": 16, "dropout": 0.0, "lr": 0.01, **order, **changes})
    assert isinstance(method, NetworkSystem)
    return method


def contestant(form: str, method: NetworkSystem, task: Task) -> Contestant:
    if form == "engine":
        return engine_contestant(method, task, Masks())
    if form == "literal":
        x = torch.from_numpy(task.graph.features.toarray()).float()
        return literal_contestant(method, task, x, operator(task.graph), Masks())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return pyg_contestant(method, task)


def transposed(value: Tensor) -> Tensor:
    """kryograph keeps the transposed weights of PyTorch Geometric."""
    return value.T if value.ndim == 2 else value


@NAMES
def test_engine_and_literal_form_give_the_same_logits_and_gradients(name: str, task: Task) -> None:
    engine, literal = (contestant(form, method_of(name), task) for form in ("engine", "literal"))
    torch.testing.assert_close(engine.score(), literal.score())
    torch.testing.assert_close(engine.gradients(), literal.gradients())
    for one, other in zip(engine.network.parameters(), literal.network.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@NAMES
def test_pyg_form_gives_the_gradients_of_the_literal_form(name: str, task: Task) -> None:
    method = method_of(name)
    literal, pyg = (contestant(form, method, task) for form in ("literal", "pyg"))
    with torch.no_grad():
        by_shape = {tuple(p.shape): p for p in pyg.network.parameters()}
        for ours in literal.network.parameters():
            by_shape[tuple(transposed(ours).shape)].copy_(transposed(ours))
    torch.testing.assert_close(pyg.score(), literal.score())
    torch.testing.assert_close(pyg.gradients(), literal.gradients())
    for ours in literal.network.parameters():
        assert ours.grad is not None
        theirs = by_shape[tuple(transposed(ours).shape)].grad
        torch.testing.assert_close(theirs, transposed(ours.grad), rtol=0, atol=1e-6)


@FORMS
@NAMES
@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_epochs_learn_the_labels(form: str, name: str, optimizer: str, task: Task) -> None:
    trained = contestant(form, method_of(name, optimizer=optimizer), task)
    targets = torch.from_numpy(task.labels[SPLIT.train])
    before = torch.nn.functional.cross_entropy(trained.score()[:3], targets)
    for _ in range(60):
        after = trained.epoch()
    assert after.shape == (5, 3)
    assert not after.requires_grad
    assert torch.nn.functional.cross_entropy(after[:3], targets) < 0.5 * before


@FORMS
def test_everything_holds_the_scored_nodes(form: str, task: Task) -> None:
    trained = contestant(form, method_of("snowball"), task)
    scored = trained.score()
    with torch.no_grad():
        every = trained.everything()
    assert every.shape == (MIXED.n, 3)
    torch.testing.assert_close(every[[0, 3, 5, 1, 8]], scored)


@pytest.mark.parametrize("form", ["literal", "pyg"])
@pytest.mark.parametrize(
    ("optimizer", "kind"), [("rmsprop", torch.optim.RMSprop), ("adam", torch.optim.Adam)]
)
def test_the_other_forms_have_torchs_optimiser(
    form: str, optimizer: str, kind: type[torch.optim.Optimizer], task: Task
) -> None:
    settings = {"lr": 0.25, "weight_decay": 0.125, "optimizer": optimizer}
    built = contestant(form, method_of("snowball", **settings), task).optimizer
    assert type(built) is kind
    [group] = built.param_groups
    assert (group["lr"], group["weight_decay"]) == (0.25, 0.125)
