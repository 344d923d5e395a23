"""`kryograph.figures.depth` and `kryograph.figures.trained`: lines of accuracy."""

from __future__ import annotations

import pytest
import torch

from kryograph.cli.figures import small
from kryograph.data import Dataset, toy
from kryograph.errors import UsageError
from kryograph.figures.depth import COMMON, VARIANTS, accuracy_over_seeds, at_depth, checked_depths
from kryograph.nn import GCN
from kryograph.nn.deep_krylov import DeepKrylov
from kryograph.operators import operator
from kryograph.systems import system
from kryograph.systems.network import NetworkSystem
from kryograph.training.loop import Conditions
from kryograph.training.stopping import StopRule

SHORT = Conditions(rule=StopRule(max_epochs=3))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return small()


def test_all_lines_share_what_is_not_their_architecture() -> None:
    for variant in VARIANTS:
        settings = at_depth(variant, 8).settings.as_dict()
        assert settings["layers"] == 8
        assert {name: settings[name] for name in COMMON} == dict(COMMON)
    assert at_depth("truncated Krylov", 1).settings.order == 3


@pytest.mark.parametrize("f", ["relu", "tanh"])
def test_the_line_of_gcn_is_gcn(f: str) -> None:
    variant = {"relu": "GCN, ReLU", "tanh": "GCN, tanh"}[f]
    method = at_depth(variant, 3)
    assert isinstance(method, NetworkSystem)
    general = method.network(5, 2)
    assert isinstance(general, DeepKrylov)
    special = GCN(5, 16, 2, layers=3, activation=f)
    special.load_state_dict(general.state_dict())
    L, x = operator(toy.two_cliques(4)), torch.randn(8, 5, generator=torch.manual_seed(0))
    general.eval()
    special.eval()
    assert torch.allclose(general(x, L), special(x, L), atol=1e-6)


def test_depths_are_ordered_and_at_least_one() -> None:
    assert checked_depths([4, 1, 4]) == (1, 4)
    with pytest.raises(UsageError, match="at least 1; got 0, 2"):
        checked_depths([0, 2])
    with pytest.raises(UsageError, match="got none"):
        checked_depths([])
    with pytest.raises(UsageError, match="Unknown variant 'gcn'"):
        at_depth("gcn", 1)


def test_a_point_has_an_interval_and_is_the_same_again(data: Dataset) -> None:
    heard: list[int] = []
    method = at_depth("Snowball", 1)
    row = accuracy_over_seeds(method, data, 2, conditions=SHORT, on_run=heard.append)
    assert (row["runs"], row["diverged"]) == (2, 0)
    assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1
    assert heard == [0, 1]
    assert accuracy_over_seeds(method, data, 2, conditions=SHORT) == row
    alone = accuracy_over_seeds(method, data, 1, conditions=SHORT)
    assert (alone["low"], alone["std"]) == (None, None)


def test_runs_that_diverge_are_counted_and_left_out(data: Dataset) -> None:
    wild = system("linear-snowball", {"lr": 999.0, "layers": 30, "hidden": 8, "dropout": 0.0})
    row = accuracy_over_seeds(wild, data, 2, conditions=Conditions(rule=StopRule(max_epochs=40)))
    assert row["diverged"] == 2
    assert (row["runs"], row["mean"], row["low"]) == (0, None, None)
