from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.systems import system
from kryograph.systems.gcn_vat import Adversarial, SVATSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

BOTH = pytest.mark.parametrize("name", ["gcn-svat", "gcn-dvat"])
SHORT = Conditions(rule=StopRule(max_epochs=10))


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(30), range(30, 60), range(60, 120)))


def planned(
    name: str, task: Task, conditions: Conditions = SHORT, **changes: object
) -> Adversarial:
    """The form of a run, with weights."""
    made = system(name, changes)
    assert isinstance(made, SVATSystem)
    form = made._planned(task, conditions, Masks(torch.Generator().manual_seed(0)))
    assert isinstance(form, Adversarial)
    form.network.to_empty(device="cpu")
    form.network.reset_parameters(torch.Generator().manual_seed(0))
    return form


@BOTH
def test_the_penalty_is_positive_and_moves_the_weights(name: str, task: Task) -> None:
    form = planned(name, task, dropout=0.5)
    penalty = form.penalty()
    assert penalty.item() > 0
    assert form.network.training
    penalty.backward()
    assert all(weight.grad is not None for weight in form.network.parameters())


@BOTH
def test_the_penalty_is_alpha_times_a_divergence(name: str, task: Task) -> None:
    once, twice = (planned(name, task, alpha=alpha).penalty().item() for alpha in (1.0, 2.0))
    assert twice == pytest.approx(2 * once, rel=1e-6)


@BOTH
def test_without_a_change_it_is_a_gcn(name: str, task: Task) -> None:
    assert planned(name, task, epsilon=0.0).penalty().item() == pytest.approx(0, abs=1e-7)
    # The start direction is not drawn from what dropout draws from unless there is dropout.
    changes = {"dropout": 0.0}
    plain = system("gcn", changes).fit(task, seed=3, conditions=SHORT)
    for switch in ({"epsilon": 0.0}, {"alpha": 0.0}):
        found = system(name, changes | switch).fit(task, seed=3, conditions=SHORT)
        np.testing.assert_allclose(found.probabilities, plain.probabilities, atol=1e-5)


@BOTH
def test_it_is_not_a_gcn_otherwise(name: str, task: Task) -> None:
    plain, found = (
        system(each, {"dropout": 0.0}).fit(task, seed=3, conditions=SHORT).probabilities
        for each in ("gcn", name)
    )
    assert np.abs(found - plain).max() > 1e-4


@pytest.mark.usefixtures("bfloat16")
@BOTH
def test_mixed_precision_keeps_the_penalty(name: str, task: Task) -> None:
    form = planned(name, task, Conditions(precision="bfloat16"))
    assert form.penalty().item() > 0


def test_sparse_changes_leave_zeros_alone(task: Task) -> None:
    zero = task.graph.features.toarray() == 0
    for name in ("gcn-svat", "gcn-dvat"):
        form = planned(name, task)
        form.network.eval()
        after = form.changed(form.everything().detach())
        dense = (after if isinstance(after, torch.Tensor) else after.to_dense()).numpy()
        assert (dense[zero] == 0).all() == (name == "gcn-svat")
