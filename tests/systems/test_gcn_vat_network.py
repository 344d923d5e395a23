from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from kryograph.data import toy
from kryograph.nn import GCN
from kryograph.operators import operator
from kryograph.sparse import SparseMatrix
from kryograph.systems import gcn_vat as module
from kryograph.systems.gcn_vat import Every, Stored, divergence, perturbed
from tests.layers import MIXED, close, random, seeded

pytestmark = pytest.mark.usefixtures("double")


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


def test_divergence_by_hand() -> None:
    even, sure = torch.zeros(2, 2), torch.tensor([[0.0, 0.0], [np.log(3.0), 0.0]])
    # ½ log(½ / ¾) + ½ log(½ / ¼) for one of the two nodes
    expected = 0.5 * (0.5 * np.log(2 / 3) + 0.5 * np.log(2))
    assert divergence(even, sure).item() == pytest.approx(expected)
    assert divergence(sure, sure).item() == 0


@pytest.mark.parametrize("kind", [Every, Stored])
def test_a_change_is_a_share_of_each_rows_length(kind: type[Every | Stored]) -> None:
    x = holes(MIXED.n, 4)
    entries = kind(x)
    d = entries.of_words(random(4, seed=3))
    change = dense_of(entries.features(entries.scaled(d, 0.5)))
    assert close(change.norm(dim=1), 0.5 * x.norm(dim=1))
    assert close(dense_of(entries.features(entries.values)), x)
    if kind is Stored:
        assert (change[x == 0] == 0).all()


def test_gradients_reach_stored_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)  # several chunks, the last one not full
    x, weight, pull = holes(5, 4), random(4, 3, seed=1), random(5, 3, seed=2)
    entries = Stored(sparse(x))
    values = entries.values.clone().requires_grad_()
    ((entries.variables(values) @ weight) * pull).sum().backward()
    assert close(dense_of(entries.features(values.grad)), (pull @ weight.T) * (x != 0))


def test_dense_features_have_the_same_stored_entries() -> None:
    x = holes(5, 4)
    assert torch.equal(Stored(x).values, Stored(sparse(x)).values)


def test_no_change_without_epsilon(trained: nn.Module) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    after = perturbed(trained, Every(x), L, trained(x, L), torch.ones(4), epsilon=0.0, xi=0.01)
    assert torch.equal(dense_of(after), x)


@pytest.mark.parametrize("kind", [Every, Stored])
def test_the_change_does_more_than_random_ones(
    trained: nn.Module, kind: type[Every | Stored]
) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    with torch.no_grad():
        logits = trained(x, L)
    entries = kind(x)
    after = perturbed(
        *(trained, entries, L, logits, torch.ones(4)), epsilon=0.02, xi=0.01, iterations=1
    )
    found = divergence(logits, trained(after, L)).item()
    for seed in range(20):
        d = random(*entries.values.shape, seed=100 + seed)
        other = entries.features(entries.values + entries.scaled(d, 0.02))
        assert 0 <= divergence(logits, trained(other, L)).item() < found


def test_more_of_a_change_does_more(trained: nn.Module) -> None:
    x, L = holes(MIXED.n, 4), operator(MIXED)
    logits = trained(x, L).detach()
    found = []
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        after = perturbed(*(trained, Every(x), L, logits, torch.ones(4)), epsilon=epsilon, xi=0.01)
        found.append(divergence(logits, trained(after, L)).item())
    assert all(less < more for less, more in pairwise(found))


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
        for entries in (Every(x), Stored(sparse(x)))
    ]
    assert close(*both, atol=1e-10)
    assert not close(both[0], x, atol=1e-2)


def test_weights_are_left_alone(trained: nn.Module) -> None:
    trained.zero_grad()
    x, L = holes(toy.star(5).n, 4), operator(toy.star(5))
    perturbed(trained, Stored(x), L, trained(x, L).detach(), torch.ones(4), epsilon=1.0, xi=0.1)
    assert all(weight.grad is None for weight in trained.parameters())
