"""The public checks of systems: each finds the fault that it is there for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from kryograph.errors import UsageError
from kryograph.explain.contributions import AdditiveForm, Contributions, Values
from kryograph.graph import Graph, Indices, Task
from kryograph.systems import SYSTEMS, Fit, Probabilities, Settings, System, Weights, register
from kryograph.systems.gcn import GCNSettings, GCNSystem
from kryograph.systems.settings import setting
from kryograph.testing import check_system, quick_settings

DRAWS = count()


class Plain(GCNSystem):
    """A GCN without a fault."""


class Counted(GCNSystem):
    """Records its fits."""

    fits: ClassVar[list[tuple[object, ...]]] = []

    def fit(self, task: Task, **options: Any) -> Fit:
        self.fits.append((self, task, *options.items(), torch.get_default_dtype()))
        return super().fit(task, **options)


class TwiceTheProbabilities(GCNSystem):
    """Probabilities sum to two."""

    def fit(self, task: Task, **options: Any) -> Fit:
        fit = super().fit(task, **options)
        return replace(fit, probabilities=2 * fit.probabilities)


class DrawsAnotherSeed(GCNSystem):
    """Every fit has a seed of its own."""

    def fit(self, task: Task, *, seed: int = 0, **options: Any) -> Fit:
        return super().fit(task, seed=next(DRAWS), **options)


class IgnoresTheSeed(GCNSystem):
    """Every fit has the same seed."""

    def fit(self, task: Task, *, seed: int = 0, **options: Any) -> Fit:
        return super().fit(task, seed=0, **options)


class DrawsFromTorch(GCNSystem):
    """Draws from torch's global generator."""

    def fit(self, task: Task, **options: Any) -> Fit:
        torch.rand(1)
        return super().fit(task, **options)


class DrawsFromNumPy(GCNSystem):
    """Draws from NumPy's global generator."""

    def fit(self, task: Task, **options: Any) -> Fit:
        np.random.rand()  # noqa: NPY002
        return super().fit(task, **options)


class AppliesUniformly(GCNSystem):
    """A loaded model knows nothing."""

    def apply(self, weights: Weights, graph: Graph, classes: int) -> Probabilities:
        return np.full((graph.n, classes), 1 / classes)


class EmbedsProbabilities(GCNSystem):
    """Embeds log-probabilities in place of the hidden layer."""

    embed = System.embed


class KnowsTheNumberOfNodes(GCNSystem):
    """The output depends on the number of a node."""

    def fit(self, task: Task, **options: Any) -> Fit:
        fit = super().fit(task, **options)
        p = fit.probabilities + np.arange(task.graph.n)[:, None] / task.graph.n * [1, 0, 0]
        return replace(fit, probabilities=p / p.sum(axis=1, keepdims=True))


class DeclaresNoOperator(GCNSystem):
    """Depends on the operator and declares that it does not."""

    uses_operator = False


class DeclaresNoFeatures(GCNSystem):
    """Depends on the features and declares that it does not."""

    uses_features = False


class DependsOnAllNodes(GCNSystem):
    """Mixes the probabilities of a node with the mean of all nodes."""

    def fit(self, task: Task, **options: Any) -> Fit:
        fit = super().fit(task, **options)
        mixed = (fit.probabilities + fit.probabilities.mean(axis=0)) / 2
        return replace(fit, probabilities=mixed)


class NeedsDenseFeatures(GCNSystem):
    """Has other results for sparse features."""

    def fit(self, task: Task, **options: Any) -> Fit:
        if isinstance(task.graph.features, np.ndarray):
            options["seed"] = 1
        return super().fit(task, **options)


class HasNoDropout(GCNSystem):
    """Has the setting `dropout` and ignores it."""

    def network(self, features: int, classes: int) -> Any:
        network = super().network(features, classes)
        network.dropout = 0.0
        return network


class LearnsNothing(GCNSystem):
    """Learns the labels of the nodes in another order."""

    def fit(self, task: Task, **options: Any) -> Fit:
        fit = super().fit(task, **options)
        return replace(fit, probabilities=np.roll(fit.probabilities, 1, axis=1))


