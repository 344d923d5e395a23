"""LNet and AdaLNet as systems: which settings make them the same, and what is made only once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine.forward import Nodes, WholeGraph
from kryograph.graph import Split, Task
from kryograph.nn import lanczos_net
from kryograph.nn.functional import Masks
from kryograph.systems import ada_lnet, lnet, system
from kryograph.systems import ada_lnet as ada_lanczos_net
from kryograph.systems.network import features_on_device
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 70), test=range(70, 120))
SHORT = Conditions(rule=StopRule(max_epochs=8))
SMALL = {"hidden": 6, "steps": 5, "filter_hidden": 4}


@pytest.fixture(scope="module")
def task() -> Task:
    return synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1).task(
        SPLIT
    )


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


@pytest.mark.parametrize("change", [{"filter": "ritz"}, {"steps": 2}, {"drop_features": False}])
def test_a_setting_changes_the_fit(task: Task, change: dict[str, object]) -> None:
    settings = SMALL | {"filter": "none", "filter_rate": 1.0}
    plain, changed = (
        system("lnet", settings | each).fit(task, conditions=SHORT).predict_proba()
        for each in ({}, change)
    )
    assert np.abs(plain - changed).max() > 1e-3


def test_lanczos_runs_once_in_lnet(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    real = lanczos_net.lanczos
    monkeypatch.setattr(
        lanczos_net, "lanczos", lambda *given: runs.append(given[1].is_meta) or real(*given)
    )
    system("lnet", SMALL).fit(task, conditions=SHORT)
    assert runs.count(False) == 1  # without the trace of an epoch, which has no values


@pytest.mark.parametrize(("through", "expected"), [(False, 1 + 8 + 1), (True, 8 + 8 + 1)])
def test_lanczos_runs_once_an_epoch_in_ada_lnet(
    task: Task, through: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    real = ada_lanczos_net.lanczos
    monkeypatch.setattr(
        ada_lanczos_net, "lanczos", lambda *given: runs.append(given[1].is_meta) or real(*given)
    )
    system("ada-lnet", SMALL | {"through_lanczos": through}).fit(task, conditions=SHORT)
    # The first step, every score, and the best weights at the end; or every step, too.
    assert runs.count(False) == expected


@pytest.mark.parametrize("through", [False, True])
def test_a_basis_that_is_used_twice_changes_nothing(
    task: Task, through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = system("ada-lnet", SMALL | {"through_lanczos": through})
    quick = made.fit(task, conditions=SHORT).predict_proba()
    monkeypatch.setattr(ada_lnet, "AdaLanczosForward", WholeGraph)
    np.testing.assert_array_equal(quick, made.fit(task, conditions=SHORT).predict_proba())


@pytest.mark.parametrize("name", ["lnet", "ada-lnet"])
def test_what_is_prepared_gives_the_literal_logits(task: Task, name: str) -> None:
    made = system(name, SMALL)
    x, L = features_on_device(task.graph, "cpu"), made.diffusion(task.graph)
    network = made.network(x.shape[1], 3).eval()
    nodes = Nodes(torch.arange(3), torch.arange(3, 6))
    forward = made.engine(network, x, L, nodes, Masks())
    assert isinstance(forward, lnet.LanczosForward)
    torch.testing.assert_close(forward.everything(), network(x, L))
    torch.testing.assert_close(forward.scored(), network(x, L)[:6])


def test_the_paper_s_settings_are_the_defaults() -> None:
    settings = lnet.LNetSettings()
    assert (settings.hidden, settings.steps, settings.filter_hidden) == (64, 20, 128)
    assert settings.dropout == 0.5
    assert lanczos_net.SHORT + lanczos_net.LONG == (1, 2, 5, 7, 10, 20, 30)
    assert ada_lnet.AdaLNetSettings().kernel == "learned"
