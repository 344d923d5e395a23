"""LNet and AdaLNet as systems: which settings make them the same, and what is made only once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine.forward import Nodes, Workload
from kryograph.graph import Split, Task
from kryograph.nn import lanczos_net
from kryograph.nn.functional import Masks
from kryograph.systems import lanczos_net as systems_lanczos
from kryograph.systems import system
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


@pytest.mark.parametrize("name", ["lnet", "ada-lnet"])
def test_what_is_prepared_gives_the_literal_logits(task: Task, name: str) -> None:
    made = system(name, SMALL)
    x, L = features_on_device(task.graph, "cpu"), made.diffusion(task.graph)
    network = made.network(x.shape[1], 3).eval()
    nodes = Nodes(torch.arange(3), torch.arange(3, 6))
    forward = made.fast_forward(Workload(network, x, L, nodes, Masks()))
    assert isinstance(forward, systems_lanczos.LanczosForward)
    torch.testing.assert_close(forward.everything(), network(x, L))
    torch.testing.assert_close(forward.scored(), network(x, L)[:6])


def test_the_paper_s_settings_are_the_defaults() -> None:
    settings = systems_lanczos.LNetSettings()
    assert (settings.hidden, settings.steps, settings.filter_hidden) == (64, 20, 128)
    assert settings.dropout == 0.5
    assert lanczos_net.SHORT + lanczos_net.LONG == (1, 2, 5, 7, 10, 20, 30)
    assert systems_lanczos.AdaLNetSettings().kernel == "learned"
