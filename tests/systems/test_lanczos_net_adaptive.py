"""AdaLNet: its kernel, what makes it LNet, and how often Lanczos runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from kryograph.data import synthetic_citations, toy
from kryograph.graph import Graph, Split, Task
from kryograph.nn.functional import Masks
from kryograph.nn.lanczos_net import LanczosNet
from kryograph.operators import operator
from kryograph.systems import lanczos_net, system
from kryograph.systems.lanczos_net import AdaLanczosNet, EdgeList
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule
from tests.layers import MIXED, OPERATORS, WEIGHTED, dense, random, seeded

SPLIT = Split("by hand", train=range(30), validation=range(30, 70), test=range(70, 120))
SHORT = Conditions(rule=StopRule(max_epochs=8))
SMALL = {"hidden": 6, "steps": 5, "filter_hidden": 4}

both_operators = pytest.mark.parametrize("name", OPERATORS)
in_float64 = pytest.mark.usefixtures("double")


@pytest.fixture(scope="module")
def task() -> Task:
    return synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1).task(
        SPLIT
    )


def stirred(network: torch.nn.Module, seed: int = 5) -> torch.nn.Module:
    """With every weight drawn, those that start at zero included."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.3, generator=seeded(seed))
    return network.eval()


@in_float64
def test_the_kernel_by_hand() -> None:
    # A path 0 - 1 - 2 at 0, 1, 3: squared distances 1 and 4, their mean 5/2. Node 3 is alone.
    graph = toy.disjoint(toy.path(3), toy.isolated(1))
    edges = EdgeList.of(operator(graph, "affinity"), "cpu")
    weights = edges.kernel(torch.tensor([[0.0], [1.0], [3.0], [7.0]]))
    found = edges.affinity.with_values(weights).to_dense()
    near, far = np.exp(-1 / 2.5), np.exp(-4 / 2.5)
    expected = [[1, near, 0, 0], [near, 1, far, 0], [0, far, 1, 0], [0, 0, 0, 1]]
    torch.testing.assert_close(found, torch.tensor(expected))


@in_float64
def test_a_component_has_a_width_of_its_own() -> None:
    graph = toy.disjoint(toy.path(3), toy.path(2))
    edges = EdgeList.of(operator(graph, "affinity"), "cpu")
    f = torch.tensor([[0.0], [1.0], [3.0], [0.0], [1.0]])
    changed = f.clone()
    changed[4] = 100.0
    # One edge is at its own mean distance, wherever its ends are.
    torch.testing.assert_close(edges.kernel(f), edges.kernel(changed))


@in_float64
def test_the_kernel_of_nodes_that_are_alike_is_one_with_a_gradient() -> None:
    edges = EdgeList.of(operator(MIXED, "affinity"), "cpu")
    f = torch.ones(MIXED.n, 2, requires_grad=True)
    weights = edges.kernel(f)
    assert (weights == 1).all()
    weights.sum().backward()
    assert torch.isfinite(f.grad).all()


@in_float64
@pytest.mark.parametrize("graph", [MIXED, WEIGHTED])
def test_equal_weights_give_the_symmetric_operator(graph: Graph) -> None:
    edges = EdgeList.of(operator(graph, "affinity"), "cpu")
    S = edges.normalised(torch.ones_like(edges.affinity.values))
    torch.testing.assert_close(S @ torch.eye(graph.n), dense(graph, "sym"))


@in_float64
@both_operators
@pytest.mark.parametrize("filter", ["matrix", "none"])
@pytest.mark.parametrize("graph", [MIXED, WEIGHTED])
def test_with_a_frozen_kernel_it_is_lanczos_net(graph: Graph, filter: str, name: str) -> None:
    options = {"layers": 2, "steps": 4, "filter": filter, "operator": name}
    plain = stirred(LanczosNet(4, 5, 3, **options))
    frozen = AdaLanczosNet(4, 5, 3, kernel="frozen", **options)
    frozen.load_state_dict(plain.state_dict())
    x = random(graph.n, 4)
    expected = plain(x, operator(graph, name))
    torch.testing.assert_close(frozen.eval()(x, operator(graph, "affinity")), expected)
    learned = stirred(AdaLanczosNet(4, 5, 3, **options))
    learned.load_state_dict(plain.state_dict(), strict=False)
    assert not torch.allclose(learned(x, operator(graph, "affinity")), expected)


@in_float64
@both_operators
def test_a_learned_kernel_is_lanczos_net_on_the_basis_that_it_gives(name: str) -> None:
    ada = stirred(AdaLanczosNet(4, 5, 3, steps=4, operator=name))
    plain = LanczosNet(4, 5, 3, steps=4, filter="matrix", operator=name).eval()
    plain.load_state_dict(ada.state_dict(), strict=False)
    x, A = random(MIXED.n, 4), operator(MIXED, "affinity")
    basis = ada.adapted(*ada.prepare(x, A))
    torch.testing.assert_close(plain.through_layers(x, Masks(), *basis), ada(x, A))


@in_float64
@both_operators
def test_every_weight_of_the_kernel_has_the_gradient_of_finite_differences(name: str) -> None:
    network = stirred(
        AdaLanczosNet(3, 4, 2, steps=3, kernel_hidden=2, through_lanczos=True, operator=name)
    )
    graph = toy.disjoint(toy.path(6), toy.isolated(1))
    x, A = random(7, 3), operator(graph, "affinity")
    names, values = zip(*network.f.named_parameters(prefix="f"), strict=True)

    def logits(*changed: Tensor) -> Tensor:
        named = dict(zip(names, changed, strict=True))
        return torch.func.functional_call(network, named, (x, A))

    assert torch.autograd.gradcheck(logits, tuple(v.detach().requires_grad_() for v in values))


@pytest.mark.parametrize("operator", ["sym", "rw"])
@pytest.mark.parametrize("filter", ["matrix", "none"])
def test_ada_lnet_with_a_frozen_kernel_is_lnet(task: Task, filter: str, operator: str) -> None:
    settings = SMALL | {"filter": filter}
    plain = system("lnet", settings, operator=operator).fit(task, seed=4, conditions=SHORT)
    frozen, learned = (
        system("ada-lnet", settings | {"kernel": kernel}, operator=operator).fit(
            task, seed=4, conditions=SHORT
        )
        for kernel in ("frozen", "learned")
    )
    np.testing.assert_allclose(frozen.predict_proba(), plain.predict_proba(), atol=1e-4)
    assert np.abs(learned.predict_proba() - plain.predict_proba()).max() > 1e-3


@pytest.mark.parametrize(("through", "expected"), [(False, 1 + 8 + 1), (True, 8 + 8 + 1)])
def test_lanczos_runs_once_an_epoch_in_ada_lnet(
    task: Task, through: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    real = lanczos_net.lanczos
    monkeypatch.setattr(
        lanczos_net, "lanczos", lambda *given: runs.append(given[1].is_meta) or real(*given)
    )
    system("ada-lnet", SMALL | {"through_lanczos": through}).fit(task, conditions=SHORT)
    # The first step, every score, and the best weights at the end; or every step, too.
    assert runs.count(False) == expected


@pytest.mark.parametrize("through", [False, True])
def test_a_basis_that_is_used_twice_changes_nothing(task: Task, through: bool) -> None:
    made = system("ada-lnet", SMALL | {"through_lanczos": through})
    quick = made.fit(task, conditions=SHORT).predict_proba()
    literal = made.fit(task, conditions=SHORT, literal=True).predict_proba()
    np.testing.assert_array_equal(quick, literal)
