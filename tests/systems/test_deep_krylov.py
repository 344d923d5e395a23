"""deep-krylov as a system: its filters come from its settings."""

from __future__ import annotations

import numpy as np
import pytest

from kryograph.data import synthetic_citations
from kryograph.graph import Split, Task
from kryograph.systems import system
from kryograph.systems.deep_krylov import (
    DIFFUSION,
    IDENTITY,
    DeepKrylov,
    DeepKrylovSystem,
    exponential,
    geometric,
)
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SHORT = Conditions(rule=StopRule(max_epochs=10))


@pytest.fixture(scope="module")
def task() -> Task:
    data = synthetic_citations(n=120, classes=3, words=30, signal=0.6, homophily=0.8, seed=1)
    return data.task(Split("by hand", range(30), range(30, 60), range(60, 120)))


def probabilities(name: str, task: Task, **changes: object) -> np.ndarray:
    changes = {"dropout": 0.0, "hidden": 8} | changes
    return system(name, changes).fit(task, seed=1, conditions=SHORT).probabilities


def test_deep_krylov_has_one_filter_per_layer() -> None:
    made = system("deep-krylov", {"layers": 2, "order": 4, "reach": 3.0})
    assert isinstance(made, DeepKrylovSystem)
    names = {
        "identity": IDENTITY,
        "diffusion": DIFFUSION,
        "geometric": geometric(4, 3.0, "blocks"),
        "exponential": exponential(4, 3.0, "blocks"),
    }
    for name, g in names.items():
        changes = {"filter": name, "output_filter": "diffusion", "learn": "blocks"}
        network = DeepKrylovSystem(made.settings.replace(changes)).network(5, 3)
        assert isinstance(network, DeepKrylov)
        assert [conv.filter for conv in network.convs] == [g, g, DIFFUSION]


def test_deep_krylov_of_diffusions_is_trained_as_gcn_is(task: Task) -> None:
    same = {"weight_decay": 5e-4, "lr": 0.02, "layers": 2}
    gcn = probabilities("gcn", task, decay_all=True, **same)
    deep = probabilities("deep-krylov", task, filter="diffusion", output_filter="diffusion", **same)
    np.testing.assert_allclose(deep, gcn, atol=1e-5)
