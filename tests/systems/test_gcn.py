from __future__ import annotations

import numpy as np
import pytest
import torch

from kryograph.data import Dataset, synthetic_citations
from kryograph.graph import Split, Task
from kryograph.nn import GCN
from kryograph.systems import system
from kryograph.systems.gcn import GCNSettings, GCNSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SPLIT = Split("by hand", train=range(30), validation=range(30, 130), test=range(130, 300))


@pytest.fixture(scope="module")
def task() -> Task:
    data: Dataset = synthetic_citations(n=300, classes=3, words=50, seed=3)
    return data.task(SPLIT)


def fit(task: Task, epochs: int = 20, **changes: object) -> np.ndarray:
    conditions = Conditions(rule=StopRule(max_epochs=epochs))
    return system("gcn", changes).fit(task, seed=1, conditions=conditions).predict_proba()


def test_the_defaults_are_the_originals() -> None:
    s = GCNSettings()
    assert (s.hidden, s.layers, s.dropout, s.lr, s.weight_decay) == (16, 1, 0.5, 0.01, 5e-4)
    assert (s.optimizer, s.bias, s.decay_all) == ("adam", True, False)


def test_the_first_layers_weights_alone_are_decayed_unless_all_are() -> None:
    kipf, li = (GCNSystem(GCNSettings(layers=2, decay_all=every)) for every in (False, True))
    network = kipf.network(10, 3)
    assert isinstance(network, GCN)
    decayed = kipf.decayed(network)
    assert decayed is not None
    [only] = decayed
    assert only is network.convs[0].weight
    assert tuple(only.shape) == (10, 16)
    assert li.decayed(network) is None


def test_the_variant_of_li_han_and_wu_has_weights_only() -> None:
    network = GCNSystem(GCNSettings(bias=False, decay_all=True)).network(10, 3)
    assert [tuple(p.shape) for p in network.parameters()] == [(10, 16), (16, 3)]


@pytest.mark.parametrize("changes", [{"bias": False}, {"decay_all": True}, {"layers": 2}])
def test_every_setting_changes_the_fit(task: Task, changes: dict[str, object]) -> None:
    common = {"dropout": 0.0, "lr": 0.1, "weight_decay": 0.05}
    plain, changed = fit(task, **common), fit(task, **common, **changes)
    assert np.abs(plain - changed).max() > 1e-3


def test_the_network_is_made_without_storage() -> None:
    with torch.device("meta"):
        assert all(p.is_meta for p in system("gcn").network(50, 3).parameters())  # type: ignore[attr-defined]
