"""NetworkSystem: `prepare` chooses the form of a run, and every hook is the one that is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from kryograph.data import synthetic_citations
from kryograph.engine import machine
from kryograph.engine.cost import Cost, memory_pass_cost
from kryograph.engine.forward import Forward, WholeGraph, Workload
from kryograph.errors import UsageError
from kryograph.graph import Split, Task
from kryograph.nn.functional import Masks
from kryograph.operators import operator as sym
from kryograph.systems import SYSTEMS, network, system
from kryograph.systems.gcn import GCNSettings, GCNSystem
from kryograph.systems.network import NetworkSystem, draw_weights, hidden_layer
from kryograph.testing import quick_settings
from kryograph.training.loop import DEFAULT_CONDITIONS, Conditions
from kryograph.training.stopping import exactly

SHORT = Conditions(exactly(3))
NETWORKS = [name for name in SYSTEMS if issubclass(SYSTEMS[name], NetworkSystem)]


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=80, classes=3, words=20, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(20), range(20, 40), range(40, 80)))


class Recording(GCNSystem):
    """A GCN that records which of its hooks are called; its fast form is the published one."""

    def __init__(self, *, fast: bool) -> None:
        super().__init__(GCNSettings())
        object.__setattr__(self, "calls", [])
        object.__setattr__(self, "fast", fast)

    calls: list[str]
    fast: bool

    def network(self, features: int, classes: int) -> Any:
        self.calls.append("network")
        return super().network(features, classes)

    def diffusion(self, graph: Any) -> Any:
        self.calls.append("diffusion")
        return super().diffusion(graph)

    def decayed(self, network: Any) -> Any:
        self.calls.append("decayed")
        return super().decayed(network)

    def forward(self, load: Workload) -> Forward:
        self.calls.append("forward")
        return super().forward(load)

    def fast_forward(self, load: Workload) -> Forward | None:
        self.calls.append("fast_forward")
        return WholeGraph(load) if self.fast else None


def test_fit_calls_the_fast_form_if_there_is_one(task: Task) -> None:
    method = Recording(fast=True)
    fit = method.fit(task, conditions=SHORT)
    assert method.calls == ["network", "diffusion", "fast_forward", "decayed"]
    method.calls.clear()
    method.apply(fit.weights, task.graph, 3)
    assert method.calls == ["network", "diffusion", "fast_forward"]


def test_fit_calls_the_published_form_if_there_is_no_fast_one(task: Task) -> None:
    method = Recording(fast=False)
    method.fit(task, conditions=SHORT)
    assert method.calls == ["network", "diffusion", "fast_forward", "forward", "decayed"]


def test_a_literal_fit_does_not_ask_for_the_fast_form(task: Task) -> None:
    method = Recording(fast=True)
    method.fit(task, conditions=SHORT, literal=True)
    assert method.calls == ["network", "diffusion", "forward", "decayed"]


def test_mixed_precision_uses_the_published_form(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "BFLOAT16_PRODUCTS", "")  # nothing is multiplied here
    method = Recording(fast=True)
    method.prepare(task, Conditions(precision="bfloat16"), Masks())
    assert method.calls == ["network", "diffusion", "forward"]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_literal_form_of_every_system_computes_on_the_whole_graph(
    name: str, task: Task
) -> None:
    method = system(name)
    literal = method.prepare(task, DEFAULT_CONDITIONS, Masks(), literal=True)
    assert isinstance(literal, WholeGraph)
    assert (literal.training.__func__, literal.scored.__func__) == (
        WholeGraph.training,
        WholeGraph.scored,
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_both_forms_of_every_system_give_the_same_logits(name: str, task: Task) -> None:
    method = system(name)
    forms = [
        method.prepare(task, DEFAULT_CONDITIONS, Masks(), literal=literal)
        for literal in (False, True)
    ]
    for form in forms:
        draw_weights(form.network, torch.Generator().manual_seed(0))
        form.network.eval()
    with torch.no_grad():
        torch.testing.assert_close(forms[0].scored(), forms[1].scored(), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(
            forms[0].everything(), forms[1].everything(), atol=1e-4, rtol=1e-4
        )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("truncated-krylov", {"classifier": False}),
        ("truncated-krylov", {"classifier": True}),
        ("truncated-krylov", {"layers": 2}),
        ("snowball", {"layers": 3}),
        ("linear-snowball", {"layers": 3}),
    ],
)
@pytest.mark.parametrize("validation", [True, False])
def test_training_on_rows_equals_training_on_the_whole_graph(
    name: str, changes: dict[str, object], validation: bool
) -> None:
    # Training and validation nodes lie between each other and between test nodes.
    data = synthetic_citations(n=300, classes=3, words=50, signal=0.6, homophily=0.8, seed=3)
    scattered = Split("scattered", range(0, 300, 6), range(2, 300, 3), range(1, 300, 3))
    task = data.task(scattered, validation=validation)
    method = system(name, quick_settings(name, **changes))
    assert isinstance(method, NetworkSystem)
    rows, whole = (
        method.fit(task, seed=2, conditions=Conditions(exactly(15)), literal=literal)
        for literal in (False, True)
    )
    np.testing.assert_allclose(rows.predict_proba(), whole.predict_proba(), atol=1e-5)
    assert rows.epochs == whole.epochs == 15
    assert rows.validation_accuracy == whole.validation_accuracy


def test_draw_weights_draws_from_the_generator_alone(task: Task) -> None:
    drawn = []
    for _ in range(2):
        form = system("gcn").prepare(task, DEFAULT_CONDITIONS, Masks())
        assert all(value.is_meta for value in form.network.parameters())
        draw_weights(form.network, torch.Generator().manual_seed(5))
        drawn.append([value.detach().numpy().copy() for value in form.network.parameters()])
    for first, second in zip(*drawn, strict=True):
        np.testing.assert_array_equal(first, second)


# Device


@pytest.mark.parametrize("name", ["gcn", "truncated-krylov", "prototypes"])
def test_a_device_that_is_not_there_is_refused_by_a_fit(name: str, task: Task) -> None:
    with pytest.raises(UsageError, match="The device 'nonsense' cannot be used here"):
        system(name).fit(task, conditions=Conditions(device="nonsense"))


def test_conditions_do_not_try_the_device() -> None:
    assert Conditions(device="nonsense").device == "nonsense"


# Cost


class Counted(WholeGraph):
    """A form whose cost is far beyond any machine's memory."""

    def cost(self) -> Cost | None:
        return memory_pass_cost(1) + Cost(kept=1e18)


