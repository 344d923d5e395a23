from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.data import synthetic_citations, toy
from kryograph.graph import Split, Task
from kryograph.nn import GCN
from kryograph.nn.functional import Masks
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import system
from kryograph.systems.gcn import Adversarial, Entries, SVATSystem, divergence, perturbed
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule
from tests.layers import MIXED, close, random, seeded

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
    form = made.prepare(task, conditions, Masks(torch.Generator().manual_seed(0)))
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
        logits, words = form.everything().detach(), torch.ones(task.graph.features.shape[1])
        after = perturbed(form.network, form.entries, form.L, logits, words, epsilon=0.1, xi=0.01)
        dense = (after if isinstance(after, torch.Tensor) else after.to_dense()).numpy()
        assert (dense[zero] == 0).all() == (name == "gcn-svat")


# The network


def holes(n: int, width: int) -> Tensor:
    """Features of which every other one is zero, and all those of the last node."""
    x = random(n, width) * (torch.arange(n * width).reshape(n, width) % 2)
    x[-1] = 0
    return x


def sparse(x: Tensor) -> SparseMatrix:
    return SparseMatrix.from_scipy(sp.csr_array(x.numpy()), dtype=torch.float64)


def dense_of(x: Tensor | SparseMatrix) -> Tensor:
    return x if isinstance(x, Tensor) else x.to_dense()


@pytest.fixture
def trained() -> nn.Module:
    """A network that tells the two halves of a graph apart."""
    net, x, L = GCN(4, 8, 2), holes(MIXED.n, 4), operator(MIXED)
    net.reset_parameters(seeded(0))
    labels = (torch.arange(MIXED.n) >= MIXED.n // 2).long()
    stepper = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(20):
        stepper.zero_grad()
        nn.functional.cross_entropy(net(x, L), labels).backward()
        stepper.step()
    return net.eval()


@pytest.mark.usefixtures("double")
def test_divergence_by_hand() -> None:
    even, sure = torch.zeros(2, 2), torch.tensor([[0.0, 0.0], [np.log(3.0), 0.0]])
    # ½ log(½ / ¾) + ½ log(½ / ¼) for one of the two nodes
    expected = 0.5 * (0.5 * np.log(2 / 3) + 0.5 * np.log(2))
    assert divergence(even, sure).item() == pytest.approx(expected)
    assert divergence(sure, sure).item() == 0


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("every", [True, False])
def test_a_change_is_a_share_of_each_rows_length(every: bool) -> None:
    x = holes(MIXED.n, 4)
    entries = Entries(x, every=every)
    d = entries.from_columns(random(4, seed=3))
    change = dense_of(entries.features(entries.scaled(d, 0.5)))
    assert close(change.norm(dim=1), 0.5 * x.norm(dim=1))
    assert close(dense_of(entries.features(entries.values)), x)
    if not every:
        assert (change[x == 0] == 0).all()


@pytest.mark.usefixtures("double")
def test_gradients_reach_stored_entries() -> None:
    x, weight, pull = holes(5, 4), random(4, 3, seed=1), random(5, 3, seed=2)
    entries = Entries(sparse(x), every=False)
    values = entries.values.clone().requires_grad_()
    ((entries.features(values, variable=True) @ weight) * pull).sum().backward()
    assert close(dense_of(entries.features(values.grad)), (pull @ weight.T) * (x != 0))


@pytest.mark.usefixtures("double")
def test_dense_features_have_the_same_stored_entries() -> None:
    x = holes(5, 4)
    assert torch.equal(Entries(x, every=False).values, Entries(sparse(x), every=False).values)


@pytest.mark.usefixtures("double")
def test_no_change_without_epsilon(trained: nn.Module) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    after = perturbed(
        trained, Entries(x, every=True), L, trained(x, L), torch.ones(4), epsilon=0.0, xi=0.01
    )
    assert torch.equal(dense_of(after), x)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("every", [True, False])
def test_the_change_does_more_than_random_ones(trained: nn.Module, every: bool) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    with torch.no_grad():
        logits = trained(x, L)
    entries = Entries(x, every=every)
    after = perturbed(
        *(trained, entries, L, logits, torch.ones(4)), epsilon=0.02, xi=0.01, iterations=1
    )
    found = divergence(logits, trained(after, L)).item()
    for seed in range(20):
        d = random(*entries.values.shape, seed=100 + seed)
        other = entries.features(entries.values + entries.scaled(d, 0.02))
        assert 0 <= divergence(logits, trained(other, L)).item() < found


@pytest.mark.usefixtures("double")
def test_more_of_a_change_does_more(trained: nn.Module) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    logits = trained(x, L).detach()
    found = []
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        after = perturbed(
            *(trained, Entries(x, every=True), L, logits, torch.ones(4)), epsilon=epsilon, xi=0.01
        )
        found.append(divergence(logits, trained(after, L)).item())
    assert all(less < more for less, more in pairwise(found))


@pytest.mark.usefixtures("double")
def test_both_kinds_agree_where_nothing_is_zero(trained: nn.Module) -> None:
    x, L = random(MIXED.n, 4, seed=8), operator(MIXED)
    logits = trained(x, L).detach()
    both = [
        dense_of(
            perturbed(
                *(trained, entries, L, logits, random(4, seed=9)),
                epsilon=0.3,
                xi=0.01,
                iterations=3,
            )
        )
        for entries in (Entries(x, every=True), Entries(sparse(x), every=False))
    ]
    assert close(*both, atol=1e-10)
    assert not close(both[0], x, atol=1e-2)


@pytest.mark.usefixtures("double")
def test_weights_are_left_alone(trained: nn.Module) -> None:
    trained.zero_grad()
    x, L = holes(toy.star(5).n, 4), operator(toy.star(5))
    perturbed(
        trained,
        Entries(x, every=False),
        L,
        trained(x, L).detach(),
        torch.ones(4),
        epsilon=1.0,
        xi=0.1,
    )
    assert all(weight.grad is None for weight in trained.parameters())