@dataclass(frozen=True, eq=False)
class NothingAdds(AdditiveForm):
    """The right log-odds, of which no hop, node or feature contributes anything."""

    probabilities: Probabilities

    def log_probabilities(self, node: int) -> Values:
        return np.asarray(np.log(self.probabilities[node]))

    def contributions(self, node: int, first: int, second: int) -> Contributions:
        return Contributions.none(len(self.probabilities), 50)

    def similarity(self, node: int, others: Indices) -> Values:
        return np.ones(others.size)


class ExplainsNothing(GCNSystem):
    """Contributions do not add up to the log-odds."""

    def additive(self, weights: Weights, graph: Graph, classes: int) -> AdditiveForm:
        return NothingAdds(self.apply(weights, graph, classes))


FAULTS = {
    TwiceTheProbabilities: "gives_probabilities",
    DrawsAnotherSeed: "same_seed_gives_same_numbers",
    IgnoresTheSeed: "other_seed_gives_other_numbers",
    DrawsFromTorch: "leaves_global_generators_alone",
    DrawsFromNumPy: "leaves_global_generators_alone",
    AppliesUniformly: "saved_model_predicts_the_same",
    EmbedsProbabilities: "embeds_the_hidden_layer",
    KnowsTheNumberOfNodes: "permuted_nodes_give_permuted_output",
    DeclaresNoOperator: "uses_the_operator",
    DeclaresNoFeatures: "accepts_isolated_nodes",
    DependsOnAllNodes: "keeps_components_apart",
    NeedsDenseFeatures: "dense_and_sparse_features_give_the_same",
    HasNoDropout: "uses_dropout",
    LearnsNothing: "accepts_one_training_node",
    ExplainsNothing: "explains_exactly_or_refuses",
}


@dataclass(frozen=True)
class Undescribed(GCNSettings):
    """Settings with an empty summary."""

    depth: int = setting(1, "")


def registered(cls: type[System], settings: type[Settings] = GCNSettings, **text: str) -> str:
    description = {"summary": "A GCN.", "paper": "Nobody, 2026", "equation": "L X W"} | text
    register("faulty", settings=settings, **description)(cls)
    return cls.name


@pytest.fixture(autouse=True)
def _remove_the_system() -> Iterator[None]:
    yield
    if "faulty" in SYSTEMS:
        SYSTEMS.remove("faulty")


def failed_checks(name: str) -> set[str]:
    failed = set()
    for check in check_system(name):
        try:
            check()
        except AssertionError:
            failed.add(str(check))
    return failed


def test_system_without_a_fault_passes_all_checks() -> None:
    assert failed_checks(registered(Plain)) == set()


@pytest.mark.parametrize(("cls", "name"), FAULTS.items())
def test_check_finds_its_fault(cls: type[System], name: str) -> None:
    registered(cls)
    [check] = [check for check in check_system("faulty") if str(check) == name]
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ({"summary": "No full stop"}, "the summary is not one line"),
        ({"paper": "Nobody"}, "the paper does not end with its year"),
        ({"equation": ""}, "the equation is empty"),
    ],
)
def test_description_is_checked(text: dict[str, str], sentence: str) -> None:
    registered(Plain, **text)
    with pytest.raises(AssertionError, match=sentence):
        check_system("faulty")[0]()


def test_summaries_of_settings_are_checked() -> None:
    registered(Plain, Undescribed)
    with pytest.raises(AssertionError, match="'depth' has no summary"):
        check_system("faulty")[1]()


def test_fits_are_kept_between_checks() -> None:
    registered(Counted)
    assert failed_checks("faulty") == set()
    repeated = {fit for fit in Counted.fits if Counted.fits.count(fit) > 1}
    assert len(repeated) == 1, "only the check of equal seeds repeats a fit"
    assert len(Counted.fits) == 20


def test_unknown_system_and_unknown_setting_are_refused() -> None:
    with pytest.raises(UsageError, match="Unknown system 'gnc'"):
        check_system("gnc")
    with pytest.raises(UsageError, match="'hidden' must be at least 1"):
        check_system("gcn", {"hidden": 0})


def test_settings_replace_the_quick_ones() -> None:
    assert quick_settings("gcn", hidden=5)["hidden"] == 5
    assert quick_settings("gcn")["dropout"] == 0.0
    inner = quick_settings("self-training", hidden=5, dropout=0.5)
    assert "hidden=5" in str(inner["inner_settings"])
    assert "dropout=0.5" in str(inner["inner_settings"])
    assert quick_settings("m3s")["stages"] == 2