def test_an_unknown_cost_is_no_estimate_and_no_reason_to_refuse(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "available_memory", lambda: 1)
    monkeypatch.setattr(WholeGraph, "cost", lambda self: None)
    assert system("gcn").estimate(task) is None
    assert system("gcn").fit(task, conditions=SHORT).epochs == 3


def test_a_known_cost_beyond_the_memory_is_refused(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GCNSystem, "forward", lambda self, load: Counted(load))
    with pytest.raises(UsageError, match="of memory"):
        system("gcn").fit(task, conditions=SHORT)


def trained(method: NetworkSystem, task: Task, *, literal: bool) -> Forward:
    """Form of a network with the weights of seed 0, ready for `everything`."""
    forward = method.prepare(task, DEFAULT_CONDITIONS, Masks(), literal=literal)
    draw_weights(forward.network, torch.Generator().manual_seed(0))
    return forward


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_embed_is_as_wide_as_the_hidden_layer(name: str, layers: int, task: Task) -> None:
    method = system(name, {"hidden": 5, "layers": layers})
    fit = method.fit(task, conditions=SHORT)
    assert method.has_hidden_layer
    heads = getattr(method.settings, "heads", 1)
    assert method.embed(fit.weights, task.graph, 3).shape == (80, heads * 5)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("operator", ["sym", "rw"])
@pytest.mark.parametrize("name", NETWORKS)
def test_embed_is_the_same_by_the_fast_and_by_the_published_form(
    name: str, operator: str, task: Task
) -> None:
    method = system(name, {"hidden": 5, "layers": 2}, operator=operator)
    assert isinstance(method, NetworkSystem)
    fast, published = (
        hidden_layer(trained(method, task, literal=literal)) for literal in (False, True)
    )
    assert fast is not None
    assert published is not None
    assert fast.abs().max() > 1e-3
    torch.testing.assert_close(fast, published, rtol=1e-9, atol=1e-11)


def test_embed_gives_log_probabilities_without_a_hidden_layer(task: Task) -> None:
    method = system("dcnn", {"variant": "original"})
    fit = method.fit(task, conditions=SHORT)
    assert not method.has_hidden_layer
    expected = np.log(fit.predict_proba())
    np.testing.assert_allclose(method.embed(fit.weights, task.graph, 3), expected, atol=1e-6)


def test_embed_and_the_output_layer_give_the_logits(task: Task) -> None:
    method = system("gcn", {"hidden": 5})
    fit = method.fit(task, conditions=SHORT)
    hidden = torch.from_numpy(method.embed(fit.weights, task.graph, 3))
    weight, bias = (fit.weights[f"convs.1.{name}"].double() for name in ("weight", "bias"))
    logits = sym(task.graph) @ (hidden @ weight) + bias
    expected = torch.from_numpy(fit.predict_proba())
    torch.testing.assert_close(logits.softmax(dim=1), expected, rtol=1e-5, atol=1e-6)
